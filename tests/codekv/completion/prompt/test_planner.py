"""Which prompt a budget allows."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from codekv.completion.prompt.planner import LEAST_CONTEXT, richest
from codekv.completion.prompt.window import Limits
from codekv.engine.decoding.candidate import DecodeOptions
from codekv.engine.engine import Task
from codekv.engine.live_sequence import Placement
from codekv.engine.reuse.plan import PrefillRequest, ReusePlan

FULL = Limits(1400, 256, 64)


@dataclass(frozen=True)
class Made:
    task: Task
    limits: Limits


def plan(*missing: int) -> ReusePlan:
    """A plan that has to compute so many tokens, by repair level."""
    computed = tuple(tuple(range(count)) for count in missing)
    return ReusePlan(PrefillRequest((1,)), Placement(None, None, 0), (), computed)


def make(limits: Limits) -> Made:
    return Made(Task((1,), (), DecodeOptions(max_tokens=1), lambda _: False), limits)


@pytest.mark.parametrize(
    ("missing", "level"),
    [
        ((100, 50, 20), 0),
        ((101, 50, 20), 1),
        ((300, 101, 100), 2),
        ((900, 400, 150), 2),
    ],
)
def test_repairs_less_before_it_drops_context(missing, level) -> None:
    made = richest(make, lambda _: plan(*missing), FULL, 100)

    assert (made.limits, made.task.repair_level) == (FULL, level)
    assert made.task.reuse.num_computed == missing


def test_leaves_out_what_is_far_above_if_that_alone_is_lacking() -> None:
    asked = []

    def plan_reuse(task: Task) -> ReusePlan:
        asked.append(task)
        return plan(900, 900, 900) if len(asked) < 3 else plan(120, 110, 100)

    made = richest(make, plan_reuse, FULL, 100)

    assert made.limits.prefix == FULL.prefix // 2
    assert (made.limits.suffix, made.task.repair_level) == (FULL.suffix, 2)


def test_drops_context_when_leaving_out_repair_is_not_enough() -> None:
    made = richest(make, lambda _: plan(900, 400, 151), FULL, 100)

    assert made.task.repair_level == 0
    assert (made.limits.max_length, made.limits.suffix) == (100 + FULL.output, 25)


def test_the_tightest_budget_has_some_context() -> None:
    made = richest(make, lambda _: plan(900), FULL, 0)

    assert made.limits.max_length == LEAST_CONTEXT + FULL.output
