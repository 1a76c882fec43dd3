import time
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codekv.completion.api import Item, Request, Trigger
from codekv.completion.document import CodeDocuments
from codekv.completion.pipeline import Pipeline
from codekv.completion.prompt.planner import HASTY_BUDGETS, LEAST_BUDGET
from codekv.config import Config, apply
from codekv.cooperative import finish
from codekv.engine.engine import Engine
from codekv.engine.speed import Speed
from codekv.storage.blockstore import BlockStore, StoreBudget
from codekv.storage.plain import PlainCodec
from codekv.structure.parser import Parser
from codekv.testing.model import ByteTokenizer, TinyRuntime
from codekv.text.snapshot import Snapshot

SOURCE = b'''import os

class Shop:
    """A shop."""

    def price(self, item):
        # look it up
        return self.items[item]

    def total(self, cart):
        return sum(self.price(i) for i in cart)

def main():
    shop = Shop()
    print(shop.total([]))
'''


def make(**settings_) -> Pipeline:
    values = {
        "kvcache": {"max_length": 400, "chunk_size": 64, "reuse": "exact"},
        # Speed is measured; a busy machine must not shrink these prompts.
        "completion": {
            "max_tokens": 8,
            "suffix_tokens": 60,
            "latency_budget_ms": 60000,
        },
    }
    for section, more in settings_.items():
        values[section] = values.get(section, {}) | more
    config, problems = apply(Config(), values, "test")
    assert not problems
    runtime, tokenizer = TinyRuntime(), ByteTokenizer()
    # Half a line of random bytes is no text; an alphabet that types makes it one.
    store = BlockStore(
        fingerprint="t", budget=StoreBudget(64 << 20), codec=PlainCodec("fp32")
    )
    vocab = Letters()
    engine = Engine(runtime, vocab, tokenizer.token_bytes, store, config.kvcache)
    engine.speed = Speed(0.001, 0.001)
    documents = CodeDocuments(tokenizer, Parser(), config.kvcache.chunk_size)
    return Pipeline(engine, tokenizer, documents, config)


class Letters(ByteTokenizer):
    def starting_with(self, need):
        return self.allowed(need)


def ask(pipeline, data, cursor, version=0, **more):
    snapshot = Snapshot("t.py", version, "python", data)
    request = Request(snapshot, cursor, Trigger.INVOKED, **more)
    return request, finish(pipeline.complete(request, time.perf_counter()))


@st.composite
def edits(draw):
    return draw(
        st.lists(
            st.tuples(
                st.floats(0, 1),
                st.integers(0, 12),
                st.sampled_from(
                    [b"", b"x", b"\n", b"    y = 1\n", b"(", b"def g():\n"]
                ),
                st.sampled_from(
                    ["ask", "ask", "ask", "prepare", "warm", "far", "drop"]
                ),
            ),
            min_size=1,
            max_size=5,
        )
    )


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(edits())
def test_any_history_answers_like_a_fresh_start(steps) -> None:
    pipeline, data = make(), SOURCE
    for version, (where, cut, text, action) in enumerate(steps):
        at = int(where * len(data))
        data = data[:at] + text + data[at + cut :]
        cursor = at + len(text)
        snapshot = Snapshot("t.py", version, "python", data)
        request = Request(snapshot, cursor, Trigger.INVOKED)
        if action == "prepare":
            finish(pipeline.prepare(request))
        elif action == "warm":
            finish(pipeline.warm(snapshot, persist=False))
        elif action == "far":
            finish(pipeline.warm_far(snapshot, persist=False))
        elif action == "drop":
            dropped = pipeline.complete(request, 0.0)
            for _ in range(3):
                next(dropped, None)
            dropped.close()
        _, mine = ask(pipeline, data, cursor, version)
        _, fresh = ask(make(), data, cursor, version)

        assert [i.text for i in mine.items] == [i.text for i in fresh.items]
        assert mine.tokens.context == fresh.tokens.context
        assert mine.tokens.moved == 0


def test_typing_computes_a_token_or_two() -> None:
    pipeline = make()
    at = SOURCE.index(b"        # look")
    typed = b"        value = item"
    costs = []
    for end in range(1, len(typed) + 1):
        data = SOURCE[:at] + typed[:end] + b"\n" + SOURCE[at:]
        _, completion = ask(pipeline, data, at + end, end)
        costs.append(completion.tokens.computed)

    assert max(costs[1:]) <= 2


def test_edit_above_moves_the_blocks_below() -> None:
    pipeline = make(kvcache={"reuse": "moved", "repair_tokens": 2})
    snapshot = Snapshot("t.py", 0, "python", SOURCE)
    finish(pipeline.warm_far(snapshot, persist=False))
    at = SOURCE.index(b"class")
    data = SOURCE[:at] + b"def new():\n    return 1\n\n" + SOURCE[at:]
    cursor = data.index(b"    print")
    _, completion = ask(pipeline, data, cursor, 1)

    assert completion.tokens.moved > completion.tokens.context // 4
    request = Request(Snapshot("t.py", 1, "python", data), cursor, Trigger.INVOKED)
    finish(pipeline.prepare(request))
    _, again = ask(pipeline, data, cursor, 1)
    assert again.tokens.moved == 0
    assert again.tokens.exact >= again.tokens.context - 1


def test_tight_budget_shrinks_the_context_and_idle_time_completes_it() -> None:
    pipeline = make(completion={"latency_budget_ms": 20})
    pipeline.engine.speed = Speed(0.5, 1.0)
    cursor = len(SOURCE)
    request, quick = ask(pipeline, SOURCE, cursor)
    finish(pipeline.prepare(request))
    _, full = ask(pipeline, SOURCE, cursor)

    assert quick.tokens.context < full.tokens.context
    assert full.tokens.computed <= 1


LONG = SOURCE + b"".join(
    b"def step_%d(shop):\n    return shop.total([%d])\n\n" % (i, i) for i in range(40)
)


def tight(**more) -> Pipeline:
    """A pipeline that can compute 20 tokens in time."""
    kvcache = {"max_length": 1200, "reuse": "moved"} | more
    pipeline = make(kvcache=kvcache, completion={"latency_budget_ms": 20})
    pipeline.engine.speed = Speed(0.001, 1.0)
    return pipeline


def full_context(cursor) -> int:
    """Tokens of the full prompt at a place of `LONG`."""
    generous = make(kvcache={"max_length": 1200})
    return ask(generous, LONG, cursor)[1].tokens.context


@pytest.mark.parametrize("reuse", ["exact", "moved"])
def test_context_grows_while_one_types(reuse) -> None:
    pipeline = tight(reuse=reuse)
    data, cursor, contexts = LONG, len(LONG), []
    climb = None
    for character in b"print(shop.tot":
        data, cursor = data + bytes([character]), cursor + 1
        _, completion = ask(pipeline, data, cursor)
        contexts.append(completion.tokens.context)
        # What a gap between two keystrokes allows of, however few steps.
        climb = climb or pipeline.climber.climb("t.py")
        for _ in range(12):
            if next(climb, "done") == "done":
                climb = None
                break

    assert contexts[-1] > 4 * contexts[0]
    assert contexts == sorted(contexts)


def test_climbing_goes_to_the_top_by_itself() -> None:
    pipeline = tight()
    ask(pipeline, LONG, len(LONG))
    rungs = finish(pipeline.climber.climb("t.py"))
    _, completion = ask(pipeline, LONG, len(LONG))

    assert rungs >= 1
    assert completion.tokens.context == full_context(len(LONG))
    assert completion.tokens.computed <= LEAST_BUDGET * HASTY_BUDGETS


def test_a_jump_ends_the_climb_for_the_place_that_was_left() -> None:
    pipeline = tight()
    ask(pipeline, LONG, len(LONG))
    climb = pipeline.climber.climb("t.py")
    next(climb)
    middle = LONG.index(b"def step_20") + len(b"def step_20(shop):\n    ")
    ask(pipeline, LONG, middle)
    finish(climb)
    _, completion = ask(pipeline, LONG, middle)

    assert completion.tokens.context == full_context(middle)


def test_nothing_climbs_for_a_question_that_nobody_asked() -> None:
    pipeline = tight()
    told: list[str] = []
    pipeline.climber.on_goal = told.append
    request, _ = ask(pipeline, LONG, len(LONG))
    finish(pipeline.speculate(request, Item("c", "x = 1", len(LONG), len(LONG))))

    assert told == ["t.py"]


def test_candidates_differ() -> None:
    pipeline = make()
    cursor = SOURCE.index(b"item]")
    _, completion = ask(pipeline, SOURCE, cursor, max_items=3)

    texts = [item.text for item in completion.items]
    assert len(texts) == len(set(texts))


def test_speculation_answers_the_accepted_text() -> None:
    pipeline = make(completion={"multiline": "always"})
    for at in range(100, len(SOURCE), 7):
        request, completion = ask(pipeline, SOURCE, at)
        if completion.items:
            break
    else:
        pytest.fail("the tiny model offered nothing anywhere")
    ahead, found = finish(pipeline.speculate(request, completion.items[0]))
    same = replace(ahead, snapshot=replace(ahead.snapshot, version=9))
    fresh = finish(make(completion={"multiline": "always"}).complete(same, 0.0))

    assert [i.text for i in found.items] == [i.text for i in fresh.items]


def drop_after(pipeline, request, steps):
    """A keystroke whose answer is dropped because the next one came."""
    dropped = pipeline.complete(request, 0.0)
    for _ in range(steps):
        if next(dropped, "ended") == "ended":
            break
    dropped.close()


def known_at(pipeline, data, cursor):
    """What the last answer would put here: tokens of this vocabulary are bytes."""
    for start in range(cursor, cursor - 4, -1):
        tokens = pipeline._drafts.find("t.py", data, start, cursor)
        if tokens:
            return bytes(tokens)[cursor - start :]
    return b""


def test_what_a_dropped_answer_had_is_kept_while_the_text_agrees() -> None:
    checked = 0
    for at in range(100, len(SOURCE) - 1, 11):
        pipeline = make(completion={"max_tokens": 24})
        snapshot = Snapshot("t.py", 0, "python", SOURCE)
        drop_after(pipeline, Request(snapshot, at, Trigger.INVOKED), 16)
        known = known_at(pipeline, SOURCE, at)
        if len(known) < 8 or known[0] not in b"abcdefghijklmnopqrstuvwxyz(.":
            continue
        checked += 1
        typed = SOURCE[:at] + known[:1] + SOURCE[at:]
        _, kept = ask(pipeline, typed, at + 1, 1)
        _, fresh = ask(make(completion={"max_tokens": 24}), typed, at + 1, 1)

        assert [i.text for i in kept.items] == [i.text for i in fresh.items]
        # What was known is confirmed together with the prompt's end.
        assert kept.tokens.steps <= max(0, kept.tokens.generated - len(known) + 2)
    assert checked


def test_a_keystroke_that_disagrees_starts_anew() -> None:
    pipeline = make(completion={"max_tokens": 24})
    at = SOURCE.index(b"item]")
    snapshot = Snapshot("t.py", 0, "python", SOURCE)
    drop_after(pipeline, Request(snapshot, at, Trigger.INVOKED), 16)
    known = known_at(pipeline, SOURCE, at)
    assert known
    other = b"q" if known[:1] != b"q" else b"z"

    assert known_at(pipeline, SOURCE[:at] + other + SOURCE[at:], at + 1) == b""


def test_indentations_race_to_the_same_answer_as_from_a_fresh_start() -> None:
    block = b"def f(a):\n    for b in a:\n        if b:\n            c(b)\n"
    data = SOURCE + block + b"\n\ndef g():\n    pass\n"
    at = len(SOURCE + block)
    pipeline = make()
    _, first = ask(pipeline, data, at)
    _, again = ask(pipeline, data, at, 1)
    _, several = ask(pipeline, data, at, 2, max_items=3)
    _, plain = ask(make(completion={"syntax_choice": False}), data, at)

    assert [i.text for i in first.items] == [i.text for i in again.items]
    assert len(several.items) <= 3
    assert plain.tokens.context == first.tokens.context
    assert not first.text.startswith("\n")
