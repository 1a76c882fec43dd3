import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.cooperative import finish
from codekv.engine.decoding.candidate import Candidate, DecodeOptions
from codekv.engine.decoding.drafts import DraftPolicy, NgramIndex
from codekv.engine.decoding.greedy import GreedyDecoder
from codekv.engine.engine import Task
from codekv.engine.live_sequence import LiveSequence
from codekv.engine.reuse.extend import extend
from codekv.testing.model import ByteTokenizer, TinyRuntime

RUNTIME = TinyRuntime()
TOKENIZER = ByteTokenizer()


def decode(tokens, *, draft, previous=(), need=b"", size=24) -> Candidate:
    seq = LiveSequence(RUNTIME.new_kv(8))
    guess = previous if draft and len(tokens) % 2 else ()
    row, _, ahead = finish(extend(RUNTIME, seq, tokens, guess=guess))
    index = NgramIndex()
    index.sync(tokens, 0)
    options = DecodeOptions(need, size, frozenset(), tuple(previous), draft)
    decoder = GreedyDecoder(RUNTIME, TOKENIZER, TOKENIZER.token_bytes, DraftPolicy())
    task = Task((), (), options, lambda _: False)
    decoded = finish(decoder.decode(seq, row, index, task, ahead=ahead))
    seq.check()
    return decoded


def test_a_right_guess_costs_no_further_step() -> None:
    plain = decode(list(b"abc"), draft=False)
    seq = LiveSequence(RUNTIME.new_kv(8))
    row, _, ahead = finish(extend(RUNTIME, seq, b"abc", guess=plain.tokens))
    options = DecodeOptions(max_tokens=len(plain.tokens))
    decoder = GreedyDecoder(RUNTIME, TOKENIZER, TOKENIZER.token_bytes, DraftPolicy())
    task = Task((), (), options, lambda _: False)
    decoded = finish(decoder.decode(seq, row, NgramIndex(), task, ahead=ahead))

    assert decoded.tokens == plain.tokens
    assert decoded.num_steps == 0


prompts = st.lists(st.sampled_from(b"abcd \n"), min_size=1, max_size=60)


@settings(max_examples=25, deadline=None)
@given(
    prompts,
    st.lists(st.sampled_from(b"abcd \n"), max_size=10),
    st.sampled_from([b"", b"a", b"abc"]),
)
def test_drafting_never_changes_the_text(tokens, previous, need) -> None:
    plain = decode(tokens, draft=False, need=need)
    drafted = decode(tokens, draft=True, previous=previous, need=need)

    assert drafted.data == plain.data
    assert drafted.tokens == plain.tokens
    # The right guess is the likeliest to be taken too far.
    again = decode(tokens, draft=True, previous=plain.tokens, need=need)
    assert again.tokens == plain.tokens


def test_drafting_saves_steps_when_the_guess_is_right() -> None:
    plain = decode(list(b"abc"), draft=False)
    guess = plain.tokens

    assert decode(list(b"abc"), draft=True, previous=guess).num_steps < plain.num_steps


@settings(max_examples=20, deadline=None)
@given(prompts, st.binary(min_size=1, max_size=6))
def test_text_begins_with_the_healed_word(tokens, need) -> None:
    decoded = decode(tokens, draft=True, need=need)

    assert decoded.data.startswith(need)


def test_greedy_text_equals_the_plain_argmax_loop() -> None:
    tokens = list(b"def f(x):\n    return")
    expected = list(tokens)
    for _ in range(24):
        kv = RUNTIME.new_kv(len(expected))
        row = RUNTIME.forward(kv, expected, 0)
        expected.append(int(torch.argmax(row[-1])))
    wanted = [t for t in expected[len(tokens) :] if t < 256]

    assert decode(tokens, draft=True).tokens == tuple(wanted)
