"""What the service does with answers that come after something else has changed."""

import asyncio
import time
from dataclasses import replace

import pytest
import pytest_asyncio

from codekv.completion import answers as answers_module
from codekv.completion import load
from codekv.completion import service as service_module
from codekv.completion.answers import Answers
from codekv.completion.api import (
    AnswerSource,
    Completion,
    Item,
    Request,
    Trigger,
)
from codekv.completion.prompt.tasks import PlannedAnswer
from codekv.completion.service import Service
from codekv.config import Config, apply
from codekv.engine.speed import Speed
from codekv.errors import CancelledWorkError
from codekv.testing.tiny import TINY, load_tiny, tiny_pipeline
from codekv.text.snapshot import Snapshot

TEXT = "import os\n\n\ndef first(one, two):\n    return one + two\n\n\n" * 20
URI = "file:///w/a.py"


def configured(**privacy) -> Config:
    values = {
        "kvcache": {"max_length": 400, "disk": False},
        "completion": {"max_tokens": 8, "latency_budget_ms": 60000},
        "privacy": privacy,
    }
    return apply(Config(), values, "test")[0]


def snapshot(text=TEXT, version=0):
    return Snapshot.from_text(URI, version, "python", text)


def request(text=TEXT):
    return Request(snapshot(text), len(text), Trigger.INVOKED)


@pytest_asyncio.fixture
async def service(monkeypatch):
    monkeypatch.setattr(load, "load_pipeline", load_tiny)
    made = Service(configured())
    await made.ready()
    yield made
    await made.close()


async def held(service):
    """What is kept of documents: their number, chains and stored blocks."""
    await service.idle()

    def look(engine):
        return len(engine.chains.sequences()), engine.store.stats().ram_blocks

    return await service.inspect(look)


@pytest.mark.asyncio
@pytest.mark.parametrize("change", ["close", "exclude", "pause", "clear"])
async def test_an_answer_under_way_plans_no_pause_for_what_is_gone(
    service, change
) -> None:
    asked = asyncio.ensure_future(service.complete(request()))
    await asyncio.sleep(0)
    if change == "close":
        service.document_closed(URI)
    elif change == "exclude":
        service.reconfigure(configured(exclude=("*.py",)))
    elif change == "pause":
        service.pause(True)
    else:
        service.clear_cache()
    await asked

    assert await held(service) == (0, 0)


@pytest.mark.asyncio
async def test_an_answer_plans_a_pause(service) -> None:
    await service.complete(request())

    chains, blocks = await held(service)
    assert chains == 1
    assert blocks > 0


@pytest.mark.asyncio
async def test_looking_at_a_document_and_closing_it_keeps_nothing(service) -> None:
    service.document_changed(snapshot())
    service.document_focused(URI)
    service.document_closed(URI)

    assert (await held(service))[0] == 0


@pytest.mark.asyncio
async def test_looking_at_a_document_looks_at_its_newest_text(service) -> None:
    service.document_changed(snapshot())
    await service.idle()
    service.document_changed(snapshot(TEXT + "x", 1))
    service.document_focused(URI)
    await service.idle()

    pipeline = service._pipeline
    assert pipeline.documents.get(URI).snapshot.version == 1


def test_an_answer_computed_ahead_may_come_while_another_is_looked_for(
    monkeypatch,
) -> None:
    known = Answers()
    asked = request()
    end = asked.cursor_byte
    known.note(asked, Completion((Item("1", "pass", end, end),)))
    found = answers_module._rest

    def slowly(*args):
        known.note(asked, Completion((Item("2", "pass", end, end),)))
        return found(*args)

    monkeypatch.setattr(answers_module, "_rest", slowly)
    other = Request(snapshot("y" + TEXT), 1)

    assert known.find(other) is None


@pytest.mark.asyncio
async def test_it_tells_what_typing_costs_and_how_much_was_in_vain(service) -> None:
    assert "processor_ms_per_change" not in service.status().metrics
    service.document_changed(snapshot())
    service.document_changed(snapshot(TEXT + "x", 1))
    dropped = asyncio.ensure_future(service.complete(request(TEXT + "x")))
    await asyncio.sleep(0)
    await service.complete(request(TEXT + "xy"))
    await asyncio.gather(dropped, return_exceptions=True)
    await service.idle()

    metrics = service.status().metrics
    assert metrics["processor_ms_per_change"] > 0
    assert 0 <= metrics["processor_share_dropped"] < 1
    assert 0 <= metrics["processor_share_idle"] <= 1
    assert metrics["tokens_dropped"] >= 0


@pytest.mark.asyncio
@pytest.mark.parametrize(("missing", "waits"), [(2, False), (3, True)])
async def test_only_costly_work_waits_for_a_newer_question(
    service, monkeypatch, missing, waits
) -> None:
    monkeypatch.setattr(PlannedAnswer, "num_missing", missing)
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr(service_module.asyncio, "sleep", sleep)
    patient = replace(request(), patience_s=0.07)
    completion = await service.complete(patient)

    assert completion.source is AnswerSource.MODEL
    assert (0.07 in slept) == waits


@pytest.mark.asyncio
async def test_a_question_that_waited_gives_way_to_a_newer_one(
    service, monkeypatch
) -> None:
    monkeypatch.setattr(PlannedAnswer, "num_missing", 100)
    old = asyncio.ensure_future(service.complete(replace(request(), patience_s=0.2)))
    await asyncio.sleep(0.05)
    new = await service.complete(request(TEXT + "x"))

    assert new.source is AnswerSource.MODEL
    with pytest.raises(CancelledWorkError):
        await old


@pytest.mark.asyncio
@pytest.mark.parametrize("idle_work", [True, False])
async def test_context_grows_between_questions_with_idle_work(
    monkeypatch, idle_work
) -> None:
    monkeypatch.setattr(load, "load_pipeline", load_tiny)
    kvcache = {"max_length": 1200, "reuse": "exact", "disk": False}
    kvcache["idle_work"] = idle_work
    completion = {"max_tokens": 8, "suffix_tokens": 60}
    values = {"kvcache": kvcache, "completion": completion}
    service = Service(apply(Config(), values, "test")[0])
    await service.ready()
    slow = Speed(0.001, 5.0)
    await service.inspect(lambda engine: setattr(engine, "speed", slow))
    first = await service.complete(request())
    await service.idle()
    await service.inspect(lambda engine: setattr(engine, "speed", slow))
    second = await service.complete(request(TEXT + "x"))
    await service.close()

    assert (second.tokens.context > 3 * first.tokens.context) == idle_work


@pytest.mark.asyncio
async def test_a_reload_loses_no_answer(monkeypatch) -> None:
    """Questions before, during and after the switch are all answered by a model."""
    names = iter(("small", "large"))

    def slowly(config, workspace=None):
        name = next(names)
        for _ in range(20):
            time.sleep(0.005)
            yield
        pipeline = tiny_pipeline(config)
        runtime = pipeline.engine.runtime
        runtime.spec = replace(runtime.spec, name=name)
        return pipeline, TINY

    monkeypatch.setattr(load, "load_pipeline", slowly)
    service = Service(configured())
    await service.ready()
    assert service.status().model == "small"
    service.reload()
    answers = []
    for end in range(30):
        answers.append(await service.complete(request(TEXT + "x" * end)))
        await asyncio.sleep(0.005)
    await service.ready()
    answers.append(await service.complete(request(TEXT + "y")))
    assert all(answer.reason != "loading" for answer in answers)
    assert answers[0].items
    assert answers[-1].items
    assert service.status().model == "large"
    await service.close()
