"""Rotary positions: rotate keys to a position, and back to none.

Method: Su et al., RoFormer, 2021. Moving cached keys by a rotation: the cache-shift
of llama.cpp and the positional integrity encoding of He et al., 2024. All in
float32; a key is canonicalised once, from its original, and rotated once, so errors
never add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Rope:
    """Frequencies of one model.

    Attributes:
        inv_freq: float32 [R / 2] for the first R dimensions of a head; the rest, if
            any, is not rotated.
        scaling: Factor on cosine and sine (YaRN); divided out on the way back.
        interleaved: Pairs are neighbours (2i, 2i+1) instead of halves (i, i+R/2).
    """

    inv_freq: Tensor
    scaling: float = 1.0
    interleaved: bool = False

    def tables(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and sine [T, R / 2] in float32, scaling included."""
        angles = positions.to(torch.float32)[:, None] * self.inv_freq[None, :]
        return angles.cos() * self.scaling, angles.sin() * self.scaling

    def rotate(self, keys_HTD: Tensor, positions: Tensor) -> Tensor:
        """Put un-rotated keys at `positions` [T]; a new float32 tensor."""
        cos, sin = self.tables(positions)
        return self._turn(keys_HTD.to(torch.float32), cos, sin)

    def unrotate(self, keys_HTD: Tensor, positions: Tensor) -> Tensor:
        """Take keys at `positions` [T] back to no position; a new float32 tensor."""
        cos, sin = self.tables(positions)
        square = self.scaling * self.scaling
        return self._turn(keys_HTD.to(torch.float32), cos / square, -sin / square)

    def shift(self, keys_HTD: Tensor, by: Tensor) -> Tensor:
        """Move rotated keys by `by` [T] positions; a new float32 tensor."""
        return self.turner(by, 1.0 / self.scaling)(keys_HTD)

    def turner(self, by: Tensor, factor: float = 1.0) -> Callable[[Tensor], Tensor]:
        """Prepare one rotation for many layers: by `by` [T] positions, times `factor`.

        Returns:
            Turns keys [H, T, D]; gives new float32 tensors.
        """
        cos, sin = self.tables(by)
        cos, sin = cos * factor, sin * factor
        return lambda keys_HTD: self._turn(keys_HTD.to(torch.float32), cos, sin)

    def _turn(self, keys_HTD: Tensor, cos_TR: Tensor, sin_TR: Tensor) -> Tensor:
        width = 2 * self.inv_freq.numel()
        turned, rest = keys_HTD[..., :width], keys_HTD[..., width:]
        if self.interleaved:
            left, right = turned[..., 0::2], turned[..., 1::2]
        else:
            left, right = turned[..., : width // 2], turned[..., width // 2 :]
        new_left = left * cos_TR - right * sin_TR
        new_right = right * cos_TR + left * sin_TR
        if self.interleaved:
            new = torch.stack((new_left, new_right), dim=-1).flatten(-2)
        else:
            new = torch.cat((new_left, new_right), dim=-1)
        return torch.cat((new, rest), dim=-1) if rest.shape[-1] else new
