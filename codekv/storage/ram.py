"""The compressed blocks in memory: encoded bytes under a byte budget.

Not thread-safe; the store locks.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from codekv.cache.events import Counters, Event
from codekv.cache.manager import CacheManager, NewBlock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from codekv.cache.block import Block
    from codekv.cache.policy import Policy
    from codekv.storage.encoded import EncodedBlock
    from codekv.units import ChainKey


class RamTier:
    """Records in `manager`, bytes here; both change together."""

    def __init__(self, budget_bytes: int, policy: Policy, counters: Counters) -> None:
        self.manager = CacheManager(budget_bytes, policy)
        self.counters = counters
        self._encoded: dict[ChainKey, EncodedBlock] = {}

    def get(self, chain: ChainKey) -> EncodedBlock | None:
        """The bytes of a block; they stay valid even if it is evicted."""
        return self._encoded.get(chain)

    def keep(self, new: NewBlock, encoded: EncodedBlock, now: float) -> bool:
        """Keep a block if it fits.

        Returns:
            Whether the block is here now, this one or an equal older one.
        """
        with self._counting_guard():
            result = self.manager.insert(new, now)
        self.drop(result.evicted, Event.EVICTED_RAM)
        if result.is_new:
            self._encoded[new.chain] = encoded
        return result.block is not None

    def relieve(self, now: float) -> int:
        """Let the memory guard act if it must; returns how many blocks went."""
        with self._counting_guard():
            gone = self.manager.relieve(now)
        return self.drop(gone, Event.EVICTED_RAM)

    def drop(self, removed: Iterable[Block], event: Event) -> int:
        """Free the bytes of records that the manager gave up.

        Returns:
            How many there were.
        """
        num_dropped = 0
        for block in removed:
            del self._encoded[block.chain]
            num_dropped += 1
        self.counters.note(event, num_dropped)
        return num_dropped

    def discard(self, chain: ChainKey) -> None:
        """Remove a block even if it is held; unknown keys are ignored."""
        if self.manager.discard(chain) is not None:
            del self._encoded[chain]

    def clear(self) -> None:
        """Remove everything."""
        self.manager.clear()
        self._encoded.clear()

    @contextmanager
    def _counting_guard(self) -> Iterator[None]:
        """Count what the memory guard does inside."""
        manager = self.manager
        guarded, gave_way = manager.num_guarded, manager.num_gave_way
        yield
        self.counters.note(Event.GUARDED, manager.num_guarded - guarded)
        self.counters.note(Event.GAVE_WAY, manager.num_gave_way - gave_way)

    def check(self) -> None:
        """Verify that records and bytes agree.

        Raises:
            AssertionError: The structure is broken.
        """
        self.manager.check()
        sizes = {chain: encoded.num_bytes for chain, encoded in self._encoded.items()}
        expected = {block.chain: block.num_bytes for block in self.manager.blocks()}
        assert sizes == expected, "records and bytes differ"
