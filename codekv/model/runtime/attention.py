"""Grouped attention of a step's queries over working KV tensors.

Query heads that share a key head become rows of one product in small steps, so keys
and values are read once; in large steps the shared head is a view with stride 0.
Neither repeats a key in memory. Masks are made once per step, not per layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor

    from codekv.model.runtime.architecture import Architecture

FOLD_TOKENS = 16
"""Up to this many tokens, query heads are folded into rows."""


class GroupedAttention:
    """One step's attention; made once, used by every layer."""

    def __init__(
        self,
        arch: Architecture,
        slots: slice | Tensor,
        seen_TS: Tensor | None,
        dtype: torch.dtype,
    ) -> None:
        """Prepare the mask.

        Args:
            arch: Sizes.
            slots: Where this step's keys and values go: a slice, or indices [T].
            seen_TS: Which slots each token sees, or None: all up to `slots.stop`
                for one token, causal from slot 0 for several.
            dtype: Of the working tensors.
        """
        self._num_kv = arch.num_kv_heads
        self._group = arch.group_size
        self._head_dim = arch.head_dim
        self._slots = slots
        self._dtype = dtype
        self._mask: Tensor | None = None
        self._stop = slots.stop if isinstance(slots, slice) else 0
        self._is_causal = seen_TS is None
        self._folds = False
        if seen_TS is not None:
            count, self._stop = seen_TS.shape
            self._folds = count <= FOLD_TOKENS
            mask_TS = torch.zeros(seen_TS.shape, dtype=dtype, device=seen_TS.device)
            mask_TS.masked_fill_(~seen_TS, -torch.inf)
            self._mask = mask_TS.repeat(self._group, 1) if self._folds else mask_TS

    def __call__(
        self,
        qkv_THD: Tensor,
        keys_KSD: Tensor,
        values_KSD: Tensor,
    ) -> Tensor:
        """Write this step's keys and values **into** the working ones, and attend.

        Args:
            qkv_THD: Rotated queries and keys, and values, stacked along heads.
            keys_KSD: Working keys.
            values_KSD: Working values.

        Returns:
            [T, H * D] in the type of the working tensors.
        """
        num_kv, slots = self._num_kv, self._slots
        keys_KSD[:, slots] = self._cast(qkv_THD[:, -2 * num_kv : -num_kv])
        values_KSD[:, slots] = self._cast(qkv_THD[:, -num_kv:])
        query_THD = qkv_THD[:, : -2 * num_kv].to(self._dtype)
        keys_KSD, values_KSD = keys_KSD[:, : self._stop], values_KSD[:, : self._stop]
        if len(query_THD) == 1 or self._folds:
            return self._folded(query_THD, keys_KSD, values_KSD)
        return self._spread(query_THD, keys_KSD, values_KSD)

    def _cast(self, new_TKD: Tensor) -> Tensor:
        return new_TKD.transpose(0, 1).to(self._dtype)

    def _folded(
        self, query_THD: Tensor, keys_KSD: Tensor, values_KSD: Tensor
    ) -> Tensor:
        count = query_THD.shape[0]
        shape = (count, self._num_kv, self._group, self._head_dim)
        query_KRD = (
            query_THD.reshape(shape)
            .permute(1, 2, 0, 3)
            .reshape(self._num_kv, 1, -1, self._head_dim)
        )
        mixed_KRD = functional.scaled_dot_product_attention(
            query_KRD, keys_KSD[:, None], values_KSD[:, None], attn_mask=self._mask
        )
        mixed_KGTD = mixed_KRD.view(self._num_kv, self._group, count, self._head_dim)
        return mixed_KGTD.permute(2, 0, 1, 3).reshape(count, -1)

    def _spread(
        self, query_THD: Tensor, keys_KSD: Tensor, values_KSD: Tensor
    ) -> Tensor:
        query_KGTD = query_THD.unflatten(1, (self._num_kv, self._group))
        mixed_KGTD = functional.scaled_dot_product_attention(
            query_KGTD.permute(1, 2, 0, 3),
            keys_KSD[:, None].expand(-1, self._group, -1, -1),
            values_KSD[:, None].expand(-1, self._group, -1, -1),
            attn_mask=self._mask,
            is_causal=self._is_causal,
        )
        return mixed_KGTD.permute(2, 0, 1, 3).reshape(query_THD.shape[0], -1)


def causal(
    arch: Architecture, start: int, stop: int, like: tuple[torch.dtype, torch.device]
) -> GroupedAttention:
    """Slots [start, stop), each seeing everything up to itself."""
    dtype, device = like
    seen_TS = None
    if start > 0 and stop - start > 1:
        rows_T = torch.arange(start, stop, device=device)
        seen_TS = torch.arange(stop, device=device) <= rows_T[:, None]
    return GroupedAttention(arch, slice(start, stop), seen_TS, dtype)
