"""The engine on a second kind of device: simulated, so that any machine can test it."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from codekv.completion.api import Request, Trigger
from codekv.completion.document import CodeDocuments
from codekv.completion.pipeline import Pipeline
from codekv.config import Config, apply
from codekv.cooperative import finish
from codekv.engine.engine import Engine
from codekv.engine.speed import Speed
from codekv.storage.blockstore import BlockStore, StoreBudget
from codekv.storage.plain import PlainCodec
from codekv.structure.parser import Parser
from codekv.testing.model import DEVICE_VARIABLE, TinyRuntime
from codekv.testing.other_device import NAME, OtherTensor, enabled
from codekv.testing.tiny import Letters
from codekv.text.snapshot import Snapshot

TEXT = "import os\n\n\n" + "".join(
    f"def part_{i}(one, two):\n    return one + two * {i}\n\n\n" for i in range(12)
)


def test_the_device_refuses_tensors_of_the_cpu() -> None:
    with enabled():
        here = torch.arange(6.0, device=NAME)
        assert here.device.type == NAME
        assert isinstance(here[:3] * 2, OtherTensor)
        assert not isinstance(here.cpu(), OtherTensor)
        for mixed in (
            lambda: here + torch.arange(6.0),
            lambda: here[torch.tensor([1, 2])],
            lambda: torch.cat([here, torch.arange(6.0)]),
            lambda: here.index_copy_(0, torch.tensor([1]), here[:1]),
            lambda: here.numpy(),
        ):
            with pytest.raises((RuntimeError, TypeError)):
                mixed()


def pipeline_on(device: str, folder: Path) -> Pipeline:
    values = {
        "kvcache": {"max_length": 400},
        "completion": {"max_tokens": 8, "latency_budget_ms": 60000},
    }
    config = apply(Config(), values, "test")[0]
    runtime, tokenizer = TinyRuntime(device=device), Letters()
    store = BlockStore(
        fingerprint="tiny",
        budget=StoreBudget(64 << 20, 64 << 20, folder),
        codec=PlainCodec("fp32"),
        kv_shapes=runtime.spec.kv_shapes,
    )
    engine = Engine(runtime, tokenizer, tokenizer.token_bytes, store, config.kvcache)
    engine.speed = Speed(0.001, 0.001)
    documents = CodeDocuments(tokenizer, Parser(), config.kvcache.chunk_size)
    return Pipeline(engine, tokenizer, documents, config)


def session(device: str, folder: Path) -> list[tuple]:
    """Typing, an edit above, a jump, and a restart: what was answered and reused."""
    told = []

    def ask(pipeline: Pipeline, text: str, cursor: int) -> None:
        snapshot = Snapshot.from_text("file:///a.py", len(told), "python", text)
        request = Request(snapshot, cursor, Trigger.INVOKED)
        answer = finish(pipeline.complete(request, 0.0))
        finish(pipeline.prepare(request))
        finish(pipeline.warm(snapshot, persist=True))
        tokens = replace(answer.tokens)
        told.append(([item.text for item in answer.items], tokens))

    pipeline = pipeline_on(device, folder)
    end = len(TEXT)
    for more in ("d", "de", "def x(o):\n    return "):
        ask(pipeline, TEXT + more, end + len(more))
    above = TEXT.replace("import os", "import os, sys")
    ask(pipeline, above, len(above))
    ask(pipeline, above, above.index("two * 3"))
    pipeline.engine.store.flush(10_000)
    ask(pipeline_on(device, folder), above, above.index("two * 3"))
    return told


def test_a_session_computes_the_same_there_as_on_the_cpu(tmp_path) -> None:
    expected = session("cpu", tmp_path / "cpu")
    with enabled():
        found = session(NAME, tmp_path / "other")

    assert found == expected
    assert sum(tokens.moved for _, tokens in found) > 0
    assert found[-1][1].restored + found[-1][1].moved > 0


@pytest.mark.skipif(os.environ.get(DEVICE_VARIABLE) == NAME, reason="it is running")
def test_reuse_and_decoding_pass_their_own_tests_there() -> None:
    """A part of them; with `CODEKV_TINY_DEVICE=privateuseone` pytest runs all there."""
    here = Path(__file__).parent
    chosen = "missing or right_guess or overwritten or insertion or last_branch"
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"),
            *("-k", chosen, "--deselect", str(here / "test_worker.py"), str(here)),
        ],
        env={**os.environ, DEVICE_VARIABLE: NAME},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-2000:]
