"""A bounded window of measurements: numbers in, rates and percentiles out.

Every container has a fixed limit, so a server that runs for months holds as much as
one that ran for an hour. Not thread-safe; `Monitor` locks.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

GRADES = ("exact", "restored", "moved", "computed")
# More series than the product has; names from outside cannot fill memory.
MAX_NAMES = 16
OTHER = "other"

Histogram = dict[int, int]
"""Number of values below each power of two (and not below the one before)."""


class History:
    """Windows of the last measurements and counters since the start."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.tokens: deque[tuple[int, ...]] = deque(maxlen=window)
        self.latency: dict[str, deque[float]] = {}
        self.values: dict[str, deque[float]] = {}
        self.stops: deque[str] = deque(maxlen=window)
        self.outcomes: deque[str] = deque(maxlen=window)
        self.eviction_reasons: Counter[str] = Counter()
        self.stop_reasons: Counter[str] = Counter()
        self.totals: Counter[str] = Counter()

    def add_tokens(self, counts: tuple[int, ...]) -> None:
        """Note one answer's tokens in the order of `GRADES`."""
        self.tokens.append(counts)

    def add_latency(self, kind: str, milliseconds: float) -> None:
        """Note one answer's time under its kind."""
        name = bounded(self.latency, kind)
        held = self.latency.get(name)
        if held is None:
            held = self.latency[name] = deque(maxlen=self.window)
        held.append(milliseconds)

    def add_value(self, name: str, value: float) -> None:
        """Note one number of any other series."""
        held = self.values.get(name)
        if held is None:
            name = bounded(self.values, name, 4 * MAX_NAMES)
            held = self.values.setdefault(name, deque(maxlen=self.window))
        held.append(value)

    def add_evictions(self, reason: str, count: int) -> None:
        """Note evicted blocks and why they went."""
        self.eviction_reasons[bounded(self.eviction_reasons, reason)] += count
        self.totals["evictions"] += count

    def add_stop(self, reason: str) -> None:
        """Note why reuse of the cache ended."""
        name = bounded(self.stop_reasons, reason)
        self.stop_reasons[name] += 1
        self.stops.append(name)

    def series(self, name: str) -> deque[float]:
        """One series' window; empty if nothing was recorded."""
        return self.values.get(name) or deque()

    def grade_totals(self) -> dict[str, int]:
        """Tokens in the window by how they came to be."""
        sums = [sum(column) for column in zip(*self.tokens, strict=True)]
        return dict(zip(GRADES, sums or [0] * len(GRADES), strict=True))

    def hit_rate(self) -> float | None:
        """Share of context tokens in the window that were not computed."""
        totals = self.grade_totals()
        context = sum(totals.values())
        return 1.0 - totals["computed"] / context if context else None

    def memory_swing(self) -> float | None:
        """Standard deviation of memory over its mean, in the window."""
        held = self.series("memory_mb")
        if len(held) < 2:
            return None
        mean = sum(held) / len(held)
        if mean <= 0:
            return None
        variance = sum((value - mean) ** 2 for value in held) / len(held)
        return math.sqrt(variance) / mean

    def memory_fell(self) -> bool:
        """Whether memory ever went down in the window; filling up is not a swing."""
        held = list(self.series("memory_mb"))
        return any(
            after < before for before, after in zip(held, held[1:], strict=False)
        )

    def lengths(self) -> Histogram:
        """How long the sequences in the window were."""
        counts: Counter[int] = Counter()
        for row in self.tokens:
            counts[1 << sum(row).bit_length()] += 1
        return dict(sorted(counts.items()))


def bounded(held: Iterable[str], name: str, limit: int = MAX_NAMES) -> str:
    """The name, or `other` if too many different ones were seen already."""
    known = held if isinstance(held, dict) else dict.fromkeys(held)
    return name if name in known or len(known) < limit else OTHER
