import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.tokens.vocab import Vocabulary


@pytest.fixture(scope="module")
def vocabulary(trained):
    tokenizer = trained("qwen2")
    return tokenizer, Vocabulary(tokenizer)


def pieces(tokenizer):
    return {t: tokenizer.token_bytes(t) for t in range(tokenizer.vocab_size)}


NEEDS = st.one_of(
    st.binary(min_size=1, max_size=5),
    st.sampled_from([b"ret", b"def", b" self", b"\n", b"    ", b"\xff", b"\xc3", b"e"]),
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(need=NEEDS)
def test_ranges_equal_a_search_through_all_tokens(vocabulary, need):
    tokenizer, vocab = vocabulary
    table = pieces(tokenizer)
    starting = {t for t, p in table.items() if p.startswith(need)}
    prefixes = {t for t, p in table.items() if p and need.startswith(p) and p != need}
    assert set(vocab.starting_with(need).tolist()) == starting
    assert set(vocab.prefixes_of(need).tolist()) == prefixes
    assert sorted(vocab.allowed(need).tolist()) == sorted(starting | prefixes)


def test_nothing_needed_allows_every_token_of_text(vocabulary):
    tokenizer, vocab = vocabulary
    every = {t for t, p in pieces(tokenizer).items() if p}
    assert set(vocab.allowed(b"").tolist()) == every
    assert not every & tokenizer.special_ids


def test_a_byte_that_must_come_can_always_come(vocabulary):
    _, vocab = vocabulary
    for byte in range(256):
        assert len(vocab.allowed(bytes([byte])))


def test_tokens_with_a_line_end_are_known(vocabulary):
    tokenizer, vocab = vocabulary
    expected = [t for t, p in pieces(tokenizer).items() if b"\n" in p]
    assert vocab.newline_ids.tolist() == expected
    assert vocab.has_newline.sum() == len(expected)
    assert len(vocab.has_newline) == tokenizer.vocab_size


def test_results_are_cached_and_cannot_be_changed(vocabulary):
    _, vocab = vocabulary
    found = vocab.allowed(b"re")
    assert vocab.allowed(b"re") is found
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 0
