"""The default model through the whole engine: what users get, on a real file."""

import statistics
from pathlib import Path

import pytest
import pytest_asyncio

from codekv.completion.api import Request, Trigger
from codekv.completion.service import Service
from codekv.config import Config, apply
from codekv.model.library.catalog import DEFAULT
from codekv.text.snapshot import Snapshot

pytestmark = [pytest.mark.model, pytest.mark.asyncio(loop_scope="module")]

SOURCE = (Path(__file__).parents[2] / "codekv/engine/worker.py").read_text("utf-8")
PLACE = "            for old in self._requests:\n"
LINE = "                if old.topic"


def config(**kvcache) -> Config:
    values = {
        "completion": {
            "typed_through": False,
            "speculate": False,
            "latency_budget_ms": 60000,
            "max_tokens": 12,
        },
        "kvcache": {"disk": False, "idle_work": False} | kvcache,
        # The same on every machine, whatever `auto` would stand for.
        "model": {"name": DEFAULT.name},
    }
    made, problems = apply(Config(), values, "test")
    assert not problems
    return made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service():
    made = Service(config())
    await made.ready()
    yield made
    await made.close()


def snapshot(text: str, version: int) -> Snapshot:
    return Snapshot.from_text("worker.py", version, "python", text)


def asked(text: str, at: int, version: int) -> Request:
    return Request(snapshot(text, version), len(text[:at].encode()), Trigger.AUTOMATIC)


async def test_typing_computes_a_token_or_two_and_equals_a_fresh_run(service) -> None:
    at = SOURCE.index(PLACE) + len(PLACE)
    rest = SOURCE[SOURCE.index("\n", at) :]
    counts, same = [], []
    for end in range(4, len(LINE), 3):
        text = SOURCE[:at] + LINE[:end] + rest
        typed = await service.complete(asked(text, at + end, end))
        counts.append(typed.tokens.computed)
        if end in {10, 22}:
            service.clear_cache()
            fresh = await service.complete(asked(text, at + end, end))
            same.append(typed.text == fresh.text)
            assert fresh.tokens.computed == fresh.tokens.context > 600

    assert statistics.median(counts[1:]) <= 2
    assert all(same)


async def test_offers_code_and_no_markers(service) -> None:
    text = "def add(a, b):\n    ret\n"
    completion = await service.complete(asked(text, len(text) - 1, 0))

    assert completion.text.startswith("urn")
    assert "<|" not in completion.text


async def test_a_pause_makes_a_jump_cheap(service) -> None:
    service.reconfigure(config(idle_work=True))
    at = SOURCE.index(PLACE) + len(PLACE)
    service.document_changed(snapshot(SOURCE, 100))
    await service.complete(asked(SOURCE, at, 100))
    await service.idle()
    far = SOURCE.index("        self._idle_delay = idle")
    jumped = await service.complete(asked(SOURCE, far, 101))
    await service.idle()
    again = await service.complete(asked(SOURCE, far, 102))
    service.reconfigure(config())

    assert jumped.tokens.computed <= jumped.tokens.context // 5
    assert again.tokens.computed <= 1
    assert again.tokens.moved == 0
