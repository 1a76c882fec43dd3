"""What to compute before an answer and what to leave to idle time: a pure policy.

Prompts come in fixed sizes, the rungs of a ladder. An answer takes the highest rung
that its budget of tokens allows, with less and less repair of moved slots before it
gives up context. Idle work then climbs towards the full prompt, the text nearest the
cursor first, because each rung moves the slots of the one below it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codekv.completion.prompt.window import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from codekv.completion.prompt.tasks import Prepared
    from codekv.engine.engine import Task
    from codekv.engine.reuse.plan import ReusePlan

HASTY_BUDGETS = 1.5
"""What the whole context may cost before a small one takes its place: a poor answer
in time is worth less than a good one a little late."""

LEAST_BUDGET = 96
"""Tokens that even the tightest budget allows: about one chunk of a prefill. Without it
the climb to a higher rung would have no end on a machine that is too slow for any."""

SHARES = (0.75, 0.5, 0.3)
"""How much of the prefix is tried before what can be computed anew: what is far above
may be all that is lacking."""

SMALL = (320, 192)
"""Tokens of the lowest rungs. Below the last one lateness is preferred: see the
measurement of text quality by context size in `docs/design/typing.md`."""

CLIMB = 320
"""Tokens that idle work computes before a higher rung can be taken over: half a second
or so. A longer climb is made in several rungs, so that answers gain by each of them."""


@dataclass(frozen=True, slots=True)
class PromptChoice:
    """A prompt for an answer now.

    Attributes:
        prepared: What the answer is computed with.
        wanted: A richer prompt that idle work should make ready; None at the top.
    """

    prepared: Prepared
    wanted: Prepared | None = None


def ladder(limits: Limits) -> tuple[Limits, ...]:
    """The sizes in which prompts come, the full one first."""
    rungs = [limits]
    for share in SHARES:
        less = limits.prefix - int(limits.prefix * share)
        rungs.append(replace(limits, max_length=limits.max_length - less))
    for size in SMALL:
        suffix = min(limits.suffix, size // 4)
        small = Limits(size + limits.output, suffix, limits.output)
        if small.max_length < rungs[-1].max_length:
            rungs.append(small)
    return tuple(rungs)


def choose_prompt(
    make: Callable[[Limits], Prepared],
    plan_reuse: Callable[[Task], ReusePlan],
    limits: Limits,
    budget: int,
) -> PromptChoice:
    """Choose the richest prompt that a budget allows, and the one to climb to.

    Args:
        make: Lays out the prompt within limits.
        plan_reuse: Says where the slots of a prompt would come from now.
        limits: Of the full prompt.
        budget: Tokens that can be computed in time.
    """
    budget = max(budget, LEAST_BUDGET)
    above: list[Prepared] = []
    rungs = ladder(limits)
    for rung in rungs:
        made = make(rung)
        reuse = plan_reuse(made.task)
        level = _affordable_level(reuse, budget, is_full=rung is limits)
        if level is None and rung is rungs[-1]:
            level = len(reuse.num_computed) - 1
        if level is not None:
            return PromptChoice(_planned(made, reuse, level), _next_rung(above))
        above.append(_planned(made, reuse, 0))
    raise AssertionError("the last rung is always taken")


def _affordable_level(reuse: ReusePlan, budget: int, *, is_full: bool) -> int | None:
    """The least reduced repair that fits; context below the full one goes unrepaired.

    Returns:
        None if the prompt costs too much at every level.
    """
    last = len(reuse.num_computed) - 1
    for level in range(last + 1) if is_full else (last,):
        factor = HASTY_BUDGETS if is_full and level == last else 1
        if reuse.num_computed[level] <= budget * factor:
            return level
    return None


def _next_rung(above: Sequence[Prepared]) -> Prepared | None:
    """The highest rung within one climb, or else the nearest."""
    for prepared in above:
        assert prepared.task.reuse is not None
        if prepared.task.reuse.num_computed[0] <= CLIMB:
            return prepared
    return above[-1] if above else None


def _planned(prepared: Prepared, reuse: ReusePlan, level: int) -> Prepared:
    task = replace(prepared.task, reuse=reuse, repair_level=level)
    return replace(prepared, task=task)
