"""Sequences that share slots hold what sequences with copies hold."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.cooperative import finish
from codekv.engine.background.idle import repair
from codekv.engine.live_sequence import Grade, LiveSequence
from codekv.engine.reuse.extend import extend
from codekv.engine.reuse.kv_transfer import move_slots
from codekv.engine.sequence_pool import SequencePool
from codekv.testing.model import TinyRuntime

RUNTIME = TinyRuntime()
STEMS = [list(range(40)), [*range(20), *range(60, 90)], list(range(100, 130))]

prompts = st.lists(
    st.tuples(
        st.sampled_from(STEMS), st.integers(1, 50), st.lists(st.integers(0, 9))
    ).map(lambda found: [*found[0][: found[1]], *found[2], 7]),
    min_size=1,
    max_size=14,
)


def pool_of(limit: int, share_from: int) -> SequencePool:
    return SequencePool(lambda: LiveSequence(RUNTIME.new_kv(4)), limit, share_from)


def slots(seq: LiveSequence) -> list[torch.Tensor]:
    layers = range(RUNTIME.spec.num_layers)
    return [t for i in layers for t in seq.kv.read(i, 0, len(seq))]


def check_contents(pool: SequencePool) -> None:
    for seq in pool:
        seq.check()
        fresh = RUNTIME.new_kv(len(seq))
        RUNTIME.forward(fresh, seq.tokens, 0)
        expected = LiveSequence(fresh, list(seq.tokens))
        for mine, theirs in zip(slots(seq), slots(expected), strict=True):
            assert torch.allclose(mine, theirs, atol=1e-4)


@settings(max_examples=60, deadline=None)
@given(prompts, st.integers(1, 4), st.integers(0, 8))
def test_shared_sequences_equal_copied_ones(texts, limit, spare) -> None:
    sharing, copying = pool_of(limit, 1), pool_of(limit, 10_000)
    for tokens in texts:
        shared = sharing.acquire(sharing.place(tokens, (), spare))
        copied = copying.acquire(copying.place(tokens, (), spare))
        assert shared.tokens == copied.tokens
        row, _, _ = finish(extend(RUNTIME, shared, tokens))
        twin, _, _ = finish(extend(RUNTIME, copied, tokens))

        assert torch.equal(row, twin)
        assert [seq.tokens for seq in sharing] == [seq.tokens for seq in copying]
        assert sharing.num_shared_bytes >= copying.num_shared_bytes == 0
        check_contents(sharing)


def test_what_is_overwritten_is_copied_first() -> None:
    pool = pool_of(4, 1)
    stem = list(range(50))
    first = pool.acquire(pool.place([*stem, 60, 61]))
    finish(extend(RUNTIME, first, [*stem, *range(60, 160)]))
    second = pool.acquire(pool.place([*stem, 200]))
    finish(extend(RUNTIME, second, [*stem, 200]))
    assert first.trunk is second.trunk is not None
    # Slots are moved into the shared part before the sequence is cropped.
    second.protect(10)
    move_slots(RUNTIME, second, [(10, 30, second, 20)])
    second.crop(10)

    check_contents(pool)
    assert first.kv.read(0, 5, 12)[0].shape[1] == 7


def test_repair_of_shared_slots_is_everybodys() -> None:
    pool = pool_of(4, 1)
    stem = list(range(50))
    first = pool.acquire(pool.place(stem))
    finish(extend(RUNTIME, first, [*stem, *range(60, 160)]))
    first.grades[20:30] = bytes([Grade.MOVED]) * 10
    for layer in range(RUNTIME.spec.num_layers):
        first.kv.keys[layer][:, 20:30] += 1.0
    second = pool.acquire(pool.place([*stem, 200]))
    tokens = [*stem, 200]
    finish(repair(RUNTIME, second, tokens))

    assert second.num_exact == len(tokens)
    fresh = RUNTIME.new_kv(60)
    RUNTIME.forward(fresh, stem, 0)
    assert torch.allclose(
        first.kv.read(0, 20, 30)[0], fresh.read(0, 20, 30)[0], atol=1e-4
    )


def test_a_sequence_that_leaves_keeps_its_relatives() -> None:
    pool = pool_of(3, 1)
    stem = list(range(50))
    for number in range(6):
        tokens = [*stem, *[60 + number] * 90]
        seq = pool.acquire(pool.place(tokens))
        finish(extend(RUNTIME, seq, tokens))
        check_contents(pool)
    pool.drop_oldest()
    check_contents(pool)
    assert len({id(seq.trunk) for seq in pool}) == 1
