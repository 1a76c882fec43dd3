import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codekv.tokens.buffer import TokenBuffer
from codekv.tokens.tokenizer import Encoding

SNIPPETS = st.one_of(
    st.sampled_from(
        [
            "",
            "x",
            " ",
            "\n",
            "    ",
            "\n\n    ",
            "def f(x):\n    return x\n",
            "'s",
            "1",
            "123456",
            "世界",
            "é",
            "e\u0301",
            "🙂",
            "a" * 300,
            " " * 300,
            "7" * 300,
            "\n" * 300,
            "foo(bar, baz)",
            "\t",
            "'",
            "_",
        ]
    ),
    st.text(max_size=6),
)
EDITS = st.lists(
    st.tuples(st.integers(0, 10_000), st.integers(0, 60), SNIPPETS), max_size=8
)
STARTS = st.lists(SNIPPETS, max_size=12).map("".join)


@settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(text=STARTS, edits=EDITS)
def test_after_every_edit_the_tokens_are_those_of_the_whole(tokenizer, text, edits):
    buffer = TokenBuffer(tokenizer)
    assert buffer.update(text.encode()) == tokenizer.encode_whole(text.encode())
    for at, removed, added in edits:
        start = at % (len(text) + 1)
        text = text[:start] + added + text[start + removed :]
        data = text.encode()
        assert buffer.update(data) == tokenizer.encode_whole(data)


def test_typing_through_a_file_equals_the_whole(tokenizer, source_text):
    buffer = TokenBuffer(tokenizer)
    data = source_text.encode()
    at = data.index(b"    def update")
    for size in range(at, at + 300, 7):
        text = data[:size] + data[at + 600 :]
        assert buffer.update(text) == tokenizer.encode_whole(text)


def test_a_keystroke_tokenises_a_few_bytes_of_a_large_file(trained, source_text):
    buffer = TokenBuffer(trained("qwen2"))
    data = source_text.encode() * 50
    buffer.update(data)
    at = len(data) // 2
    buffer.update(data[:at] + b"x" + data[at:])
    assert 0 < buffer.num_encoded_bytes < 200


def test_digits_do_not_join_a_long_run(trained):
    buffer = TokenBuffer(trained("qwen2"))
    data = b"7" * 100_000
    buffer.update(data)
    buffer.update(data + b"7")
    assert buffer.num_encoded_bytes < 10


def test_the_same_text_costs_nothing(trained):
    buffer = TokenBuffer(trained("qwen2"))
    first = buffer.update(b"x = 1")
    assert buffer.update(b"x = 1") is first
    assert buffer.num_encoded_bytes == 0


@pytest.mark.parametrize("new", [b"", b"x", b"completely other text\n"])
def test_replacing_everything_works(trained, new):
    tokenizer = trained("qwen2")
    buffer = TokenBuffer(tokenizer)
    buffer.update(b"def f(x):\n    return x\n")
    assert buffer.update(new) == tokenizer.encode_whole(new)


class Bytes:
    """A tokenizer of one token per byte that does not say where it can be cut."""

    def encode(self, data: bytes) -> Encoding:
        return Encoding(tuple(data), tuple(range(1, len(data) + 1)))


def test_a_tokenizer_without_cuts_encodes_the_whole_text():
    buffer = TokenBuffer(Bytes())
    buffer.update(b"foo bar")
    assert buffer.update(b"foo baz").ids == tuple(b"foo baz")
    assert buffer.num_encoded_bytes == 7
