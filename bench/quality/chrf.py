"""How near one edit of a text is to another, by the characters that each changes.

Delta chrF: chrF (Popović 2015) of what is added and removed instead of the whole
texts, which are nearly equal whatever is offered. Zed measures its edit predictions so
(commit 99d7b2f, 2025).
"""

from __future__ import annotations

from collections import Counter

MAX_GRAM = 6
"""The length of the longest run of characters compared, as in chrF."""

BETA = 2.0
"""Recall weighs four times as much as precision, as in chrF2."""


def delta_chrf(original: str, wanted: str, offered: str) -> float:
    """Score 0 to 1 for how well `original` → `offered` matches `original` → `wanted`.

    Two edits that change nothing are equal: 1.
    """
    scores = [_score(original, wanted, offered, n) for n in range(1, MAX_GRAM + 1)]
    known = [score for score in scores if score is not None]
    return sum(known) / len(known) if known else 1.0


def _score(original: str, wanted: str, offered: str, size: int) -> float | None:
    """The F score of runs of one length; None if neither edit changes any."""
    base = _grams(original, size)
    aim, got = _delta(base, _grams(wanted, size)), _delta(base, _grams(offered, size))
    if not aim and not got:
        return None
    same = (aim & got).total()
    precision, recall = same / max(got.total(), 1), same / max(aim.total(), 1)
    if not precision + recall:
        return 0.0
    weight = BETA * BETA
    return (1 + weight) * precision * recall / (weight * precision + recall)


def _delta(before: Counter[str], after: Counter[str]) -> Counter[tuple[str, bool]]:
    """Runs that were added (True) and removed (False), with their numbers."""
    added, removed = after - before, before - after
    found = Counter({(gram, True): count for gram, count in added.items()})
    found.update({(gram, False): count for gram, count in removed.items()})
    return found


def _grams(text: str, size: int) -> Counter[str]:
    return Counter(text[at : at + size] for at in range(len(text) - size + 1))
