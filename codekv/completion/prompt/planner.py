"""What to compute before an answer and what to leave to idle time: a pure policy.

Held against a budget of tokens: first the whole context, then the whole context with
less and less repair of what was moved, then as much of it as is at hand, then what lies
nearest the cursor.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from codekv.completion.prompt.window import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from codekv.completion.prompt.tasks import Prepared
    from codekv.engine.engine import Task

LEAST_CONTEXT = 96
"""Tokens before the cursor that even the tightest budget gets."""

HASTY_BUDGETS = 1.5
"""What the whole context may cost before a small one takes its place: a poor answer
in time is worth less than a good one a little late."""

SHARES = (0.75, 0.5, 0.3)
"""How much of the prefix is tried before what can be computed anew: what is far above
may be all that is lacking."""


def richest(
    make: Callable[[Limits], Prepared],
    num_missing: Callable[[Task], Sequence[int]],
    limits: Limits,
    budget: int,
) -> Prepared:
    """The richest prompt that a budget allows.

    Args:
        make: Lays out the prompt within limits.
        num_missing: How many tokens a task would have to compute now, by haste.
        limits: Of the full prompt.
        budget: Tokens that can be computed in time.
    """
    budget = max(budget, LEAST_CONTEXT)
    full = make(limits)
    missing = num_missing(full.task)
    for haste, count in enumerate(missing):
        is_last = haste == len(missing) - 1
        if count <= budget * (HASTY_BUDGETS if is_last else 1):
            return replace(full, task=replace(full.task, haste=haste))
    for share in SHARES:
        less = limits.prefix - int(limits.prefix * share)
        made = make(replace(limits, max_length=limits.max_length - less))
        *_, count = num_missing(made.task)
        if count <= budget:
            return replace(made, task=replace(made.task, haste=len(missing) - 1))
    suffix = min(limits.suffix, budget // 4)
    return make(Limits(budget + limits.output, suffix, limits.output))
