"""Grouped attention of a step's queries over working KV tensors.

Heads that share a key head are folded into the query rows, so keys and values are
read once and never repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor

    from codekv.model.architecture import Architecture


class Attention(Protocol):
    """Writes this step's keys and values, then attends."""

    def __call__(
        self,
        query_THD: Tensor,
        new: tuple[Tensor, Tensor],
        kept: tuple[Tensor, Tensor],
    ) -> Tensor:
        """Mix values.

        Args:
            query_THD: Rotated queries.
            new: Keys and values [T, K, D] of this step.
            kept: Working keys and values [K, S, D]; this step's slots are **written**.

        Returns:
            float32 [T, H * D].
        """


class MaskedAttention:
    """Any slots, any visibility."""

    def __init__(self, arch: Architecture, slots_T: Tensor, mask_TS: Tensor) -> None:
        self._arch = arch
        self._slots_T = slots_T
        self._mask_TS = mask_TS

    def __call__(
        self,
        query_THD: Tensor,
        new: tuple[Tensor, Tensor],
        kept: tuple[Tensor, Tensor],
    ) -> Tensor:
        """See Attention."""
        keys_KSD, values_KSD = kept
        keys_KSD[:, self._slots_T] = new[0].transpose(0, 1).to(keys_KSD.dtype)
        values_KSD[:, self._slots_T] = new[1].transpose(0, 1).to(values_KSD.dtype)
        stop = self._mask_TS.shape[1]
        return attend(
            query_THD, keys_KSD[:, :stop], values_KSD[:, :stop], self._mask_TS
        )


class CausalAttention:
    """Slots [start, stop), each seeing everything up to itself."""

    def __init__(self, arch: Architecture, start: int, stop: int) -> None:
        self._arch = arch
        self._start = start
        self._stop = stop
        self._mask_TS: Tensor | None = None

    def __call__(
        self,
        query_THD: Tensor,
        new: tuple[Tensor, Tensor],
        kept: tuple[Tensor, Tensor],
    ) -> Tensor:
        """See Attention."""
        start, stop = self._start, self._stop
        keys_KSD, values_KSD = kept
        keys_KSD[:, start:stop] = new[0].transpose(0, 1)
        values_KSD[:, start:stop] = new[1].transpose(0, 1)
        if self._mask_TS is None and stop - start > 1:
            device = query_THD.device
            rows_T = torch.arange(start, stop, device=device)
            self._mask_TS = torch.arange(stop, device=device) <= rows_T[:, None]
        return attend(
            query_THD, keys_KSD[:, :stop], values_KSD[:, :stop], self._mask_TS
        )


def attend(
    query_THD: Tensor, keys_KSD: Tensor, values_KSD: Tensor, mask_TS: Tensor | None
) -> Tensor:
    """Attend with an optional visibility mask; float32 [T, H * D]."""
    count, heads, _ = query_THD.shape
    num_kv = keys_KSD.shape[0]
    group = heads // num_kv
    query_KGTD = query_THD.to(keys_KSD.dtype).unflatten(1, (num_kv, group))
    query_KGTD = query_KGTD.permute(1, 2, 0, 3)
    mixed_KGTD = functional.scaled_dot_product_attention(
        query_KGTD,
        keys_KSD[:, None].expand(-1, group, -1, -1),
        values_KSD[:, None].expand(-1, group, -1, -1),
        attn_mask=mask_TS,
    )
    return mixed_KGTD.permute(2, 0, 1, 3).reshape(count, -1).to(torch.float32)
