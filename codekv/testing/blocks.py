"""Small blocks of keys and values, and a store that holds them.

Values follow from a number, so that every process makes the same ones and a test can
tell which block it got back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from codekv.storage.blockstore import BlockMetadata, BlockStore, StoreBudget, Upkeep
from codekv.storage.plain import PlainCodec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from codekv.cache.key import BlockRef
    from codekv.storage.encoded import Planes

SHAPES = ((1, 4, 4), (2, 4, 8))
"""Layers of unlike sizes, so that a mix-up of layers shows."""

BYTES_PER_TOKEN = 4 * sum(heads * (k + v) for heads, k, v in SHAPES)  # fp32


class FakeClock:
    """Time that stands still until told to move."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """The present time in seconds."""
        return self.now

    def tick(self, seconds: float = 1.0) -> None:
        """Let time pass."""
        self.now += seconds


def make_planes(num_tokens: int, seed: int) -> Planes:
    """Make keys and values of `SHAPES` that no other seed gives."""
    random = torch.Generator().manual_seed(seed)
    return [
        (
            torch.randn(heads, num_tokens, key_dim, generator=random),
            torch.randn(heads, num_tokens, value_dim, generator=random),
        )
        for heads, key_dim, value_dim in SHAPES
    ]


def planes_for(ref: BlockRef) -> Planes:
    """The keys and values that belong to a block: they follow from its chain key."""
    return make_planes(ref.num_tokens, int.from_bytes(ref.chain[:7], "big"))


def is_same(planes: Planes | None, expected: Planes) -> bool:
    """Tell whether two blocks are equal to the last bit."""
    if planes is None or len(planes) != len(expected):
        return False
    return all(
        torch.equal(mine, theirs)
        for pair, wanted in zip(planes, expected, strict=True)
        for mine, theirs in zip(pair, wanted, strict=True)
    )


def put_all(store: BlockStore, refs: Iterable[BlockRef], persist: bool = True) -> None:
    """Store the blocks that belong to some references."""
    for ref in refs:
        facts = BlockMetadata(bytes(ref.num_tokens), 0.01 * ref.num_tokens, persist)
        store.put(ref, planes_for(ref), facts)


def make_store(
    folder: Path | None = None,
    *,
    ram_tokens: int = 10_000,
    disk_bytes: int = 1 << 24,
    fingerprint: str = "model",
    upkeep: Upkeep | None = None,
    clock: Callable[[], float] | None = None,
) -> BlockStore:
    """Open an exact (fp32) store whose memory budget is counted in tokens."""
    return BlockStore(
        fingerprint=fingerprint,
        budget=StoreBudget(ram_tokens * BYTES_PER_TOKEN, disk_bytes, folder),
        codec=PlainCodec("fp32"),
        upkeep=upkeep,
        kv_shapes=SHAPES,
        clock=clock or FakeClock(),
    )
