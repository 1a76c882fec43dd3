"""Memory of live sequences: counted against the budget, freed when there is too little.

The store's memory guard frees stored blocks; this frees working tensors. All of it can
be computed again, so a request only gets slower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import torch

from codekv.cache.events import Event
from codekv.cache.policy import MemoryGuard

if TYPE_CHECKING:
    from collections.abc import Callable

    from codekv.cooperative import Cooperative
    from codekv.engine.background.idle import Chains
    from codekv.engine.sequence_pool import SequencePool
    from codekv.storage.blockstore import BlockStore

T = TypeVar("T")

_REFUSALS = ("can't allocate memory", "not enough memory", "out of memory")
"""What torch says where an allocation fails; on CPUs it has no error class for it."""


class LiveMemory:
    """Counts and frees the working tensors of one engine."""

    def __init__(self, store: BlockStore, pool: SequencePool, chains: Chains) -> None:
        self._store = store
        self._pool = pool
        self._chains = chains
        self._guard = MemoryGuard()

    @property
    def num_bytes(self) -> int:
        """Bytes of all working tensors; shared ones count once."""
        tensors = {
            id(kv): kv.num_bytes for kv in (*self._pool.kv(), *self._chains.kv())
        }
        return sum(tensors.values())

    def balance(self) -> None:
        """Tell the store what is in use; where that alone is too much, halve it.

        Chains of documents go first, for nobody waits for them, then sequences, the
        least recently used first. The sequence that was used last stays.
        """
        budget = self._store.budget_bytes
        if self._guard.is_over(self.num_bytes, budget):
            while self.num_bytes > self._guard.keep * budget:
                if not (self._chains.drop_oldest() or self._pool.drop_oldest()):
                    break
                self._store.counters.note(Event.LIVE_DROPPED)
        self._store.reserve(self.num_bytes, self._pool.num_shared_bytes)

    def relieved(self, work: Callable[[], Cooperative[T]]) -> Cooperative[T]:
        """Do work; where memory runs out, free what can be freed and do it again.

        Args:
            work: Makes the work, not yet begun.

        Raises:
            MemoryError: There is too little for the work alone.
        """
        try:
            return (yield from work())
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
        self._store.counters.note(Event.OUT_OF_MEMORY)
        self._pool.clear()
        self._chains.clear()
        self._store.shrink()
        self._store.reserve(self.num_bytes)
        return (yield from work())


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed, on whatever device."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return any(words in str(error) for words in _REFUSALS)
