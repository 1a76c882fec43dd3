"""What goes into and comes out of the block store beside keys and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from codekv.cache.index import Match, MatchKind
    from codekv.cache.key import BlockRef
    from codekv.units import ChainKey

Tier = Literal["ram", "disk"]


@dataclass(frozen=True, slots=True)
class StoreBudget:
    """How much room the store may take, and how it takes it.

    Attributes:
        disk_dir: None means no disk.
        disk_coding: How files are coded: a name of `codekv.storage.entropy.CODINGS`.
    """

    ram_bytes: int
    disk_bytes: int = 0
    disk_dir: Path | None = None
    disk_coding: str = "plain"


@dataclass(frozen=True, slots=True)
class BlockMetadata:
    """What the store should know of a block beside its keys and values.

    Attributes:
        classes: One syntax class per token, for the codec.
        cost_s: Seconds it takes to compute the block.
        persist: False for blocks that must never reach the disk.
        volatile: Computed ahead, and in no prompt yet: a new topic may drop it.
    """

    classes: bytes
    cost_s: float
    persist: bool = True
    volatile: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A stored block that can stand for `ref`.

    Attributes:
        kind: `chain` is exact; `content` is the same tokens after something else.
        source: Chain key of the stored block.
    """

    ref: BlockRef
    kind: MatchKind
    tier: Tier
    source: ChainKey
    num_bytes: int
    cost_s: float


def best_hit(ref: BlockRef, near: Match | None, far: Match | None) -> Hit | None:
    """Prefer exact to movable, and memory (`near`) to disk (`far`)."""
    if near is not None and (near.kind == "chain" or far is None):
        return _hit(ref, near, "ram")
    if far is not None and (far.kind == "chain" or near is None):
        return _hit(ref, far, "disk")
    return _hit(ref, near, "ram") if near is not None else None


def _hit(ref: BlockRef, match: Match, tier: Tier) -> Hit:
    block = match.block
    return Hit(ref, match.kind, tier, block.chain, block.num_bytes, block.cost_s)
