from dataclasses import replace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.config import KvCacheConfig
from codekv.cooperative import finish
from codekv.engine.background.idle import Chain, Chains, repair
from codekv.engine.decoding.candidate import DecodeOptions
from codekv.engine.engine import Engine, Task
from codekv.engine.live_sequence import LiveSequence
from codekv.engine.reuse.extend import extend
from codekv.engine.reuse.plan import PrefillRequest, Repair
from codekv.engine.reuse.prefill import Prefill
from codekv.engine.reuse.prompt_blocks import PromptBlock
from codekv.engine.sequence_pool import Placement, SequencePool
from codekv.storage.blockstore import BlockStore, StoreBudget
from codekv.storage.plain import PlainCodec
from codekv.testing.model import PRE, SUF, ByteTokenizer, TinyRuntime

RUNTIME = TinyRuntime()
TOLERANCE = 1e-4


def store() -> BlockStore:
    return BlockStore(
        fingerprint="tiny", budget=StoreBudget(64 << 20), codec=PlainCodec("fp32")
    )


def fresh_row(tokens):
    return RUNTIME.forward(RUNTIME.new_kv(len(tokens)), tokens, 0)[-1]


def chain_of(blocks) -> Chain:
    tokens = (PRE, *(t for block in blocks for t in block))
    cuts, at = [1], 1
    for block in blocks:
        at += len(block)
        cuts.append(at)
    return Chain("doc", tokens, tuple(cuts), bytes(len(tokens)), persist=False)


def run(prefill, seq, request):
    place = Placement(seq, None, seq.common_prefix(request.tokens))
    return prefill.run(seq, prefill.plan(request, place))


def pieces_of(blocks):
    found, at = [], 1
    for block in blocks:
        found.append(PromptBlock(at, at + len(block), tuple(block), 0, at - 1))
        at += len(block)
    return found


texts = st.lists(st.integers(0, 255), min_size=1, max_size=40)
blocks_lists = st.lists(texts, min_size=1, max_size=5)


@settings(max_examples=30, deadline=None)
@given(st.lists(texts, min_size=1, max_size=6), st.integers(1, 64))
def test_extending_over_any_history_equals_a_fresh_run(prompts, chunk) -> None:
    seq = LiveSequence(RUNTIME.new_kv(4))
    for tokens in prompts:
        row, computed, _ = finish(extend(RUNTIME, seq, tokens, chunk))
        seq.check()

        assert torch.allclose(row, fresh_row(tokens), atol=TOLERANCE)
        assert computed <= len(tokens)
    row, computed, _ = finish(extend(RUNTIME, seq, prompts[-1], chunk))

    assert computed == 0


@settings(max_examples=30, deadline=None)
@given(st.lists(texts, min_size=1, max_size=6), st.data())
def test_dropped_work_leaves_a_valid_prefix(prompts, data) -> None:
    seq = LiveSequence(RUNTIME.new_kv(4))
    for tokens in prompts:
        steps = extend(RUNTIME, seq, tokens, 3)
        for _ in range(data.draw(st.integers(0, 5))):
            try:
                next(steps)
            except StopIteration:
                break
        steps.close()
        seq.check()
    row, _, _ = finish(extend(RUNTIME, seq, prompts[-1]))

    assert torch.allclose(row, fresh_row(prompts[-1]), atol=TOLERANCE)


@settings(max_examples=25, deadline=None)
@given(blocks_lists, texts)
def test_restored_chain_gives_the_exact_answer(blocks, tail) -> None:
    kept = store()
    finish(Chains(RUNTIME, kept).warm(chain_of(blocks)))
    tokens = (*chain_of(blocks).tokens, *tail)
    seq = LiveSequence(RUNTIME.new_kv(4))
    prefill = Prefill(RUNTIME, kept, move=False, repair=Repair(4, 3))
    row, reuse, _ = finish(run(prefill, seq, PrefillRequest(tokens, pieces_of(blocks))))
    seq.check()

    assert torch.allclose(row, fresh_row(tokens), atol=TOLERANCE)
    assert reuse.context == len(tokens)
    assert reuse.moved == 0


@settings(max_examples=25, deadline=None)
@given(st.lists(texts, min_size=2, max_size=5), texts, st.data())
def test_a_block_behind_a_marker_is_not_exact(blocks, tail, data) -> None:
    shared = store()
    finish(Chains(RUNTIME, shared).warm(chain_of(blocks)))
    cut = data.draw(st.integers(1, len(blocks) - 1))
    first, marker = pieces_of(blocks)[:cut], 1 + sum(map(len, blocks[:cut]))
    last = [
        PromptBlock(p.start + 1, p.stop + 1, p.block, 0, p.place)
        for p in pieces_of(blocks)[cut:]
    ]
    tokens = [*chain_of(blocks).tokens, *tail]
    tokens.insert(marker, SUF)
    wanted = PrefillRequest(tokens, [*first, *last])
    seq = LiveSequence(RUNTIME.new_kv(4))
    prefill = Prefill(RUNTIME, shared, False, Repair(0, 0))
    row, _, _ = finish(run(prefill, seq, wanted))

    assert torch.allclose(row, fresh_row(tokens), atol=TOLERANCE)


@settings(max_examples=25, deadline=None)
@given(blocks_lists, texts, texts, st.integers(0, 8))
def test_moved_blocks_become_exact_by_repair(blocks, above, tail, k) -> None:
    kept = store()
    finish(Chains(RUNTIME, kept).warm(chain_of(blocks)))
    moved = [above, *blocks]
    tokens = (*chain_of(moved).tokens, *tail)
    seq = LiveSequence(RUNTIME.new_kv(4))
    prefill = Prefill(RUNTIME, kept, move=True, repair=Repair(k, k))
    _, reuse, _ = finish(run(prefill, seq, PrefillRequest(tokens, pieces_of(moved))))
    seq.check()
    assert reuse.context == len(tokens)

    finish(repair(RUNTIME, seq, tokens))
    seq.check()

    assert seq.num_exact == len(tokens)
    exact = RUNTIME.new_kv(len(tokens))
    RUNTIME.forward(exact, tokens, 0)
    for layer in range(RUNTIME.spec.num_layers):
        for mine, theirs in zip(
            seq.kv.read(layer, 0, len(tokens)),
            exact.read(layer, 0, len(tokens)),
            strict=True,
        ):
            assert torch.allclose(mine, theirs, atol=TOLERANCE)
    row, computed, _ = finish(extend(RUNTIME, seq, tokens))
    assert computed <= 1
    assert torch.allclose(row, fresh_row(tokens), atol=TOLERANCE)


@settings(max_examples=25, deadline=None)
@given(blocks_lists, texts, st.data())
def test_assembly_may_be_dropped_at_any_step(blocks, above, data) -> None:
    kept = store()
    finish(Chains(RUNTIME, kept).warm(chain_of(blocks)))
    moved = [above, *blocks]
    tokens = chain_of(moved).tokens
    seq = LiveSequence(RUNTIME.new_kv(4))
    prefill = Prefill(RUNTIME, kept, move=True, repair=Repair(2, 0))
    for _ in range(3):
        steps = run(prefill, seq, PrefillRequest(tokens, pieces_of(moved)))
        for _ in range(data.draw(st.integers(0, 4))):
            try:
                next(steps)
            except StopIteration:
                break
        steps.close()
        seq.check()
    finish(repair(RUNTIME, seq, tokens))
    row, _, _ = finish(extend(RUNTIME, seq, tokens))

    assert torch.allclose(row, fresh_row(tokens), atol=TOLERANCE)


@settings(max_examples=40, deadline=None)
@given(st.lists(texts, min_size=1, max_size=12), st.integers(1, 3), st.integers(0, 8))
def test_sequences_are_shared_by_copying(prompts, limit, spare) -> None:
    pool = SequencePool(lambda: LiveSequence(RUNTIME.new_kv(4)), limit)
    for tokens in prompts:
        seq = pool.acquire(pool.place(tokens, (), spare))
        row, _, _ = finish(extend(RUNTIME, seq, tokens))

        assert torch.allclose(row, fresh_row(tokens), atol=TOLERANCE)
        assert len(list(pool)) <= limit
        for other in pool:
            other.check()


def test_missing_counts_what_an_answer_computes() -> None:
    engine = Engine(RUNTIME, ByteTokenizer(), bytes, store(), KvCacheConfig())
    tokens = tuple(b"def f(x):\n    return x\n" * 8)
    task = Task(tokens, (), DecodeOptions(max_tokens=1), lambda _: False, topic="a")
    assert engine.plan(task).num_computed == (len(tokens),) * 3

    finish(engine.prepare(task))
    moved = replace(task, tokens=(*b"import os\n", *tokens))
    missing = engine.plan(moved).num_computed
    outcomes = [
        finish(engine.answer(replace(moved, repair_level=level))) for level in (2, 1, 0)
    ]

    assert list(missing) == sorted(missing, reverse=True)
    assert missing[2] < missing[0] < len(tokens)
    assert outcomes[0].reuse.computed == missing[2]


def test_the_planners_search_is_the_only_one(monkeypatch) -> None:
    engine = Engine(RUNTIME, ByteTokenizer(), bytes, store(), KvCacheConfig())
    tokens = tuple(b"def f(x):\n    return x\n" * 8)
    task = Task(tokens, (), DecodeOptions(max_tokens=1), lambda _: False, topic="a")
    finish(engine.prepare(task))
    edited = replace(task, tokens=(*b"import os\n", *tokens))
    planned = replace(edited, reuse=engine.plan(edited), repair_level=2)
    searches = []
    search = engine.prefill.plan
    monkeypatch.setattr(
        engine.prefill, "plan", lambda *how: searches.append(how) or search(*how)
    )
    outcome = finish(engine.answer(planned))

    assert searches == []
    assert outcome.reuse.computed == planned.reuse.num_computed[2]
    # What stood there is gone, so the plan no longer holds.
    engine.pool.clear()
    finish(engine.answer(planned))
    assert len(searches) == 1


@settings(max_examples=25, deadline=None)
@given(st.lists(texts, min_size=2, max_size=6), st.integers(1, 3))
def test_an_outdated_plan_changes_no_answer(prompts, limit) -> None:
    kvcache = KvCacheConfig(live_documents=limit, reuse="exact")
    engine = Engine(RUNTIME, ByteTokenizer(), bytes, store(), kvcache)
    options = DecodeOptions(max_tokens=2)
    tasks = [Task(tuple(text), (), options, lambda _: False) for text in prompts]
    planned = [replace(task, reuse=engine.plan(task)) for task in tasks]
    for task in planned:
        outcome = finish(engine.answer(task))
        fresh = Engine(RUNTIME, ByteTokenizer(), bytes, store(), kvcache)

        expected = finish(fresh.answer(replace(task, reuse=None)))
        assert outcome.candidate.tokens == expected.candidate.tokens
        assert len(list(engine.pool)) <= limit
        for seq in engine.pool:
            seq.check()
