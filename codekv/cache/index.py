"""Prefix index: which block answers a reference, exactly or by content.

Keys are chained hashes, so one look-up per block finds the longest prefix and every
later exact block as well; no tree is walked. Cost: two dictionary look-ups per block
asked for, whatever the number stored. Knows nothing of sizes, owners or priorities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from codekv.cache.block import Block
    from codekv.cache.key import BlockRef
    from codekv.units import BlockId, ChainKey, ContentKey

MatchKind = Literal["chain", "content"]


@dataclass(frozen=True, slots=True)
class Match:
    """A stored block that answers a reference.

    Attributes:
        kind: `chain`: same text from the start, exact. `content`: same tokens after
            something else; usable only where blocks may be moved.
    """

    block: Block
    kind: MatchKind


class PrefixIndex:
    """All blocks of one tier, by chain key and by content key."""

    def __init__(self) -> None:
        self._by_chain: dict[ChainKey, Block] = {}
        # Variants of one content, the newest last.
        self._by_content: dict[ContentKey, dict[BlockId, Block]] = {}

    def __len__(self) -> int:
        return len(self._by_chain)

    def get(self, chain: ChainKey) -> Block | None:
        """Find a block by its chain key alone, unverified."""
        return self._by_chain.get(chain)

    def match(self, ref: BlockRef) -> Match | None:
        """Find the best block for a reference.

        A block whose tokens are known is compared with the reference, so two texts
        with the same hash are a miss; one whose tokens are not known must be compared
        by whoever reads its bytes.
        """
        block = self._by_chain.get(ref.chain)
        if block is not None and (
            block.tokens is None
            or (block.tokens == ref.tokens and block.parent == ref.parent)
        ):
            return Match(block, "chain")
        for block in self._variants(ref.content):
            if block.tokens is None or block.tokens == ref.tokens:
                return Match(block, "content")
        return None

    def insert(self, block: Block) -> None:
        """Add a block as the newest variant of its content.

        Raises:
            ValueError: Its chain key is taken.
        """
        if block.chain in self._by_chain:
            raise ValueError(f"chain key {block.chain.hex()} is indexed already")
        self._by_chain[block.chain] = block
        self._by_content.setdefault(block.content, {})[block.id] = block

    def remove(self, block: Block) -> None:
        """Forget a block.

        Raises:
            KeyError: It is not in the index.
        """
        del self._by_chain[block.chain]
        variants = self._by_content[block.content]
        del variants[block.id]
        if not variants:
            del self._by_content[block.content]

    def is_superseded(self, block: Block) -> bool:
        """Tell whether a newer block with the same content is stored."""
        return next(self._variants(block.content)) is not block

    def check(self, blocks: Iterable[Block]) -> None:
        """Verify that exactly `blocks` are indexed, each under both keys.

        Raises:
            AssertionError: The structure is broken.
        """
        expected = {block.id: block for block in blocks}
        chains = {block.id: block for block in self._by_chain.values()}
        assert chains == expected, "chain keys and blocks differ"
        for chain, block in self._by_chain.items():
            assert block.chain == chain, "a block under a wrong chain key"
        seen: dict[BlockId, Block] = {}
        for content, variants in self._by_content.items():
            assert variants, "a content key without blocks"
            assert list(variants) == sorted(variants), "variants out of order"
            assert all(block.content == content for block in variants.values())
            seen.update(variants)
        assert seen == expected, "content keys and blocks differ"

    def _variants(self, content: ContentKey) -> Iterator[Block]:
        """Blocks with this content, the newest first."""
        return reversed(self._by_content.get(content, {}).values())
