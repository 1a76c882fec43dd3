"""When memory is cleaned, and by which named policy.

Not thread-safe; the store locks.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.cache.events import Event
from codekv.cache.policy import (
    MemoryGuard,
    is_purge_due,
    is_topic_switch,
    policy,
    purge_target,
)

if TYPE_CHECKING:
    from codekv.config import KvCacheConfig
    from codekv.storage.ram import RamTier


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Which policies keep the memory clean; see docs/settings.md.

    Attributes:
        eviction: Order in which blocks leave when there is no room.
        purge_interval: Requests between purges; 0 for never.
        purge_by: Order in which blocks leave in a purge.
        keep_ratio: Share of the memory budget that may stay after a purge, live
            sequences included. From the memory guard's threshold on nothing is left
            to purge.
        reset_on_topic_switch: Whether a new topic drops what was computed ahead for
            the old one and has been in no prompt.
    """

    eviction: str = "cost"
    purge_interval: int = 10
    purge_by: str = "cost"
    keep_ratio: float = 0.7
    reset_on_topic_switch: bool = False

    @classmethod
    def from_config(cls, kvcache: KvCacheConfig) -> Upkeep:
        """Take the options that concern the store."""
        purge = kvcache.purge_strategy
        threshold = MemoryGuard().threshold
        if purge.interval and purge.keep_ratio >= threshold:
            log.warning(
                "kvcache.purge_strategy.keep_ratio is %g: nothing will be purged, for "
                "the memory guard acts from %g on",
                purge.keep_ratio,
                threshold,
            )
        return cls(
            purge_interval=purge.interval,
            purge_by=purge.importance,
            keep_ratio=purge.keep_ratio,
            reset_on_topic_switch=kvcache.reset_on_topic_switch,
        )


class Housekeeper:
    """Applies an `Upkeep` to the memory tier."""

    def __init__(self, ram: RamTier, upkeep: Upkeep) -> None:
        self._ram = ram
        self._upkeep = upkeep
        self._purge_order = policy(upkeep.purge_by)
        self._num_requests = 0
        self._topic: tuple[str, str] | None = None

    def note_request(self, now: float) -> int:
        """Count a request and purge if it is time; returns how many blocks went."""
        self._num_requests += 1
        if not is_purge_due(self._num_requests, self._upkeep.purge_interval):
            return 0
        return self.purge(now)

    def purge(self, now: float) -> int:
        """Drop the least important blocks; returns how many went."""
        manager = self._ram.manager
        target = purge_target(manager.budget_bytes, self._upkeep.keep_ratio)
        target = max(target - manager.reserved_bytes, 0)
        gone = manager.shrink(target, now, self._purge_order)
        return self._ram.drop(gone, Event.PURGED)

    def shrink(self, keep: float, now: float) -> int:
        """Keep a share of what nobody holds; returns how many blocks went."""
        manager = self._ram.manager
        target = MemoryGuard(keep=keep).target(
            manager.num_bytes, manager.num_held_bytes
        )
        return self._ram.drop(manager.shrink(target, now), Event.EVICTED_RAM)

    def set_topic(self, document: str, function: str) -> int:
        """Note the topic; returns how many volatile blocks a switch dropped."""
        old, self._topic = self._topic, (document, function)
        is_switch = is_topic_switch(old, self._topic)
        if not (is_switch and self._upkeep.reset_on_topic_switch):
            return 0
        return self._ram.drop(self._ram.manager.drop_volatile(), Event.RESET)
