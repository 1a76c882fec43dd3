"""What is offered when the budget ends before the answer does."""

from __future__ import annotations

import asyncio
import time

import pytest

from codekv.completion import load, partial_answer
from codekv.completion.api import AnswerSource, Completion, Item, Request
from codekv.completion.deadline import LATE, Deadline, deadline_for
from codekv.completion.service import Service
from codekv.config import Config, apply
from codekv.engine.speed import Speed
from codekv.testing.tiny import load_tiny
from codekv.text.snapshot import Snapshot

TEXT = "import os\n\n\ndef first(one, two):\n    return one + two\n\n\n" * 20
CUT = Completion((Item("cut", "a", 0, 0),), is_cut=True)
WHOLE = Completion((Item("whole", "a b", 0, 0),))


async def finished(after: float) -> Completion:
    await asyncio.sleep(after)
    return WHOLE


def steps(count: int, log: list[int]):
    for number in range(count):
        log.append(number)
        yield
    return "done"


async def test_the_whole_answer_is_given_if_it_comes_in_time() -> None:
    deadline = Deadline(time.perf_counter() + 10, is_hard=True)
    assert await deadline.first(asyncio.ensure_future(finished(0.01))) == WHOLE


async def test_what_stands_is_offered_before_the_step_that_would_be_late() -> None:
    deadline, log = Deadline(time.perf_counter() + 0.1, is_hard=False), []
    watched = deadline.watch(steps(3, log), 60.0, lambda: CUT if log[1:] else None)
    work = asyncio.ensure_future(finished(0.05))
    for _ in watched:
        pass

    assert await deadline.first(work) == CUT
    assert log == [0, 1, 2]
    assert await work == WHOLE


async def test_nothing_is_offered_early_while_the_next_step_is_in_time() -> None:
    deadline, looked = Deadline(time.perf_counter() + 60, is_hard=False), []
    for _ in deadline.watch(steps(3, []), 0.01, lambda: looked.append(1)):
        pass
    assert looked == []


@pytest.mark.parametrize(("is_hard", "reason"), [(True, LATE), (False, "")])
async def test_with_nothing_to_offer_only_a_hard_deadline_answers(
    is_hard, reason
) -> None:
    deadline = Deadline(time.perf_counter() + 0.02, is_hard=is_hard)
    work = asyncio.ensure_future(finished(0.1))
    answer = await deadline.first(work)

    assert answer.reason == reason
    assert (answer == WHOLE) != is_hard
    assert await work == WHOLE


async def test_an_asker_who_goes_away_ends_the_work() -> None:
    deadline = Deadline(time.perf_counter() + 10, is_hard=True)
    work = asyncio.ensure_future(finished(60))
    asker = asyncio.ensure_future(deadline.first(work))
    await asyncio.sleep(0)
    asker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asker
    with pytest.raises(asyncio.CancelledError):
        await work


async def test_dropped_work_is_closed() -> None:
    deadline, closed = Deadline(time.perf_counter() + 10, is_hard=True), []

    def work():
        try:
            while True:
                yield
        finally:
            closed.append(1)

    watched = deadline.watch(work(), 0.0, lambda: None)
    next(watched)
    watched.close()
    assert closed == [1]


async def test_there_is_none_unless_it_is_asked_for() -> None:
    assert deadline_for("off", 1.0) is None
    assert deadline_for("soft", 1.0) is not None


async def test_the_rest_of_a_cut_answer_is_there_when_asked_again(monkeypatch) -> None:
    monkeypatch.setattr(load, "load_pipeline", load_tiny)
    # The tiny model writes random bytes, so any beginning is as good as another.
    monkeypatch.setattr(partial_answer, "sensible_cut", lambda _g, _h, text: text[:1])
    values = {
        "kvcache": {"max_length": 1200, "disk": False},
        "completion": {
            "max_tokens": 8,
            "deadline": "soft",
            "speculate": False,
            "file_name": False,
        },
    }
    service = Service(apply(Config(), values, "test")[0])
    await service.ready()
    # A step is said to take a minute, so the first one is followed by an offer.
    slow = Speed(60_000.0, 0.001)
    text = TEXT + "xy"
    snapshot = Snapshot.from_text("file:///w/a.py", 0, "python", text)
    request = Request(snapshot, len(text))
    await service.inspect(lambda engine: setattr(engine, "speed", slow))
    cut = await service.complete(request)
    await service.idle()
    whole = await service.complete(request)
    await service.close()

    assert cut.is_cut
    assert len(cut.text) == 1
    assert whole.source is AnswerSource.TYPED_THROUGH
    assert whole.text.startswith(cut.text)
    assert len(whole.text) > 1
    assert cut.tokens.context == cut.tokens.computed > 50
