"""What to compute before an answer and what to leave to idle time: a pure policy.

Held against a budget of tokens: first the whole context, then the whole context with
less and less repair of moved slots, then as much of it as is at hand, then what lies
nearest the cursor.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from codekv.completion.prompt.window import Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from codekv.completion.prompt.tasks import Prepared
    from codekv.engine.engine import Task
    from codekv.engine.reuse.plan import ReusePlan

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
    plan_reuse: Callable[[Task], ReusePlan],
    limits: Limits,
    budget: int,
) -> Prepared:
    """The richest prompt that a budget allows.

    Args:
        make: Lays out the prompt within limits.
        plan_reuse: Says where the slots of a prompt would come from now.
        limits: Of the full prompt.
        budget: Tokens that can be computed in time.
    """
    budget = max(budget, LEAST_CONTEXT)
    full = make(limits)
    reuse = plan_reuse(full.task)
    least_repair = len(reuse.num_computed) - 1
    for level, count in enumerate(reuse.num_computed):
        if count <= budget * (HASTY_BUDGETS if level == least_repair else 1):
            return _planned(full, reuse, level)
    for share in SHARES:
        less = limits.prefix - int(limits.prefix * share)
        made = make(replace(limits, max_length=limits.max_length - less))
        reuse = plan_reuse(made.task)
        if reuse.num_computed[least_repair] <= budget:
            return _planned(made, reuse, least_repair)
    suffix = min(limits.suffix, budget // 4)
    return make(Limits(budget + limits.output, suffix, limits.output))


def _planned(prepared: Prepared, reuse: ReusePlan, level: int) -> Prepared:
    task = replace(prepared.task, reuse=reuse, repair_level=level)
    return replace(prepared, task=task)
