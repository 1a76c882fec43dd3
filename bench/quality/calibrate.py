"""What `completion.min_confidence` would keep, from answers that were judged."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codekv.completion.api import Completion

THRESHOLDS = (0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Mean probabilities, from withholding nothing to withholding most."""


def confidence(completion: Completion) -> float | None:
    """The mean probability of a token of the first item, as the setting counts it."""
    score = completion.items[0].score if completion.items else None
    return None if score is None else math.exp(score)


def calibration(
    answers: Iterable[tuple[float | None, bool]],
) -> list[dict[str, Any]]:
    """For each threshold: the share of answers kept, and how many of them were right.

    Args:
        answers: Confidence and whether the text was right; empty answers have no
            confidence and do not count.
    """
    known = [(sure, right) for sure, right in answers if sure is not None]
    table = []
    for threshold in THRESHOLDS:
        kept = [right for sure, right in known if sure >= threshold]
        lost = [right for sure, right in known if sure < threshold]
        table.append(
            {
                "threshold": threshold,
                "kept": len(kept) / max(len(known), 1),
                "exact_match": sum(kept) / max(len(kept), 1),
                "exact_match_withheld": sum(lost) / max(len(lost), 1),
            }
        )
    return table
