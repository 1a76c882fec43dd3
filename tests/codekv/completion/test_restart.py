from pathlib import Path

from codekv.completion.api import Completion, Request, Trigger
from codekv.completion.document import CodeDocuments
from codekv.completion.pipeline import Pipeline
from codekv.config import Config, apply
from codekv.cooperative import finish
from codekv.engine.engine import Engine
from codekv.engine.speed import Speed
from codekv.storage.blockstore import BlockStore, StoreBudget
from codekv.storage.plain import PlainCodec
from codekv.structure.parser import Parser
from codekv.testing.model import ByteTokenizer, TinyRuntime
from codekv.text.snapshot import Snapshot

SOURCE = b"".join(
    b"def function_%d(x):\n    return x + %d\n\n\n" % (i, i) for i in range(12)
)


def started(folder: Path) -> Pipeline:
    values = {"kvcache": {"max_length": 1200, "chunk_size": 64}}
    completion = {"max_tokens": 8, "latency_budget_ms": 60000}
    config, _ = apply(Config(), values | {"completion": completion}, "test")
    runtime, tokenizer = TinyRuntime(), ByteTokenizer()
    store = BlockStore(
        fingerprint="t",
        budget=StoreBudget(64 << 20, 64 << 20, folder),
        codec=PlainCodec("fp32"),
        kv_shapes=runtime.spec.kv_shapes,
    )
    engine = Engine(runtime, tokenizer, tokenizer.token_bytes, store, config.kvcache)
    engine.speed = Speed(0.001, 0.001)
    documents = CodeDocuments(tokenizer, Parser(), config.kvcache.chunk_size)
    return Pipeline(engine, tokenizer, documents, config)


CURSOR = SOURCE.index(b"    return x + 7")
REQUEST = Request(Snapshot("a.py", 0, "python", SOURCE), CURSOR, Trigger.INVOKED)


def worked(folder: Path, persist: bool) -> tuple[Pipeline, Completion]:
    """A process that answered once and had a long pause."""
    pipeline = started(folder)
    completion = finish(pipeline.complete(REQUEST, 0.0))
    finish(pipeline.warm(REQUEST.snapshot, persist))
    finish(pipeline.warm_far(REQUEST.snapshot, persist))
    return pipeline, completion


def test_a_new_process_restores_what_the_last_one_computed(tmp_path: Path) -> None:
    first, before = worked(tmp_path, persist=True)
    assert first.engine.store.flush(1000) == 0

    second = started(tmp_path)
    after = finish(second.complete(REQUEST, 0.0))

    assert before.tokens.computed == before.tokens.context
    assert after.tokens.context == before.tokens.context
    assert after.tokens.restored > after.tokens.context // 3
    assert after.tokens.computed <= after.tokens.context // 3


def test_what_must_not_be_remembered_is_not(tmp_path: Path) -> None:
    first, _ = worked(tmp_path, persist=False)
    first.engine.store.flush(1000)

    after = finish(started(tmp_path).complete(REQUEST, 0.0))

    assert after.tokens.restored == 0
    assert after.tokens.moved == 0


def test_what_was_excluded_later_is_forgotten_everywhere(tmp_path: Path) -> None:
    first, _ = worked(tmp_path, persist=True)
    assert first.engine.store.flush(1000) == 0
    first.disown(lambda snapshot: None)
    assert first.engine.store.stats().disk_blocks > 0

    first.disown(lambda snapshot: "excluded")
    assert first.documents.all() == []
    after = finish(started(tmp_path).complete(REQUEST, 0.0))

    assert after.tokens.restored == 0
    assert after.tokens.moved == 0
