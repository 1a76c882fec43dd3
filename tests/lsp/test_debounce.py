from hypothesis import given
from hypothesis import strategies as st

from lsp.debounce import BURST_S, BURST_WAIT, MAX_WAIT, Debounce


def typing(interval, latency, keys=30, client_wait=0.0):
    debounce = Debounce(client_wait)
    now = 10.0
    for _ in range(keys):
        now += interval
        debounce.changed(now)
        debounce.answered(latency)
    return debounce, now


def test_the_first_question_of_all_does_not_wait():
    assert Debounce().wait(5.0) == 0.0


def test_a_question_after_a_jump_does_not_wait():
    debounce, now = typing(0.1, 0.3)
    assert debounce.wait(now + 1.0) == 0.0


def test_answers_that_fit_between_two_keys_do_not_wait():
    debounce, now = typing(0.2, 0.19)
    assert debounce.wait(now) == 0.0


def test_slow_answers_wait_for_half_the_rhythm_at_most():
    for interval, wanted in ((0.04, 0.02), (0.12, 0.06), (0.5, MAX_WAIT)):
        debounce, now = typing(interval, 1.0)
        assert abs(debounce.wait(now) - wanted) < 1e-9


def test_a_burst_of_changes_that_nobody_types_waits_for_its_end():
    held, now = typing(BURST_S / 2, 0.001)
    typed, later = typing(BURST_S * 2, 0.001)
    assert held.is_strict
    assert abs(held.wait(now) - BURST_WAIT) < 1e-9
    assert not typed.is_strict
    assert typed.wait(later) == 0.0
    assert Debounce().is_strict


def test_pauses_are_no_rhythm():
    debounce, now = typing(0.1, 1.0)
    before = debounce.wait(now)
    for _ in range(50):
        now += 30.0
        debounce.changed(now)
    assert debounce.wait(now) == before > 0.0


def test_without_a_rhythm_a_question_waits_for_the_end_of_a_burst():
    debounce = Debounce()
    debounce.changed(1.0)
    assert debounce.wait(1.0) == BURST_WAIT


def test_what_the_editor_has_waited_itself_counts():
    debounce, now = typing(0.3, 1.0, client_wait=0.2)
    assert debounce.wait(now) == 0.0


def test_an_editor_that_asks_faster_than_it_is_said_to_waits_like_others():
    debounce, now = typing(0.3, 1.0, client_wait=0.2)
    debounce.wait(now)
    assert debounce.wait(now + 0.01) > 0.0


def test_silence_counts_from_the_last_question_too():
    debounce, now = typing(0.1, 1.0)
    waits = [debounce.wait(now + 1.0 + number * 0.01) for number in range(30)]
    assert waits[0] == 0.0
    assert all(wait > 0.01 for wait in waits[1:])


def test_a_waiting_time_of_the_users_own_is_kept_exactly():
    debounce, now = typing(0.1, 1.0)
    assert debounce.wait(now, 0.4) == 0.4
    assert debounce.wait(now + 0.1, 0.4) > 0.29
    assert debounce.wait(now + 0.2, 0.0) == 0.0


@given(st.lists(st.tuples(st.floats(0, 2), st.booleans()), max_size=30))
def test_nobody_waits_longer_than_the_limit_or_less_than_nothing(steps):
    debounce, now = Debounce(), 1.0
    for interval, is_change in steps:
        now += interval
        debounce.changed(now) if is_change else debounce.answered(interval)
        assert 0.0 <= debounce.wait(now) <= MAX_WAIT


def test_the_time_since_the_last_change_is_known():
    debounce = Debounce()
    assert debounce.since_change(1.0) is None
    debounce.changed(1.0)
    assert debounce.since_change(1.5) == 0.5
