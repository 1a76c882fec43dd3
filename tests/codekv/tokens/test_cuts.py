from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codekv.tokens.cuts import Cuts, find_cuts

FRAGMENTS = st.lists(
    st.sampled_from(
        ["foo", "(", " bar", " ", "  ", "\n", "12", "'s", "é", "世", "_", "\t", "="]
    ),
    max_size=12,
).map("".join)


@settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(text=FRAGMENTS)
def test_both_sides_of_every_cut_are_tokenised_as_in_the_whole(tokenizer, text):
    data = text.encode()
    whole = tokenizer.encode_whole(data)
    cut = tokenizer.cuts.after(data, 1)
    while cut < len(data):
        left = tokenizer.encode_whole(data[:cut]).ids
        right = tokenizer.encode_whole(data[cut:]).ids
        assert left + right == whole.ids
        cut = tokenizer.cuts.after(data, cut + 1)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(text=FRAGMENTS, at=st.integers(0, 60))
def test_searching_back_finds_the_last_cut(trained, text, at):
    cuts = trained("qwen2").cuts
    data = text.encode() * 3
    found = {cuts.after(data, start) for start in range(1, len(data))} - {len(data)}
    assert cuts.before(data, at) == max((c for c in found if c <= at), default=0)


def test_searching_back_goes_as_far_as_it_must(trained):
    cuts = trained("qwen2").cuts
    data = b"x y" + b"z" * 100_000
    assert cuts.before(data, len(data)) == 1


def test_pieces_are_the_text(trained, source_text):
    cuts = trained("qwen2").cuts
    data = source_text.encode() * 3
    pieces = cuts.pieces(data, 512)
    assert b"".join(pieces) == data
    assert len(pieces) > 10


def test_a_tokenizer_that_joins_everything_is_never_cut():
    # One token for the whole text: no cut can be right.
    cuts = find_cuts(lambda text: [len(text)], [])
    assert cuts.after(b"a b(c 12", 1) == 8
    assert cuts.before(b"a b(c 12", 8) == 0


def test_an_entry_that_crosses_a_cut_rules_it_out():
    pieces = [bytes([byte]) for byte in range(256)] + [b"f foo"]

    def encode(text: str) -> list[int]:
        return [256] if text == "f foo" else list(text.encode())

    assert find_cuts(encode, pieces[:-1]).after(b"xx yy", 1) == 2
    assert find_cuts(encode, pieces).after(b"xx yy", 1) == 5


def test_an_entry_that_no_text_becomes_rules_nothing_out():
    def encode(text: str) -> list[int]:
        return list(text.encode())

    assert find_cuts(encode, [b"f foo"]).after(b"xx yy", 1) == 2


def test_no_patterns_find_nothing():
    assert Cuts(()).after(b"a b", 0) == 3
    assert Cuts(()).before(b"a b", 3) == 0
