"""What happened in the store, counted by name, for statistics and tests."""

from __future__ import annotations

import threading
from collections import Counter
from enum import StrEnum


class Event(StrEnum):
    """A thing that can happen to a block, or to memory; each is one counter."""

    HIT_CHAIN = "hit_chain"
    HIT_CONTENT = "hit_content"
    MISS = "miss"
    STORED = "stored"
    REFUSED = "refused"
    """Not stored: it does not fit, is not finite, or another text has its key."""

    LOADED_RAM = "loaded_ram"
    LOADED_DISK = "loaded_disk"
    EVICTED_RAM = "evicted_ram"
    EVICTED_DISK = "evicted_disk"
    PURGED = "purged"
    RESET = "reset"
    """Volatile and dropped, because the topic changed."""

    GUARDED = "guarded"
    """Not about one block: the memory guard acted and something went."""

    GAVE_WAY = "gave_way"
    """Not about one block: a document lost its pins to the memory guard."""

    LIVE_DROPPED = "live_dropped"
    """Not about one block: a live sequence was freed by the memory guard."""

    OUT_OF_MEMORY = "out_of_memory"
    """Not about one block: an allocation failed, and memory was freed for it."""

    CORRUPT = "corrupt"
    """Broke a rule of docs/format.md or did not decode, and was dropped."""

    MISMATCHED = "mismatched"
    """Was sound but held another text than its key promised, and was dropped."""

    VANISHED = "vanished"
    """Was indexed but its file is gone: another process or a person removed it."""

    READ_FAILED = "read_failed"
    """The system would not read the file; it is left alone and looked at later."""

    WRITTEN = "written"
    WRITE_FAILED = "write_failed"
    """The disk was full, read-only or broken; writing pauses for a while."""


class Counters:
    """Counts of events since the store was opened; thread-safe."""

    def __init__(self) -> None:
        self._counts: Counter[Event] = Counter()
        self._lock = threading.Lock()

    def note(self, event: Event, times: int = 1) -> None:
        """Count an event."""
        with self._lock:
            self._counts[event] += times

    def __getitem__(self, event: Event) -> int:
        return self._counts[event]

    def as_dict(self) -> dict[str, int]:
        """Every counter by name, zeros included."""
        return {event.value: self._counts[event] for event in Event}
