import contextlib
import threading
import time

import pytest

from codekv.engine.worker import Worker
from codekv.errors import CancelledWorkError


@pytest.fixture
def worker():
    made = Worker(idle_delay=0.01)
    yield made
    made.close()


def steps(log, name, count=3, gate=None):
    for number in range(count):
        if gate is not None:
            gate.wait(5)
        log.append((name, number))
        yield
    return name


def test_a_newer_request_of_the_same_topic_ends_the_older(worker) -> None:
    log, gate = [], threading.Event()
    old = worker.submit("doc", steps(log, "old", 50, gate))
    new = worker.submit("doc", steps(log, "new"))
    gate.set()

    assert new.future.result(5) == "new"
    with pytest.raises(CancelledWorkError):
        old.future.result(5)
    assert sum(name == "old" for name, _ in log) <= 1


def test_work_that_fails_when_it_is_dropped_does_not_end_the_thread(worker) -> None:
    begun = threading.Event()

    def failing():
        try:
            while True:
                begun.set()
                yield
        finally:
            raise ValueError

    old = worker.submit("doc", failing())
    begun.wait(5)
    new = worker.submit("doc", steps([], "new"))

    assert new.future.result(5) == "new"
    with pytest.raises(CancelledWorkError):
        old.future.result(5)


def test_calls_run_before_requests_that_came_later(worker) -> None:
    log, gate = [], threading.Event()
    worker.submit("busy", steps(log, "busy", 1, gate))
    done = worker.call(lambda: log.append("call"))
    asked = worker.submit("doc", steps(log, "doc"))
    gate.set()
    done.result(5)
    asked.future.result(5)

    assert log.index("call") < log.index(("doc", 0))


def test_idle_work_gives_way_to_a_request_at_its_next_step(worker) -> None:
    log, gate = [], threading.Event()
    idle = worker.submit_idle("doc warm", steps(log, "idle", 6, gate))
    while not log and not gate.is_set():
        gate.set()
    asked = worker.submit("doc", steps(log, "asked", 3))

    asked.future.result(5)
    idle.future.result(5)
    first = log.index(("asked", 0))
    assert log[first : first + 3] == [("asked", 0), ("asked", 1), ("asked", 2)]


def test_a_failing_job_ends_alone(worker) -> None:
    def broken():
        yield
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        worker.submit("doc", broken()).future.result(5)
    assert worker.call(lambda: 7).result(5) == 7


def test_closing_ends_everything_within_a_step() -> None:
    worker, log = Worker(), []

    def endless():
        while True:
            log.append(1)
            yield

    job = worker.submit("doc", endless())
    while not log:
        time.sleep(0)
    assert worker.close(5)
    with pytest.raises(CancelledWorkError):
        job.future.result(5)
    with pytest.raises(CancelledWorkError):
        worker.submit("doc", endless()).future.result(5)


def test_nothing_runs_and_nothing_is_lost_under_random_orders(worker) -> None:
    jobs = [
        worker.submit_idle(f"t{i} warm", steps([], i))
        if i % 3 == 0
        else worker.submit(f"t{i % 5}", steps([], i))
        for i in range(60)
    ]
    ended = 0
    for job in jobs:
        with contextlib.suppress(CancelledWorkError):
            job.future.result(10)
        ended += 1

    assert ended == len(jobs)
    assert worker.wait_idle(5)


def test_idle_work_is_dropped_by_its_whole_topic(worker) -> None:
    log, gate = [], threading.Event()
    worker.submit("doc", steps(log, "busy", 1, gate))
    names = ("a.py warm", "a.pyi warm", "a.py prepare")
    jobs = {name: worker.submit_idle(name, steps(log, name)) for name in names}
    worker.cancel_idle(["a.py warm", "a.py speculate"])
    gate.set()

    assert jobs["a.pyi warm"].future.result(5) == "a.pyi warm"
    assert jobs["a.py prepare"].future.result(5) == "a.py prepare"
    with pytest.raises(CancelledWorkError):
        jobs["a.py warm"].future.result(5)


def test_all_idle_work_can_be_dropped_at_once(worker) -> None:
    log, gate = [], threading.Event()
    worker.submit("doc", steps(log, "busy", 1, gate))
    jobs = [worker.submit_idle(name, steps(log, name)) for name in ("a", "b")]
    worker.cancel_idle()
    gate.set()

    for job in jobs:
        with pytest.raises(CancelledWorkError):
            job.future.result(5)


def test_idle_work_goes_by_rank_and_the_newest_first(worker) -> None:
    gate, log = threading.Event(), []
    first = worker.submit("doc", steps(log, "request", 1, gate))
    jobs = [
        worker.submit_idle(name, steps(log, name), rank)
        for name, rank in (("old far", 2), ("new far", 2), ("old", 0), ("new", 0))
    ]
    gate.set()
    first.future.result(5)
    for job in jobs:
        job.future.result(5)

    assert list(dict.fromkeys(name for name, _ in log))[1:] == [
        "new",
        "old",
        "new far",
        "old far",
    ]


def test_work_for_the_gaps_does_not_wait_for_a_pause() -> None:
    worker = Worker(idle_delay=60.0)
    try:
        worker.submit("doc", steps([], "asked", 1)).future.result(5)
        later = worker.submit_idle("doc prepare", steps([], "later"))
        in_gap = worker.submit_idle("doc climb", steps([], "gap"), 1, in_gaps=True)

        assert in_gap.future.result(5) == "gap"
        assert not later.future.done()
    finally:
        worker.close()


def test_effort_is_told_apart_by_what_came_of_it(worker) -> None:
    def busy(seconds):
        end = time.process_time() + seconds
        while time.process_time() < end:
            time.sleep(0)
        yield

    gate = threading.Event()

    def dropped():
        yield from busy(0.03)
        gate.set()
        while True:
            yield

    old = worker.submit("doc", dropped())
    gate.wait(5)
    worker.submit("doc", busy(0.02)).future.result(5)
    with pytest.raises(CancelledWorkError):
        old.future.result(5)
    worker.submit_idle("doc warm", busy(0.01)).future.result(5)
    worker.wait_idle(5)

    effort = worker.effort
    assert effort.dropped_s >= 0.03
    assert effort.answers_s >= 0.02
    assert effort.idle_s >= 0.01
    assert effort.total_s == effort.dropped_s + effort.answers_s + effort.idle_s


def timed(log, name, seconds, count=100_000):
    for _ in range(count):
        time.sleep(seconds)
        log.append(name)
        yield


def test_where_no_gap_is_left_work_for_the_gaps_gets_half_of_the_time(worker) -> None:
    log, jobs = [], []
    worker.submit_idle("doc climb", timed(log, "climb", 0.001), in_gaps=True)
    for number in range(4):
        del log[:]
        jobs.append(worker.submit("doc", timed(log, number, 0.004)))
        time.sleep(0.1)
        if number == 1:
            assert set(log[2:]) == {1}
    worker.close()

    climbs, steps = log.count("climb"), log.count(3)
    assert steps > 0
    assert 1 <= climbs / steps <= 8


def test_gaps_are_enough_once_a_request_is_answered_in_time(worker) -> None:
    log = []
    worker.submit_idle("doc climb", timed(log, "climb", 0.001), in_gaps=True)
    for number in range(4):
        worker.submit("doc", timed(log, number, 0.004))
        time.sleep(0.03)
    worker.submit("doc", timed(log, "answered", 0.001, 1)).future.result(5)
    del log[:]
    worker.submit("doc", timed(log, "last", 0.004, 5)).future.result(5)
    end = len(log) - 1 - log[::-1].index("last")

    assert "climb" not in log[log.index("last") : end]
