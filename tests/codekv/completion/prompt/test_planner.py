"""Which prompt a budget allows."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from codekv.completion.prompt.planner import LEAST_CONTEXT, richest
from codekv.completion.prompt.window import Limits
from codekv.engine.decoding.greedy import DecodeOptions
from codekv.engine.engine import Task

FULL = Limits(1400, 256, 64)


@dataclass(frozen=True)
class Made:
    task: Task
    limits: Limits


def make(limits: Limits) -> Made:
    return Made(Task((1,), (), DecodeOptions(max_tokens=1), lambda _: False), limits)


@pytest.mark.parametrize(
    ("missing", "haste"),
    [
        ((100, 50, 20), 0),
        ((101, 50, 20), 1),
        ((300, 101, 100), 2),
        ((900, 400, 150), 2),
    ],
)
def test_repairs_less_before_it_drops_context(missing, haste) -> None:
    made = richest(make, lambda _: missing, FULL, 100)

    assert (made.limits, made.task.haste) == (FULL, haste)


def test_leaves_out_what_is_far_above_if_that_alone_is_lacking() -> None:
    asked = []

    def num_missing(task: Task) -> tuple[int, ...]:
        asked.append(task)
        return (900, 900, 900) if len(asked) < 3 else (120, 110, 100)

    made = richest(make, num_missing, FULL, 100)

    assert made.limits.prefix == FULL.prefix // 2
    assert (made.limits.suffix, made.task.haste) == (FULL.suffix, 2)


def test_drops_context_when_no_haste_helps() -> None:
    made = richest(make, lambda _: (900, 400, 151), FULL, 100)

    assert made.task.haste == 0
    assert (made.limits.max_length, made.limits.suffix) == (100 + FULL.output, 25)


def test_the_tightest_budget_has_some_context() -> None:
    made = richest(make, lambda _: (900,), FULL, 0)

    assert made.limits.max_length == LEAST_CONTEXT + FULL.output
