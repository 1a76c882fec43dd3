import asyncio
from dataclasses import dataclass, field

import pytest

from codekv.completion import report
from codekv.completion.api import (
    AnswerSource,
    Completion,
    State,
    Status,
    Timing,
    TokenCounts,
)
from codekv.completion.report import Reporter
from codekv.config import Config, cache_dir
from codekv.monitor.output import read_statuses, status_dir


@dataclass
class Stats:
    counters: dict[str, int]
    load_ms_mean: float = 0.0
    ram_bytes: int = 2**20
    live_bytes: int = 0
    live_shared_bytes: int = 0


@dataclass
class Store:
    """A store of which only the statistics are looked at."""

    looks: list[Stats] = field(default_factory=list)

    def stats(self):
        return self.looks.pop(0)


@pytest.fixture
def reporter(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEKV_CACHE_DIR", str(tmp_path))
    made = Reporter(Config())
    yield made
    made.close()


ANSWER = Completion(
    timing=Timing(total=100.0, ttft=40.0),
    tokens=TokenCounts(context=100, exact=90, restored=8, computed=2),
)


def test_loads_and_evictions_are_told_per_answer(reporter):
    store = Store(
        [
            Stats({"loaded_ram": 4, "loaded_disk": 0, "evicted_ram": 1}, 1.0),
            Stats({"loaded_ram": 4, "loaded_disk": 0, "evicted_ram": 1}, 1.0),
            # Six loads in all took 16 ms: the two new ones 6 ms each.
            Stats({"loaded_ram": 4, "loaded_disk": 2, "purged": 5}, 16 / 6),
        ]
    )
    for _ in range(3):
        reporter.completed(ANSWER, store)
    numbers = reporter.metrics()
    assert numbers["evictions.guard"] == 1
    assert numbers["evictions.purge"] == 5
    # Interpolated between the first answer's 1 ms and the last one's 6 ms.
    assert numbers["load_ms_p95"] == pytest.approx(5.75)
    assert numbers["load_ms_p50"] == pytest.approx(3.5)
    assert numbers["disk_loads_p95"] == pytest.approx(1.9)
    assert numbers["memory_mb"] == 1.0
    assert numbers["requests"] == 3
    assert numbers["hit_rate"] == pytest.approx(0.98)


def test_answers_without_the_model_do_not_look_at_the_store(reporter):
    reporter.completed(Completion(source=AnswerSource.TYPED_THROUGH), Store())
    reporter.completed(Completion(source=AnswerSource.NONE), Store())
    assert reporter.metrics()["requests"] == 1


def written():
    return next(iter(read_statuses(status_dir(cache_dir())).values()), None)


async def test_a_status_is_published_until_idle_work_has_come_to_rest(
    reporter, monkeypatch
):
    monkeypatch.setattr(report, "FOLLOW_EVERY_S", 0.001)
    looks = []

    def status():
        looks.append(None)
        at_work = len(looks) < 4
        return Status(
            State.READY, "m", "", None, {"n": min(len(looks), 4)}, (), not at_work
        )

    reporter.follow(status)
    reporter.follow(status)
    for _ in range(5000):
        if (found := written()) is not None and found["settled"]:
            break
        await asyncio.sleep(0.001)
    assert found["metrics"] == {"n": 4}
    # The file takes one status a second; following goes on until it has the last one.
    assert len(looks) > 4
    await asyncio.sleep(0)
    num_looks = len(looks)
    await asyncio.sleep(0.02)
    assert len(looks) == num_looks


def test_without_a_loop_nothing_is_followed(reporter):
    reporter.follow(lambda: Status(State.READY))
    assert written() is None


async def test_a_reporter_that_is_closed_follows_no_more(reporter, monkeypatch):
    monkeypatch.setattr(report, "FOLLOW_EVERY_S", 0.001)
    reporter.follow(lambda: Status(State.WORKING))
    reporter.close()
    await asyncio.sleep(0.01)
    assert written() is None
