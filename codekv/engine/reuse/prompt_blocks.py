"""Which slots of a prompt hold which document blocks, and what those are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.units import ChainKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codekv.cache.key import BlockRef
    from codekv.storage.blockstore import BlockStore

NO_PARENT = ChainKey(bytes(16))
"""Parent of whatever stands behind a gap, where nothing is exact."""


@dataclass(frozen=True, slots=True)
class PromptBlock:
    """Prompt slots [start, stop) that hold tokens of one document block.

    Attributes:
        block: All tokens of that block.
        lo: Index in `block` of the token at `start`.
        place: Index in the document of the token at `start`.
    """

    start: int
    stop: int
    block: tuple[int, ...]
    lo: int
    place: int

    @property
    def is_whole(self) -> bool:
        """Whether the slots hold the entire block."""
        return self.lo == 0 and self.stop - self.start == len(self.block)


def refs_of(
    store: BlockStore, tokens: Sequence[int], blocks: Sequence[PromptBlock]
) -> dict[int, BlockRef]:
    """Name each block, by the slot at which it starts in the prompt.

    The chain starts at the first token and ends where a block is not whole.
    """
    refs: dict[int, BlockRef] = {}
    # What stands before the first whole block is the chain's root, as it is in the
    # chains that idle work computes.
    reached = next((block.start for block in blocks if block.is_whole), -1)
    parent: ChainKey | None = None
    if reached > 0:
        parent = store.ref(None, tokens[:reached]).chain
    for block in blocks:
        if block.start < reached:
            refs[block.start] = store.ref(NO_PARENT, block.block)
            continue
        # Behind a gap, a marker say, a block does not stand where it was computed.
        follows = block.start == reached
        ref = store.ref(parent if follows else NO_PARENT, block.block)
        refs[block.start] = ref
        if follows and block.is_whole:
            parent, reached = ref.chain, block.stop
        else:
            parent, reached = NO_PARENT, -1
    return refs
