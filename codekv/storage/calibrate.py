"""Find the cheapest bits per class whose summed divergence stays under a limit.

Each class was measured alone at each pair of widths, all others in 16 bit; summing
those is an estimate, so the table found is measured before it is used. The idea is
rate-distortion allocation (RDKV, 2026).
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from codekv.storage.presets import NUM_CLASSES, BitPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Pair = tuple[int, int]
"""Bits for keys and for values."""

PAIRS: tuple[Pair, ...] = ((2, 2), (3, 3), (4, 4), (6, 4), (8, 8))
"""What classes are measured at."""

LIMIT = 0.002
"""Mean divergence, in nats, that a calibrated table may cost."""

_MARGIN = 0.75  # classes hurt more together than one by one


def allocate(
    cost: Mapping[tuple[int, Pair], float], shares: Sequence[float], limit: float
) -> BitPolicy:
    """Choose a pair of widths for every class.

    Args:
        cost: Divergence of each class at each pair, the others untouched.
        shares: Share of tokens of each class; classes without tokens get what the
            largest class gets.
        limit: The sum of the chosen costs stays below three quarters of it if any
            choice does; otherwise the choice with the smallest sum is taken.
    """
    pairs = sorted({pair for _, pair in cost})
    best: tuple[tuple[bool, float, float], tuple[Pair, ...]] | None = None
    for choice in product(pairs, repeat=NUM_CLASSES):
        total = sum(cost[kind, pair] for kind, pair in enumerate(choice))
        size = sum(share * sum(p) for share, p in zip(shares, choice, strict=True))
        is_over = total > limit * _MARGIN
        rank = (is_over, total if is_over else size, total)
        if best is None or rank < best[0]:
            best = rank, choice
    assert best is not None
    largest = max(range(NUM_CLASSES), key=lambda kind: shares[kind])
    chosen = [
        best[1][kind] if shares[kind] else best[1][largest]
        for kind in range(NUM_CLASSES)
    ]
    return BitPolicy(
        "auto", tuple(key for key, _ in chosen), tuple(value for _, value in chosen)
    )
