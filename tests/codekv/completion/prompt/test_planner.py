"""Which prompt a budget allows."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codekv.completion.prompt.planner import CLIMB, SMALL, choose_prompt, ladder
from codekv.completion.prompt.window import Limits, most_suffix
from codekv.engine.decoding.candidate import DecodeOptions
from codekv.engine.engine import Task
from codekv.engine.reuse.plan import PrefillRequest, ReusePlan
from codekv.engine.sequence_pool import Placement

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
    choice = choose_prompt(make, lambda _: plan(*missing), FULL, 100)

    made = choice.prepared
    assert (made.limits, made.task.repair_level) == (FULL, level)
    assert made.task.reuse.num_computed == missing
    assert choice.wanted is None


def costs(*per_rung: int):
    """What the rungs cost from the full prompt on, each asked for once."""
    left = list(per_rung)
    return lambda _task: plan(*([left.pop(0)] * 3))


def test_leaves_out_what_is_far_above_if_that_alone_is_lacking() -> None:
    choice = choose_prompt(make, costs(900, 500, 100), FULL, 100)

    made = choice.prepared
    assert made.limits.prefix == FULL.prefix // 2
    assert (made.limits.suffix, made.task.repair_level) == (FULL.suffix, 2)


def test_a_small_prompt_is_computed_anew_where_nothing_is_at_hand() -> None:
    choice = choose_prompt(make, costs(1300, 1000, 700, 450, 320, 192), FULL, 192)

    assert choice.prepared.limits.max_length == SMALL[-1] + FULL.output
    assert choice.prepared.limits.suffix == SMALL[-1] // 4


def test_the_lowest_rung_is_taken_however_late_it_is() -> None:
    choice = choose_prompt(make, lambda _: plan(900, 900, 900), FULL, 0)

    assert choice.prepared.limits == ladder(FULL)[-1]


def test_climbs_to_the_highest_rung_in_reach_or_else_to_the_next() -> None:
    near = choose_prompt(make, costs(CLIMB + 1, CLIMB, 200, 90), FULL, 100)
    far = choose_prompt(make, costs(900, 800, 700, 600, 500, 90), FULL, 100)

    assert near.wanted.limits == ladder(FULL)[1]
    assert far.wanted.limits == ladder(FULL)[4]


@given(st.integers(128, 8192), st.integers(0, 8192), st.integers(1, 64))
def test_rungs_only_get_smaller_and_keep_room_for_the_answer(
    length, suffix, output
) -> None:
    full = Limits(length, min(suffix, most_suffix(length, output)), output)
    rungs = ladder(full)

    assert rungs[0] == full
    assert [r.max_length for r in rungs] == sorted(
        (r.max_length for r in rungs), reverse=True
    )
    assert all(rung.output == output for rung in rungs)
    assert all(rung.suffix <= full.suffix for rung in rungs)
