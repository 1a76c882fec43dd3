"""Percentiles, interpolated, without a numerical library: importing one costs time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def percentile(values: Iterable[float], share: float) -> float | None:
    """Give the value below which `share` of the values lie; None for no values.

    Between two values it is interpolated, as numpy's default does it.
    """
    ordered = sorted(values)
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def spread(values: Iterable[float], *shares: str) -> dict[str, float]:
    """Give percentiles by name (`p50`, `p95`, `p99`, `max`); 0 for no values."""
    known = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    ordered = list(values)
    return {name: round(percentile(ordered, known[name]) or 0.0, 2) for name in shares}
