"""Which tokens and which heads matter to a text, by their attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from codekv.model.runtime.attention_probe import AttentionMeter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.lab.context import Text
    from codekv.model.runtime.interface import Runtime
    from codekv.storage.tensors import KVTensors

NUM_QUERIES = 128
"""Enough of a context's end that no single line decides what is looked at."""


def watch(
    runtime: Runtime, kv: KVTensors, text: Text
) -> tuple[list[float], list[list[float]]]:
    """Run a text's context and listen to its last queries.

    The probe is not looked at: importance has to be known when a block is stored.

    Args:
        runtime: Its attention must go through torch's attention function.
        kv: **Overwritten** with the context.
        text: At least `NUM_QUERIES` tokens long.

    Returns:
        Attention per context token, and per layer and kv head the far share.
    """
    start = text.num_context - NUM_QUERIES
    runtime.forward(kv, text.tokens[:start], 0, "none")
    meter = AttentionMeter()
    with meter:
        runtime.forward(kv, text.tokens[start : text.num_context], start, "none")
    if meter.mass_S is None:
        return [1.0] * text.num_context, []
    return meter.mass_S.tolist(), [row.tolist() for row in meter.far_LK]


def important_heads(
    shares: Mapping[str, Sequence[Sequence[float]]], keep_share: float
) -> tuple[tuple[int, int], ...]:
    """The (layer, kv head) pairs that look furthest, averaged over texts."""
    if not any(shares.values()):
        return ()
    tables = torch.tensor(list(shares.values())).mean(0)
    num_kept = round(tables.numel() * keep_share)
    order = tables.flatten().argsort(descending=True, stable=True)[:num_kept]
    width = tables.shape[1]
    return tuple(sorted((int(i) // width, int(i) % width) for i in order))
