"""The facade over index, pool and policies of one tier.

Decides which blocks are here, who holds them and which leave; whoever owns the bytes
drops those of the blocks that a call returns. Times are passed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.cache.block import Block
from codekv.cache.index import Match, PrefixIndex
from codekv.cache.policy import MemoryGuard, smoothed_importance
from codekv.cache.pool import BlockPool, BlockTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from codekv.cache.key import BlockRef
    from codekv.cache.policy import Policy
    from codekv.units import ChainKey, ContentKey


MAX_EXPECTED = 256
"""Blocks whose attention is remembered until they are stored: more than the prompts of
all live sequences have."""


@dataclass(frozen=True, slots=True)
class NewBlock:
    """What is to be stored; see `Block`."""

    chain: ChainKey
    content: ContentKey
    parent: ChainKey | None
    tokens: bytes | None
    num_tokens: int
    num_bytes: int
    cost_s: float
    is_volatile: bool = False


@dataclass(frozen=True, slots=True)
class Insertion:
    """Outcome of an insertion.

    Attributes:
        block: The record, or None: it does not fit, or another text has its key.
        is_new: False if the block was here before.
        evicted: Records that had to go; their bytes are the caller's to drop.
    """

    block: Block | None
    is_new: bool
    evicted: tuple[Block, ...] = ()


class CacheManager:
    """Integers of one tier.

    Attributes:
        budget_bytes: Limit of all blocks and of what is reserved.
        reserved_bytes: What others use of the budget: the live sequences' tensors.
        num_guarded: How often the memory guard acted and something went.
        num_gave_way: How many owners lost what they held to it.
    """

    def __init__(
        self, budget_bytes: int, policy: Policy, guard: MemoryGuard | None = None
    ) -> None:
        self.budget_bytes = budget_bytes
        self.reserved_bytes = 0
        self.num_guarded = 0
        self.num_gave_way = 0
        self._policy = policy
        self._guard = guard or MemoryGuard()
        self._index = PrefixIndex()
        self._pool = BlockPool()
        # Importance of blocks that are not here yet, the latest last.
        self._expected: dict[ChainKey, float] = {}
        # Least recently used first.
        self._tables: dict[str, BlockTable] = {}

    def __len__(self) -> int:
        return len(self._pool)

    @property
    def num_bytes(self) -> int:
        """Bytes of all blocks."""
        return self._pool.num_bytes

    @property
    def num_held_bytes(self) -> int:
        """Bytes of blocks that some owner holds."""
        return self._pool.num_held_bytes

    @property
    def owners(self) -> list[str]:
        """Who holds blocks, the least recently used first."""
        return list(self._tables)

    @property
    def num_tokens(self) -> int:
        """Tokens of all blocks."""
        return sum(block.num_tokens for block in self._pool)

    def match(self, refs: Sequence[BlockRef]) -> list[Match | None]:
        """Find the best block for each reference; changes nothing."""
        return [self._index.match(ref) for ref in refs]

    def get(self, chain: ChainKey) -> Block | None:
        """Find a block by its chain key alone, unverified."""
        return self._index.get(chain)

    def blocks(self) -> list[Block]:
        """All records, oldest first."""
        return list(self._pool)

    def is_superseded(self, block: Block) -> bool:
        """Tell whether a newer block with the same content is here."""
        return self._index.is_superseded(block)

    def insert(self, new: NewBlock, now: float) -> Insertion:
        """Add a block, making room as `relieve` does.

        Storing a block that is here already only marks it as used. One that does not
        fit beside what the last owner holds is refused.
        """
        old = self._index.get(new.chain)
        if old is not None:
            if None not in (old.tokens, new.tokens) and old.tokens != new.tokens:
                return Insertion(None, is_new=False)
            old.used_at = now
            return Insertion(old, is_new=False)
        if self._num_kept_bytes() + new.num_bytes > self._num_free_bytes():
            return Insertion(None, is_new=False)
        evicted = self.relieve(now, new.num_bytes)
        block = Block(
            id=self._pool.new_id(),
            chain=new.chain,
            content=new.content,
            parent=new.parent,
            tokens=new.tokens,
            num_tokens=new.num_tokens,
            num_bytes=new.num_bytes,
            cost_s=new.cost_s,
            used_at=now,
            importance=self._expected.pop(new.chain, 0.0),
            is_volatile=new.is_volatile,
        )
        self._pool.add(block)
        self._index.insert(block)
        return Insertion(block, is_new=True, evicted=tuple(evicted))

    def touch(self, chain: ChainKey, now: float) -> None:
        """Mark a block as used, for a prompt; unknown keys are ignored."""
        block = self._index.get(chain)
        if block is not None:
            block.used_at = now
            block.is_volatile = False

    def note_attention(self, chain: ChainKey, share: float) -> None:
        """Blend a share of attention (0 to 1) into a block's importance.

        A block that is not here yet gets it when it comes: in a document's first
        pause attention is measured before the blocks are stored.
        """
        block = self._index.get(chain)
        if block is not None:
            block.importance = smoothed_importance(block.importance, share)
            return
        before = self._expected.pop(chain, 0.0)
        self._expected[chain] = smoothed_importance(before, share)
        while len(self._expected) > MAX_EXPECTED:
            self._expected.pop(next(iter(self._expected)))

    def discard(self, chain: ChainKey) -> Block | None:
        """Remove a block even if it is held, because its bytes are gone.

        Owners simply lose it: they can compute it again.
        """
        block = self._index.get(chain)
        if block is None:
            return None
        if block.num_refs:
            for table in self._tables.values():
                table.assign(i for i in table.ids if i != block.id)
        self._drop(block)
        return block

    def shrink(
        self, target_bytes: int, now: float, policy: Policy | None = None
    ) -> list[Block]:
        """Evict what nobody holds until at most `target_bytes` are left.

        Blocks of which a newer variant is here leave first, then by `policy` (by
        default the tier's own). May end above the target: held blocks stay.
        """
        if self.num_bytes <= target_bytes:
            return []
        chosen = policy or self._policy
        order = sorted(
            self._pool.evictable(),
            key=lambda block: (
                not self._index.is_superseded(block),
                chosen.priority(block, now),
            ),
        )
        evicted: list[Block] = []
        for block in order:
            if self.num_bytes <= target_bytes:
                break
            evicted.append(self._drop(block))
        return evicted

    def drop_volatile(self) -> list[Block]:
        """Evict volatile blocks that nobody holds."""
        found = [block for block in self._pool.evictable() if block.is_volatile]
        return [self._drop(block) for block in found]

    def relieve(self, now: float, num_bytes: int = 0) -> list[Block]:
        """Let the memory guard act if it must: shrink by half, for `num_bytes` more.

        What nobody holds leaves first. If that is not enough, owners give way, the
        least recently used first; the last one keeps what it holds.
        """
        if not self._is_over(num_bytes):
            return []
        room = self._num_free_bytes() - num_bytes
        target = self._guard.target(self.num_bytes, self.num_held_bytes)
        gone = self.shrink(min(target, room), now)
        half = int(self._guard.keep * self.budget_bytes) - self.reserved_bytes
        while self._is_over(num_bytes) and len(self._tables) > 1:
            self.release(next(iter(self._tables)))
            self.num_gave_way += 1
            gone += self.shrink(max(min(half, room), 0), now)
        self.num_guarded += bool(gone)
        return gone

    def hold(self, owner: str, chains: Iterable[ChainKey], now: float) -> int:
        """Let `owner` hold these blocks instead of what it held before.

        Returns:
            How many of them are here; the others are ignored.
        """
        found = [self._index.get(chain) for chain in chains]
        blocks = [block for block in found if block is not None]
        for block in blocks:
            block.used_at = now
        table = self._tables.pop(owner, None) or BlockTable(self._pool)
        self._tables[owner] = table
        table.assign(block.id for block in blocks)
        return len(blocks)

    def fork(self, owner: str, new_owner: str) -> None:
        """Let `new_owner` hold what `owner` holds; later changes are its own."""
        self.release(new_owner)
        if owner in self._tables:
            self._tables[new_owner] = self._tables[owner].fork()

    def release(self, owner: str) -> None:
        """Let an owner hold nothing; unknown owners are ignored."""
        table = self._tables.pop(owner, None)
        if table is not None:
            table.close()

    def clear(self) -> None:
        """Remove every block and every owner."""
        for owner in list(self._tables):
            self.release(owner)
        for block in list(self._pool):
            self._drop(block)
        self._expected.clear()

    def check(self) -> None:
        """Verify index, pool and budget.

        Raises:
            AssertionError: The structure is broken.
        """
        self._pool.check(self._tables.values())
        self._index.check(self._pool)
        assert self.num_bytes <= self.budget_bytes, "more than the budget"

    def _is_over(self, num_bytes: int) -> bool:
        """Whether the guard would act if so many bytes were added."""
        used = self.num_bytes + self.reserved_bytes + num_bytes
        return self._guard.is_over(used, self.budget_bytes)

    def _num_free_bytes(self) -> int:
        """What is left of the budget for blocks."""
        return max(self.budget_bytes - self.reserved_bytes, 0)

    def _num_kept_bytes(self) -> int:
        """Bytes of what the last owner holds: the guard leaves them alone."""
        last = next(reversed(self._tables.values()), None)
        ids = set(last.ids) if last is not None else set()
        return sum(block.num_bytes for block in self._pool if block.id in ids)

    def _drop(self, block: Block) -> Block:
        self._index.remove(block)
        return self._pool.remove(block.id)
