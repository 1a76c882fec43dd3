"""What goes first, and when: small pure policies by name.

Each sees records and numbers only. Changing state is the manager's business.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from codekv.errors import UsageError

if TYPE_CHECKING:
    from codekv.cache.block import Block


class Policy(Protocol):
    """An order of eviction."""

    def priority(self, block: Block, now: float) -> tuple[float, ...]:
        """Worth of keeping a block at time `now`; the smallest leaves first."""


class Recency:
    """Least recently used leaves first."""

    def priority(self, block: Block, now: float) -> tuple[float, ...]:
        """Time of last use."""
        return (block.used_at,)


@dataclass(frozen=True, slots=True)
class Cost:
    """Cheap to compute, long unused and large leaves first.

    Worth is recompute cost x recency per byte, where recency halves every
    `half_life_s` seconds without use; its logarithm orders the same and cannot
    underflow.
    """

    half_life_s: float = 600.0

    def priority(self, block: Block, now: float) -> tuple[float, ...]:
        """Logarithm of seconds per byte, less the half-lives since last use."""
        per_byte = max(block.cost_s, 1e-9) / max(block.num_bytes, 1)
        age = max(now - block.used_at, 0.0)
        return (math.log2(per_byte) - age / self.half_life_s, block.used_at)


class AttentionImportance:
    """Least attended leaves first; ties by last use."""

    def priority(self, block: Block, now: float) -> tuple[float, ...]:
        """Smoothed share of attention, then time of last use."""
        return (block.importance, block.used_at)


POLICIES: dict[str, Policy] = {
    "recency": Recency(),
    "cost": Cost(),
    "attention": AttentionImportance(),
}


def policy(name: str) -> Policy:
    """Find a policy by its name.

    Raises:
        UsageError: No policy has that name.
    """
    if name not in POLICIES:
        known = ", ".join(sorted(POLICIES))
        raise UsageError(f"no eviction policy is called {name!r}; known: {known}")
    return POLICIES[name]


@dataclass(frozen=True, slots=True)
class MemoryGuard:
    """When more than `threshold` of the budget is used, shrink by half.

    Of what no owner holds, `keep` stays; owners give way only if that is not enough.
    """

    threshold: float = 0.8
    keep: float = 0.5

    def is_over(self, num_bytes: int, budget: int) -> bool:
        """Tell whether this much of the budget is too much."""
        return num_bytes > self.threshold * budget

    def target(self, num_bytes: int, num_held_bytes: int) -> int:
        """Bytes to shrink to."""
        return num_held_bytes + int((num_bytes - num_held_bytes) * self.keep)


def is_purge_due(num_requests: int, interval: int) -> bool:
    """Tell whether request number `num_requests` (from 1) ends with a purge."""
    return interval > 0 and num_requests % interval == 0


def purge_target(budget: int, keep_ratio: float) -> int:
    """Bytes that may stay after a purge.

    A share of the budget and not of what is stored: purging again and again must
    not empty a pool that nothing new pollutes.
    """
    return int(budget * keep_ratio)


def smoothed_importance(old: float, share: float, decay: float = 0.9) -> float:
    """Blend a new share of attention into an old importance."""
    return decay * old + (1.0 - decay) * share


def is_topic_switch(old: tuple[str, str] | None, new: tuple[str, str]) -> bool:
    """Tell whether the (document, function) being worked on is another one."""
    return old is not None and old != new
