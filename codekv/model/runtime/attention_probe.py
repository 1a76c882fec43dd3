"""What attention looks at: per token, and per head how far away.

Listens to torch's attention function, so it works for every runtime that uses it.
Dimension key: K kv head, G query heads per kv head, T query, S slot, D head width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from codekv.storage.presets import NUM_SINKS

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

NEAR = 64
"""Slots so close before a query are always read at full precision while typing."""

ENOUGH_QUERIES = 32
"""A step of so many tokens is not folded, so each row of a score is one token's."""


class AttentionMeter(TorchFunctionMode):
    """Sums attention while active.

    Attributes:
        mass_S: Attention that each slot received, over layers and heads; None before
            the first call.
        far_LK: Per layer and kv head, the share of attention that went to slots
            neither near the query nor at the sequence's start.
    """

    num_active = 0
    """How many meters listen now; a runtime of its own attention then calls torch's
    beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.mass_S: Tensor | None = None
        self.far_LK: list[Tensor] = []

    def __enter__(self) -> AttentionMeter:
        """Begin to listen."""
        AttentionMeter.num_active += 1
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        """Stop listening."""
        super().__exit__(*error)
        AttentionMeter.num_active -= 1

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Note calls of the attention function, then let them pass."""
        named = kwargs or {}
        if func is functional.scaled_dot_product_attention:
            with torch.no_grad():
                self._note(args[0], args[1], named.get("attn_mask"))
        return func(*args, **named)

    def _note(self, query: Tensor, key: Tensor, mask: Tensor | None) -> None:
        scores = query.float() @ key.float().transpose(-1, -2) / key.shape[-1] ** 0.5
        num_queries, num_slots = scores.shape[-2:]
        first = num_slots - num_queries
        slots = torch.arange(num_slots, device=scores.device)
        ages_TS = slots[first:, None] - slots[None, :]
        if mask is None:
            scores = scores.masked_fill(ages_TS < 0, -torch.inf)
        elif mask.dtype == torch.bool:
            scores = scores.masked_fill(~mask, -torch.inf)
        else:
            scores = scores + mask
        share_KGTS = torch.softmax(scores, dim=-1)
        mass_S = share_KGTS.flatten(0, -2).sum(0)
        self.mass_S = mass_S if self.mass_S is None else self.mass_S + mass_S
        is_far = (ages_TS > NEAR) & (slots >= NUM_SINKS)
        far_KGT = (share_KGTS * is_far).sum(-1)
        self.far_LK.append(far_KGT.flatten(1).mean(1))
