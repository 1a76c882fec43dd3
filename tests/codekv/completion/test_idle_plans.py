"""Which idle work is planned, by configuration and by battery."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from codekv.completion import idle_plans, power
from codekv.completion.api import Completion, Item, Request
from codekv.completion.idle_plans import IdlePlans, IdleTopic
from codekv.config import Config, apply
from codekv.testing.tiny import tiny_pipeline
from codekv.text.snapshot import Snapshot

URI = "file:///w/a.py"
REQUEST = Request(Snapshot(URI, 1, "python", b"x = 1\n"), 6)
COMPLETION = Completion((Item("c", "y", 6, 6),))


class Queue:
    """Notes what is submitted and runs nothing."""

    def __init__(self) -> None:
        self.topics: list[IdleTopic] = []
        self.cancelled: list[IdleTopic] = []

    def submit_idle(self, topic, steps, rank=0, *, in_gaps=False):
        steps.close()
        self.topics.append(topic)
        future = SimpleNamespace(done=lambda: False)
        return SimpleNamespace(cancelled=False, future=future)

    def cancel_idle(self, topics) -> None:
        self.cancelled += topics


def planned(battery, monkeypatch, **sections):
    monkeypatch.setattr(idle_plans, "on_battery", lambda: battery)
    config, problems = apply(Config(), sections, "test")
    assert not problems
    queue = Queue()
    plans = IdlePlans(queue, config)
    pipeline = tiny_pipeline(config)
    plans.after_answer(pipeline, REQUEST, COMPLETION, lambda *_: None)
    plans.climb(pipeline, URI)
    return [topic.kind for topic in queue.topics]


def test_everything_is_planned_on_mains(monkeypatch) -> None:
    kinds = ["prepare", "prefetch", "warm", "far", "climb"]
    assert planned(False, monkeypatch) == kinds


@pytest.mark.parametrize(
    ("eco", "battery", "spares"),
    [
        ("auto", True, True),
        ("auto", False, False),
        ("always", False, True),
        ("never", True, False),
    ],
)
def test_eco_does_only_what_was_asked_for(monkeypatch, eco, battery, spares) -> None:
    kinds = planned(battery, monkeypatch, completion={"eco": eco})
    assert (kinds == ["climb"]) == spares


def test_without_idle_work_nothing_is_planned(monkeypatch) -> None:
    assert planned(False, monkeypatch, kvcache={"idle_work": False}) == []


def test_one_climb_at_a_time_and_a_closed_document_has_none(monkeypatch) -> None:
    monkeypatch.setattr(idle_plans, "on_battery", lambda: False)
    queue, config = Queue(), Config()
    plans, pipeline = IdlePlans(queue, config), tiny_pipeline(config)
    plans.climb(pipeline, URI)
    plans.climb(pipeline, URI)
    assert queue.topics == [IdleTopic(URI, "climb")]
    plans.drop(URI)
    assert {topic.kind for topic in queue.cancelled} == set(idle_plans.KINDS)
    plans.climb(pipeline, URI)
    assert len(queue.topics) == 2


@pytest.mark.parametrize(
    ("sensed", "told"),
    [
        (None, False),
        (SimpleNamespace(power_plugged=True), False),
        (SimpleNamespace(power_plugged=None), False),
        (SimpleNamespace(power_plugged=False), True),
    ],
)
def test_a_battery_counts_only_where_it_is_known_to_be_in_use(
    monkeypatch, sensed, told
) -> None:
    asked = []
    monkeypatch.setattr(power, "_known", (-power.FRESH_S * 1e6, False))
    monkeypatch.setattr(
        power.psutil,
        "sensors_battery",
        lambda: asked.append(1) or sensed,
        raising=False,
    )
    assert [power.on_battery(), power.on_battery()] == [told, told]
    assert len(asked) == 1


def test_a_system_that_cannot_tell_has_no_battery(monkeypatch) -> None:
    def fails():
        raise OSError

    monkeypatch.setattr(power, "_known", (-power.FRESH_S * 1e6, False))
    monkeypatch.setattr(power.psutil, "sensors_battery", fails, raising=False)
    assert not power.on_battery()
