import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.cooperative import finish
from codekv.engine.background.idle import Chain, Chains, repair
from codekv.engine.live_sequence import Grade, LiveSequence, common_prefix
from codekv.engine.reuse import shared_spans
from codekv.engine.reuse.extend import extend
from codekv.engine.reuse.kv_transfer import move_slots
from codekv.engine.reuse.plan import (
    REPAIR_LEVELS,
    PrefillRequest,
    Repair,
    ReuseOptions,
    find_spans,
)
from codekv.engine.reuse.prefill import Prefill
from codekv.engine.reuse.prompt_blocks import PromptBlock
from codekv.engine.reuse.shared_spans import GRAM, find_shared_spans
from codekv.engine.sequence_pool import Placement
from codekv.storage.blockstore import BlockStore, StoreBudget
from codekv.storage.plain import PlainCodec
from codekv.testing.model import TinyRuntime

RUNTIME = TinyRuntime()
TOLERANCE = 1e-4
NOTHING = Repair(0, 0, names=False)

texts = st.lists(st.integers(0, 9), min_size=40, max_size=120)


def store() -> BlockStore:
    return BlockStore(
        fingerprint="tiny", budget=StoreBudget(1 << 20), codec=PlainCodec("fp32")
    )


def sequence(tokens) -> LiveSequence:
    seq = LiveSequence(RUNTIME.new_kv(4))
    finish(extend(RUNTIME, seq, tokens))
    return seq


def fresh_row(tokens):
    return RUNTIME.forward(RUNTIME.new_kv(len(tokens)), tokens, 0)[-1]


def run(prefill, seq, request, sources):
    place = Placement(seq, None, seq.common_prefix(request.tokens))
    return prefill.run(seq, prefill.plan(request, place, sources))


@st.composite
def edited(draw):
    """A text and the same text after some replacements."""
    old = draw(texts)
    new = list(old)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(new)))
        size = draw(st.integers(0, 8))
        new[at : at + size] = draw(st.lists(st.integers(10, 19), max_size=8))
    return old, [*new, 42]


@settings(max_examples=60, deadline=None)
@given(st.lists(texts, max_size=3), texts, st.data())
def test_runs_hold_the_same_tokens_and_do_not_overlap(held, tokens, data) -> None:
    sources = [LiveSequence(RUNTIME.new_kv(1), list(text)) for text in held]
    cut = data.draw(st.integers(0, len(tokens)))
    gaps = [(0, cut), (cut, len(tokens))]
    at = 0
    for run in find_shared_spans(tokens, gaps, sources):
        size = run.stop - run.start
        same = run.source.tokens[run.origin : run.origin + size]
        assert tokens[run.start : run.stop] == same
        assert size >= GRAM
        assert run.start >= at
        assert not run.start < cut < run.stop
        at = run.stop


def test_a_text_of_one_repeated_token_is_one_run() -> None:
    source = LiveSequence(RUNTIME.new_kv(1), [7] * 5000)
    found = find_shared_spans([3, *[7] * 4000], [(0, 4001)], [source])

    assert [(run.start, run.stop) for run in found] == [(1, 4001)]


def test_short_repeats_are_told_apart_without_comparing_all_the_rest(
    monkeypatch,
) -> None:
    compared = []

    def counting(left, right):
        compared.append(len(left))
        return common_prefix(left, right)

    monkeypatch.setattr(shared_spans, "common_prefix", counting)
    source = LiveSequence(RUNTIME.new_kv(1), [*[7] * 31, 8] * 40)
    found = find_shared_spans([*[7] * 31, 9] * 40, [(0, 1280)], [source])

    assert (found, compared) == ([], [])


@settings(max_examples=25, deadline=None)
@given(texts, st.integers(0, 50), st.integers(0, 30), st.booleans())
def test_moving_turns_keys_as_computing_elsewhere_would(
    tokens, start, origin, itself
) -> None:
    # The first layer's keys and values depend on the token and its position alone.
    source = sequence(tokens)
    origin = min(origin, len(tokens) - 8)
    seq = source if itself else LiveSequence(RUNTIME.new_kv(4))
    seq.reserve(start + 8)
    move_slots(RUNTIME, seq, [(start, start + 8, source, origin)])
    there = RUNTIME.new_kv(start + 8)
    padding = [0] * start
    RUNTIME.forward(there, [*padding, *tokens[origin : origin + 8]], 0)
    for mine, theirs in zip(
        seq.kv.read(0, start, start + 8),
        there.read(0, start, start + 8),
        strict=True,
    ):
        assert torch.allclose(mine, theirs, atol=TOLERANCE)


@settings(max_examples=40, deadline=None)
@given(edited(), st.integers(0, 20), st.integers(0, 20), st.booleans())
def test_slots_behind_an_edit_are_moved_and_become_exact(
    texts, first, last, itself
) -> None:
    old, new = texts
    source = sequence(old)
    seq = source if itself else LiveSequence(RUNTIME.new_kv(4))
    prefill = Prefill(RUNTIME, store(), True, Repair(first, last))
    row, reuse, _ = finish(run(prefill, seq, PrefillRequest(new), [source]))
    seq.check()

    assert seq.tokens == new
    assert reuse.context == len(new)
    if reuse.moved == 0:
        assert torch.allclose(row, fresh_row(new), atol=TOLERANCE)
    finish(repair(RUNTIME, seq, new))
    seq.check()
    assert seq.num_exact == len(new)
    row, _, _ = finish(extend(RUNTIME, seq, new))
    assert torch.allclose(row, fresh_row(new), atol=TOLERANCE)


@settings(max_examples=20, deadline=None)
@given(edited())
def test_repairing_everything_equals_computing_everything(texts) -> None:
    old, new = texts
    prefill = Prefill(RUNTIME, store(), True, Repair(0, 1000))
    seq = LiveSequence(RUNTIME.new_kv(4))
    row, reuse, _ = finish(run(prefill, seq, PrefillRequest(new), [sequence(old)]))

    assert reuse.moved == 0
    assert torch.allclose(row, fresh_row(new), atol=TOLERANCE)


def test_an_insertion_costs_itself_and_the_repair() -> None:
    old = list(range(200))
    new = [*old[:50], 250, 251, 252, *old[50:]]
    prefill = Prefill(RUNTIME, store(), True, Repair(4, 2))
    seq = sequence(old[:50])
    _, reuse, _ = finish(run(prefill, seq, PrefillRequest(new), [sequence(old)]))

    assert reuse.computed == 3 + 4 + 2
    assert reuse.moved == 150 - 4 - 2
    assert reuse.exact == 50


def test_uses_of_changed_names_are_computed_where_they_were_moved() -> None:
    old = list(range(200))
    new = [250, *old]
    wanted = PrefillRequest(new, stale_uses=(20, 90))
    counts = []
    for names in (False, True):
        prefill = Prefill(RUNTIME, store(), True, Repair(4, 2, names))
        seq = LiveSequence(RUNTIME.new_kv(4))
        _, reuse, _ = finish(run(prefill, seq, wanted, [sequence(old)]))
        counts.append(reuse.computed)

    assert counts == [1 + 4 + 2, 1 + 4 + 2 + 2]


def test_slots_with_too_many_unseen_tokens_are_computed() -> None:
    old = list(range(100))
    for limit, grade in ((30, Grade.MOVED), (29, Grade.COMPUTED)):
        prefill = Prefill(RUNTIME, store(), True, NOTHING, max_unseen=limit)
        seq = sequence(old)
        for inserted in (10, 20):
            new = [*[200 + inserted] * inserted, *seq.tokens]
            target = LiveSequence(RUNTIME.new_kv(4))
            finish(run(prefill, target, PrefillRequest(new), [seq]))
            seq = target
        assert max(seq.grades) == grade


def test_a_token_before_a_slot_stays_seen_wherever_the_slot_comes_from() -> None:
    tokens = list(range(160))
    whole = sequence([250, *tokens])
    found = find_shared_spans(tokens, [(0, 80), (80, 160)], [whole])
    assert [(run.start, run.seen) for run in found] == [(0, 0), (80, 80)]

    found = find_shared_spans([*tokens[80:], *tokens[:80]], [(0, 160)], [whole])
    assert [(run.start, run.seen) for run in found] == [(0, 0), (80, 0)]


@pytest.mark.parametrize(("before", "is_stored"), [(200, True), (60, False)])
def test_stored_blocks_go_before_runs_that_saw_less(before, is_stored) -> None:
    head, block = [i % 97 for i in range(before)], list(range(100, 240))
    kept = store()
    chain = Chain(
        "doc",
        (250, *head, *block),
        (1, 1 + before, 1 + before + len(block)),
        bytes(1 + before + len(block)),
        persist=False,
    )
    finish(Chains(RUNTIME, kept).warm_far(chain))
    old = sequence(block)
    # Another first token than the chain's, so that nothing is exact.
    wanted = PrefillRequest(
        [251, *head, *block, 42],
        [
            PromptBlock(1, 1 + before, tuple(head), 0, 0),
            PromptBlock(1 + before, 1 + before + len(block), tuple(block), 0, before),
        ],
    )
    target = LiveSequence(RUNTIME.new_kv(4))
    options = ReuseOptions(kept, [old], move=True, max_unseen=512)
    last = find_spans(wanted, target.common_prefix(wanted.tokens), options)[-1]

    assert (last.start, last.stop) == (1 + before, 1 + before + len(block))
    assert (last.source is not old) == is_stored
    assert last.unseen == (1 if is_stored else 1 + before)


def test_exact_reuse_moves_nothing() -> None:
    old = list(range(100))
    prefill = Prefill(RUNTIME, store(), False, NOTHING)
    seq = LiveSequence(RUNTIME.new_kv(4))
    _, reuse, _ = finish(
        run(prefill, seq, PrefillRequest([250, *old]), [sequence(old)])
    )

    assert (reuse.moved, reuse.computed) == (0, 101)


def test_each_level_repairs_less_but_never_nothing() -> None:
    repairs = [Repair(16, 24, names=True).at_level(level) for level in REPAIR_LEVELS]
    assert repairs[0] == Repair(16, 24, names=True)
    costs = [repair.first + repair.last for repair in repairs]
    assert costs == sorted(set(costs), reverse=True)
    assert all(repair.first >= 8 and not repair.names for repair in repairs[1:])
