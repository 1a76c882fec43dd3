"""What a prefill costs: told apart by step and token."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codekv.cooperative import finish
from codekv.engine.reuse.extend import CHUNK
from codekv.engine.speed import MOST_LAG, Speed, measured
from codekv.testing.model import TinyRuntime


def taught(step_ms: float, token_ms: float, sizes: list[int]) -> Speed:
    speed, truth = Speed(), Speed(step_ms, token_ms)
    for size in sizes:
        speed.note_prefill(size, truth.ms_for(size))
    return speed


def test_short_prefills_do_not_make_long_ones_look_dear() -> None:
    speed = taught(60, 1, [1, 40] * 60)

    assert abs(speed.ms_for(192) - (3 * 60 + 192)) < 5
    assert 120 <= speed.tokens_in(300) <= 192


@given(st.floats(0.1, 500), st.floats(0.01, 20), st.floats(0, 5000))
def test_what_fits_is_the_most_that_fits(step, token, ms) -> None:
    speed = Speed(step, token)
    count = speed.tokens_in(ms)

    assert speed.ms_for(count) <= ms + 1e-6
    assert speed.ms_for(count + 2) > ms - 1e-6


@given(st.lists(st.tuples(st.integers(0, 4 * CHUNK), st.floats(0, 1e5)), max_size=40))
def test_no_measurement_makes_prices_vanish(noted) -> None:
    speed = Speed()
    for size, ms in noted:
        speed.note_prefill(size, ms)

    assert speed.step_ms > 0
    assert speed.ms_per_token > 0


def test_another_programs_burst_shrinks_the_context_within_a_limit() -> None:
    speed, truth = Speed(), Speed(60, 1)
    for size in [1, 40] * 60:
        speed.note_prefill(size, truth.ms_for(size), truth.ms_for(size))
    quiet = speed.tokens_in(400)
    for size in [1, 40] * 60:
        speed.note_prefill(size, 4 * truth.ms_for(size), truth.ms_for(size))
    busy = speed.tokens_in(400)

    assert abs(speed.ms_for(100) - truth.ms_for(100)) < 5
    assert speed.lag > 3.9
    assert busy < quiet
    assert busy == Speed(speed.step_ms, speed.ms_per_token).tokens_in(400 / MOST_LAG)


def test_a_model_is_timed_and_left_as_it_was():
    runtime = TinyRuntime()
    speed = finish(measured(runtime))

    assert speed.step_ms > 0
    assert speed.ms_per_token > 0
    assert speed.ms_for(2 * CHUNK) > speed.ms_for(1)
