"""Owns block records: reference counts, byte sums, and tables shared copy-on-write.

The only module that changes a reference count. Knows no keys and no priorities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codekv.units import BlockId

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from codekv.cache.block import Block


class BlockPool:
    """All blocks of one tier.

    Attributes:
        num_bytes: Bytes of all blocks.
        num_held_bytes: Bytes of blocks that some owner holds.
    """

    def __init__(self) -> None:
        self.num_bytes = 0
        self.num_held_bytes = 0
        self._blocks: dict[BlockId, Block] = {}
        self._next_id = 0

    def __len__(self) -> int:
        return len(self._blocks)

    def __iter__(self) -> Iterator[Block]:
        return iter(self._blocks.values())

    def __contains__(self, block_id: BlockId) -> bool:
        return block_id in self._blocks

    def __getitem__(self, block_id: BlockId) -> Block:
        return self._blocks[block_id]

    def new_id(self) -> BlockId:
        """Make an id that was never used before in this pool."""
        self._next_id += 1
        return BlockId(self._next_id)

    def add(self, block: Block) -> None:
        """Take a new block that nobody holds yet.

        Raises:
            ValueError: Its id is taken, or somebody holds it.
        """
        if block.id in self._blocks or block.num_refs:
            raise ValueError(f"block {block.id} is not new to this pool")
        self._blocks[block.id] = block
        self.num_bytes += block.num_bytes

    def remove(self, block_id: BlockId) -> Block:
        """Give up a block that nobody holds.

        Raises:
            ValueError: Somebody holds it.
        """
        block = self._blocks[block_id]
        if block.num_refs:
            raise ValueError(f"block {block_id} is held {block.num_refs} times")
        del self._blocks[block_id]
        self.num_bytes -= block.num_bytes
        return block

    def acquire(self, block_id: BlockId) -> None:
        """Hold a block once more."""
        block = self._blocks[block_id]
        if not block.num_refs:
            self.num_held_bytes += block.num_bytes
        block.num_refs += 1

    def release(self, block_id: BlockId) -> None:
        """Undo one `acquire`.

        Raises:
            ValueError: Nobody holds the block.
        """
        block = self._blocks[block_id]
        if not block.num_refs:
            raise ValueError(f"block {block_id} is released more often than held")
        block.num_refs -= 1
        if not block.num_refs:
            self.num_held_bytes -= block.num_bytes

    def evictable(self) -> list[Block]:
        """Blocks that nobody holds, oldest first."""
        return [block for block in self._blocks.values() if not block.num_refs]

    def check(self, tables: Iterable[BlockTable]) -> None:
        """Verify counts and sums against all tables that exist.

        Raises:
            AssertionError: The structure is broken.
        """
        refs: dict[BlockId, int] = {}
        for table in tables:
            for block_id in table.ids:
                refs[block_id] = refs.get(block_id, 0) + 1
        assert refs.keys() <= self._blocks.keys(), "a table holds a removed block"
        for block_id, block in self._blocks.items():
            assert block.id == block_id <= self._next_id, "a block under a wrong id"
            assert block.num_refs == refs.get(block_id, 0), "a wrong reference count"
        held = [block.num_bytes for block in self._blocks.values() if block.num_refs]
        assert self.num_held_bytes == sum(held), "a wrong sum of held bytes"
        total = sum(block.num_bytes for block in self._blocks.values())
        assert self.num_bytes == total, "a wrong sum of bytes"


class BlockTable:
    """The blocks one owner is made of, in order; shared copy-on-write.

    Owners are documents and requests. A fork costs a count per block; a change
    touches the changing owner's table only, and a block lives as long as one table
    has it.
    """

    def __init__(self, pool: BlockPool, ids: Iterable[BlockId] = ()) -> None:
        self._pool = pool
        self._ids: list[BlockId] = []
        self.assign(ids)

    @property
    def ids(self) -> tuple[BlockId, ...]:
        """The blocks held, in order; a block may stand more than once."""
        return tuple(self._ids)

    def fork(self) -> BlockTable:
        """Make a second owner of the same blocks."""
        return BlockTable(self._pool, self._ids)

    def assign(self, ids: Iterable[BlockId]) -> None:
        """Hold these blocks and no others."""
        new = list(ids)
        # Acquire first: a block in both must not fall to zero in between.
        for block_id in new:
            self._pool.acquire(block_id)
        for block_id in self._ids:
            self._pool.release(block_id)
        self._ids = new

    def close(self) -> None:
        """Hold nothing any more; may be called twice."""
        self.assign(())
