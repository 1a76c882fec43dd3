"""Ways of storing a context: each puts back what it would restore, and counts bytes.

Codec schemes work on canonical planes, block by block. Cached schemes copy what other
engines do: they quantise keys as attention sees them, rotated and with their bias.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch

from codekv.engine.live_sequence import LiveSequence
from codekv.engine.reuse.kv_transfer import slice_planes, write_blocks
from codekv.storage.hadamard import can_rotate, rotate_heads
from codekv.storage.presets import pin_first

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from bench.lab.context import Exact, Text
    from codekv.model.runtime.interface import Runtime
    from codekv.storage.encoded import Codec
    from codekv.storage.tensors import KVTensors

    Blocks = Sequence[tuple[int, int]]


class Scheme(Protocol):
    """A way of storing a context."""

    @property
    def name(self) -> str:
        """How reports call it."""

    def restore(self, runtime: Runtime, kv: KVTensors, text: Text, exact: Exact) -> int:
        """Fill `kv` with what would be restored; the bytes at rest."""


def same_classes(text: Text) -> bytes:
    """The classes as syntax gives them."""
    return text.classes


def same_blocks(text: Text) -> Blocks:
    """The blocks as syntax cuts them."""
    return text.blocks


@dataclass(frozen=True, slots=True)
class CodecScheme:
    """What the server does; `classes` and `blocks` are changed by controls."""

    name: str
    codec: Codec
    classes: Callable[[Text], bytes] = same_classes
    blocks: Callable[[Text], Blocks] = same_blocks

    def restore(self, runtime: Runtime, kv: KVTensors, text: Text, exact: Exact) -> int:
        """See Scheme."""
        classes = pin_first(self.classes(text))
        parts, num_bytes = [], 0
        for start, stop in self.blocks(text):
            planes = slice_planes(exact.planes, start, stop)
            encoded = self.codec.encode(planes, classes[start:stop])
            num_bytes += encoded.num_bytes
            parts.append((start, self.codec.decode(encoded)))
        write_blocks(runtime, LiveSequence(kv), parts)
        return num_bytes


@dataclass(frozen=True, slots=True)
class CachedScheme:
    """Quantise keys and values as they stand in the cache.

    Attributes:
        bits_per_element: Scales included.
        keys: Maps [H, T, D] to what would come back.
        values: The same for values.
    """

    name: str
    bits_per_element: float
    keys: Callable[[Tensor], Tensor]
    values: Callable[[Tensor], Tensor]

    def restore(self, runtime: Runtime, kv: KVTensors, text: Text, exact: Exact) -> int:
        """See Scheme."""
        del runtime
        num_elements = 0
        for layer, (keys, values) in enumerate(exact.cached):
            kv.write(layer, 0, self.keys(keys), self.values(values))
            num_elements += keys.numel() + values.numel()
        return round(num_elements * self.bits_per_element / 8)


def symmetric_rows(width: int, group: int) -> Callable[[Tensor], Tensor]:
    """One scale per token and `group` channels, no zero point (q8_0, q4_0)."""

    def turn(data_HTD: Tensor) -> Tensor:
        span = group if data_HTD.shape[-1] % group == 0 else data_HTD.shape[-1]
        parts = data_HTD.unflatten(-1, (-1, span))
        largest = 2 ** (width - 1) - 1
        step = parts.abs().amax(-1, keepdim=True).clamp(min=1e-12) / largest
        return ((parts / step).round().clamp(-largest - 1, largest) * step).flatten(-2)

    return turn


def hadamard_rows(width: int, group: int) -> Callable[[Tensor], Tensor]:
    """The same after a Hadamard rotation of every head."""
    plain = symmetric_rows(width, group)

    def turn(data_HTD: Tensor) -> Tensor:
        dim = data_HTD.shape[-1]
        if not can_rotate(dim):
            return plain(data_HTD)
        turned = rotate_heads(data_HTD.reshape(-1, dim), dim).view(data_HTD.shape)
        back = plain(turned).reshape(-1, dim)
        return rotate_heads(back, dim).view(data_HTD.shape)

    return turn


def channel_groups(width: int, group: int) -> Callable[[Tensor], Tensor]:
    """One scale and zero point per channel over `group` tokens, for keys and values."""

    def turn(data_HTD: Tensor) -> Tensor:
        return torch.cat(
            [_affine(part, width) for part in data_HTD.split(group, dim=1)], dim=1
        )

    return turn


def _affine(part_HTD: Tensor, width: int) -> Tensor:
    low = part_HTD.amin(1, keepdim=True)
    span = part_HTD.amax(1, keepdim=True) - low
    step = span.clamp(min=1e-12) / (2**width - 1)
    return ((part_HTD - low) / step).round() * step + low
