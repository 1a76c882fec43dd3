"""Idle: tell the store how much attention each block of a prompt gets.

What the last tokens look at is what an answer would miss, so purging by importance
can keep it (heavy hitters: H2O, Zhang et al. 2023, by block instead of by token).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from codekv.engine.reuse.prompt_blocks import refs_of
from codekv.model.runtime.attention_probe import ENOUGH_QUERIES, AttentionMeter

if TYPE_CHECKING:
    from codekv.cooperative import Cooperative
    from codekv.engine.live_sequence import LiveSequence
    from codekv.engine.reuse.plan import PrefillRequest
    from codekv.model.runtime.interface import Runtime
    from codekv.storage.blockstore import BlockStore


def weigh(
    runtime: Runtime, store: BlockStore, seq: LiveSequence, request: PrefillRequest
) -> Cooperative[None]:
    """Note for each block of a prompt the share of attention its slots get.

    Also for those that are stored only later in the same pause.

    Args:
        runtime: Its attention must go through torch's; else nothing is noted.
        store: Told the shares.
        seq: Holds the prompt exactly; its last slots are computed again.
        request: The prompt.
    """
    tokens, blocks = request.tokens, request.blocks
    start = len(tokens) - ENOUGH_QUERIES
    if start <= 0 or seq.common_prefix(tokens) < len(tokens):
        return
    meter = AttentionMeter()
    with meter:
        runtime.forward(seq.kv, tokens[start:], start, "none")
    yield
    if meter.mass_S is None:
        return
    share_S = (meter.mass_S / meter.mass_S.sum()).cumsum(0).tolist()
    refs = refs_of(store, tokens, blocks)
    hits = store.match([refs[block.start] for block in blocks])
    for block, hit in zip(blocks, hits, strict=True):
        before = share_S[block.start - 1] if block.start else 0.0
        share = share_S[block.stop - 1] - before
        ref = refs[block.start]
        store.note_attention(
            ref if hit is None else replace(ref, chain=hit.source), share
        )
