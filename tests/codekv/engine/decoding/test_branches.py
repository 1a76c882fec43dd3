from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.cooperative import finish
from codekv.engine.decoding.branches import (
    Brancher,
    Leader,
    Race,
    Start,
    most_likely,
)
from codekv.engine.decoding.candidate import DecodeOptions
from codekv.engine.live_sequence import LiveSequence
from codekv.engine.reuse.extend import extend
from codekv.testing.model import ByteTokenizer, TinyRuntime

RUNTIME = TinyRuntime()
TOKENIZER = ByteTokenizer()


def alone(tokens, start, size):
    """Slow twin: the branch decoded by itself, one plain step at a time."""
    text = [*tokens, *start]
    while len(text) < len(tokens) + size:
        kv = RUNTIME.new_kv(len(text))
        token = int(RUNTIME.forward(kv, text, 0)[-1].argmax())
        if token >= 256:
            break
        text.append(token)
    return text[len(tokens) :]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 255), min_size=1, max_size=20),
    st.lists(st.lists(st.integers(0, 255), max_size=3), min_size=1, max_size=4),
    st.integers(4, 8),
)
def test_each_branch_equals_decoding_it_alone(tokens, starts, size) -> None:
    seq = LiveSequence(RUNTIME.new_kv(4))
    row, _, _ = finish(extend(RUNTIME, seq, tokens))
    brancher = Brancher(RUNTIME, TOKENIZER.token_bytes)
    options = DecodeOptions(max_tokens=size)
    begun = [Start(tuple(start)) for start in starts]
    branches = finish(brancher.decode(seq, row, begun, options, lambda _: False))

    for start, branch in zip(starts, branches, strict=True):
        assert branch.text.tokens == alone(tokens, start, size)
    seq.check()
    assert seq.tokens == tokens


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 255), min_size=1, max_size=20),
    st.lists(st.integers(0, 255), min_size=1, max_size=4, unique=True),
    st.data(),
)
def test_nobody_waits_for_branches_long_after_the_leader(tokens, starts, data) -> None:
    leader = data.draw(st.integers(0, len(starts) - 1))
    is_end = data.draw(st.sampled_from([b"a", b"e", b"\n", b"\x00"]))

    def decode(**how):
        seq = LiveSequence(RUNTIME.new_kv(4))
        row, _, _ = finish(extend(RUNTIME, seq, tokens))
        brancher = Brancher(RUNTIME, TOKENIZER.token_bytes)
        begun = [Start((start,)) for start in starts]
        options = DecodeOptions(max_tokens=24)
        found = brancher.decode(
            seq, row, begun, options, lambda text: text[-1:] == is_end, **how
        )
        return {branch.start.tokens[0]: branch.candidate for branch in finish(found)}

    every, some = decode(), decode(rules=Leader(leader))

    steps = every[starts[leader]].num_steps
    most = Leader(leader).most(steps)
    assert starts[leader] in some
    assert some == {start: out for start, out in every.items() if out.num_steps <= most}


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 255), min_size=1, max_size=20),
    st.lists(st.lists(st.integers(0, 255), max_size=2), min_size=1, max_size=3),
    st.data(),
)
def test_a_kept_branch_continues_like_a_fresh_text(tokens, starts, data) -> None:
    seq = LiveSequence(RUNTIME.new_kv(4))
    row, _, _ = finish(extend(RUNTIME, seq, tokens))
    brancher = Brancher(RUNTIME, TOKENIZER.token_bytes)
    options = DecodeOptions(max_tokens=5)
    begun = [Start(tuple(start)) for start in starts]
    branches = finish(brancher.decode(seq, row, begun, options, lambda _: False))
    branch = data.draw(st.sampled_from(branches))
    brancher.keep(seq, branch)
    seq.check()

    longer = [*seq.tokens, 7]
    kept, computed, _ = finish(extend(RUNTIME, seq, longer))
    fresh = RUNTIME.forward(RUNTIME.new_kv(len(longer)), longer, 0)[-1]
    assert computed == 1
    assert kept.allclose(fresh, atol=1e-4)


def test_likeliest_tokens_come_first() -> None:
    kv = RUNTIME.new_kv(4)
    row = RUNTIME.forward(kv, [1, 2, 3], 0)[-1]

    assert most_likely(row, None, 3)[0] == int(row.argmax())


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 255), min_size=1, max_size=20),
    st.lists(st.sampled_from(b" \t"), max_size=3),
)
def test_behind_forced_white_space_comes_no_other_white_space(tokens, space) -> None:
    seq = LiveSequence(RUNTIME.new_kv(4))
    row, _, _ = finish(extend(RUNTIME, seq, tokens))
    brancher = Brancher(RUNTIME, TOKENIZER.token_bytes)
    start = Start(tuple(space), b"")
    options = DecodeOptions(max_tokens=len(space) + 1)
    (branch,) = finish(brancher.decode(seq, row, [start], options, lambda _: False))

    assert branch.text.data.startswith(bytes(space))
    assert (
        branch.text.finish_reason == "dead-end"
        or branch.text.data[len(space) :].strip()
    )


def test_a_branch_whose_lead_is_unlikely_ends_at_once() -> None:
    seq = LiveSequence(RUNTIME.new_kv(4))
    row, _, _ = finish(extend(RUNTIME, seq, [1, 2, 3]))
    brancher = Brancher(RUNTIME, TOKENIZER.token_bytes)
    start = Start((), b"two bytes")
    (branch,) = finish(
        brancher.decode(seq, row, [start], DecodeOptions(), lambda _: False)
    )

    assert (branch.text.finish_reason, branch.text.tokens) == ("dead-end", [])


def raced(tokens, starts, race, size=8):
    seq = LiveSequence(RUNTIME.new_kv(4))
    row, _, _ = finish(extend(RUNTIME, seq, tokens))
    brancher = Brancher(RUNTIME, TOKENIZER.token_bytes)
    options = DecodeOptions(max_tokens=size)
    begun = [Start(tuple(start)) for start in starts]
    branches = brancher.decode(seq, row, begun, options, lambda _: False, race)
    return seq, brancher, finish(branches)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 255), min_size=1, max_size=20),
    st.lists(st.lists(st.integers(0, 255), min_size=1, max_size=2), min_size=2),
)
def test_the_likeliest_branch_is_never_dropped(tokens, starts) -> None:
    _, _, everyone = raced(tokens, starts[:4], None)
    _, _, alive = raced(tokens, starts[:4], Race(margin=1e9, max_tokens=99))

    assert [b.text.tokens for b in alive] == [b.text.tokens for b in everyone]
    _, _, best = raced(tokens, starts[:4], Race(margin=0.0, max_tokens=99))
    assert best


def test_the_last_branch_of_a_race_goes_on_where_it_stands() -> None:
    tokens = [1, 2, 3]
    seq, brancher, branches = raced(tokens, [[5], [6], [7]], Race(0.0, 99))
    (branch,) = branches
    brancher.keep(seq, branch)
    fresh = RUNTIME.new_kv(len(seq))
    row = RUNTIME.forward(fresh, seq.tokens, 0)[-1]

    assert seq.tokens == tokens + branch.text.tokens
    assert branch.logits.allclose(row, atol=1e-4)


def test_second_choices_differ_from_first_ones() -> None:
    starts = [Start((), b"", rank) for rank in range(3)]
    seq = LiveSequence(RUNTIME.new_kv(4))
    row, _, _ = finish(extend(RUNTIME, seq, [1, 2, 3]))
    brancher = Brancher(RUNTIME, TOKENIZER.token_bytes)
    options = DecodeOptions(max_tokens=1)
    branches = finish(brancher.decode(seq, row, starts, options, lambda _: False))
    totals = [branch.text.total for branch in branches]

    assert len({branch.text.data for branch in branches}) == 3
    assert totals == sorted(totals, reverse=True)
    assert Race.among(starts).margin > Race.among(starts[:1]).margin
