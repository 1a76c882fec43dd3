"""Work on several documents that waits for newer work and then goes on."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codekv.completion.api import Request, Trigger
from codekv.config import Config, apply
from codekv.cooperative import finish
from codekv.engine.speed import Speed
from codekv.testing.tiny import tiny_pipeline
from codekv.text.snapshot import Snapshot

HEAD = b"import os\n\n\ndef first(one, two):\n    return one + two\n\n\n"
SOURCES = {
    f"{name}.py": HEAD
    + b"".join(
        b"def %s%d(item):\n    return item + %d\n\n\n" % (name.encode(), i, i)
        for i in range(5)
    )
    for name in "abc"
}


def make(reuse="moved", live_documents=2, budget_ms=60000):
    values = {
        "kvcache": {
            "max_length": 400,
            "chunk_size": 64,
            "reuse": reuse,
            "live_documents": live_documents,
        },
        "completion": {
            "max_tokens": 8,
            "suffix_tokens": 60,
            "latency_budget_ms": budget_ms,
        },
    }
    config, problems = apply(Config(), values, "test")
    assert not problems
    pipeline = tiny_pipeline(config)
    if budget_ms < 60000:
        pipeline.engine.speed = Speed(0.001, 1.0)
    return pipeline


def request(uri, cursor=-1, data=None):
    data = SOURCES[uri] if data is None else data
    snapshot = Snapshot(uri, 0, "python", data)
    return Request(snapshot, cursor if cursor >= 0 else len(data), Trigger.INVOKED)


def start(steps, count):
    for _ in range(count):
        next(steps)
    return steps


def holds_what_it_says(pipeline):
    engine = pipeline.engine
    for seq in (*engine.pool, *engine.chains.sequences()):
        seq.check()
        exact = seq.num_exact
        fresh = engine.runtime.new_kv(exact + 1)
        engine.runtime.forward(fresh, [*seq.tokens[:exact], 0], 0, "none")
        for layer in range(engine.runtime.spec.num_layers):
            mine, theirs = seq.kv.read(layer, 0, exact), fresh.read(layer, 0, exact)
            for a, b in zip(mine, theirs, strict=True):
                assert torch.allclose(a, b, atol=1e-3)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_an_answer_that_waited_for_another_document_is_right(count) -> None:
    pipeline = make("exact", live_documents=1)
    waiting = start(pipeline.complete(request("a.py"), 0.0), count)
    finish(pipeline.complete(request("b.py"), 0.0))
    mine = finish(waiting)
    fresh = finish(make("exact").complete(request("a.py"), 0.0))

    assert [item.text for item in mine.items] == [item.text for item in fresh.items]
    holds_what_it_says(pipeline)


actions = st.tuples(
    st.sampled_from(
        ["complete", "complete", "climb", "prepare", "warm", "far", "forget"]
    ),
    st.sampled_from(list(SOURCES)),
    st.floats(0, 1),
    st.integers(0, 6),
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(actions, min_size=3, max_size=10),
    st.sampled_from(["exact", "moved"]),
    st.integers(1, 2),
    st.sampled_from([20, 60000]),
)
def test_sequences_hold_what_they_say_in_whatever_order_work_goes_on(
    order, reuse, live_documents, budget_ms
) -> None:
    pipeline = make(reuse, live_documents, budget_ms)
    texts, jobs = dict(SOURCES), []
    for action, uri, where, count in order:
        cursor = int(where * len(texts[uri]))
        texts[uri] = texts[uri][:cursor] + b"x" + texts[uri][cursor:]
        asked = request(uri, cursor + 1, texts[uri])
        if action == "forget":
            pipeline.forget(uri)
            continue
        job = {
            "complete": lambda asked=asked: pipeline.complete(asked, 0.0),
            "climb": lambda uri=uri: pipeline.climber.climb(uri),
            "prepare": lambda asked=asked: pipeline.prepare(asked),
            "warm": lambda asked=asked: pipeline.warm(asked.snapshot, False),
            "far": lambda asked=asked: pipeline.warm_far(asked.snapshot, False),
        }[action]()
        jobs.append(job)
        for _ in range(count):
            next(job, None)
        holds_what_it_says(pipeline)
    for job in reversed(jobs):
        finish(job)
    holds_what_it_says(pipeline)
    pipeline.engine.store.check()
