from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.completion.prompt.healing import healed
from codekv.completion.prompt.layout import build, pieces
from codekv.completion.prompt.window import (
    LEAST_PREFIX,
    Limits,
    Place,
    longest_middle,
    most_suffix,
    window_start,
)
from codekv.completion.shaping.shape import rest_end
from codekv.testing.model import MID, PRE, SUF, ByteTokenizer

TOKENIZER = ByteTokenizer()
LIMITS = Limits(200, 50, 20)
texts = st.text(alphabet="ab (){}\n", max_size=400).map(str.encode)


def place_in(data: bytes, cursor: int) -> Place:
    anchor = data.rfind(b"\n", 0, max(0, cursor - 30)) + 1
    anchor = min(anchor, data.rfind(b"\n", 0, cursor) + 1)
    return Place(data, TOKENIZER.encode(data), anchor, cursor)


@settings(max_examples=100)
@given(texts, st.floats(0, 1))
def test_prompt_keeps_its_size_and_tiles_its_tokens(data, where) -> None:
    place = place_in(data, int(where * len(data)))
    prompt = build(place, TOKENIZER, LIMITS)

    assert len(prompt.tokens) <= LIMITS.max_length
    assert [span.start for span in prompt.spans][:1] == [0]
    for left, right in zip(prompt.spans, prompt.spans[1:], strict=False):
        assert left.stop == right.start
    assert prompt.spans[-1].stop == len(prompt.tokens)
    for marker in (PRE, SUF, MID):
        assert prompt.tokens.count(marker) == 1


@settings(max_examples=100)
@given(
    st.text(alphabet="ab(é", min_size=300, max_size=900).map(str.encode),
    st.floats(0, 1),
    st.booleans(),
)
def test_a_line_longer_than_the_prompt_keeps_its_size(line, where, above) -> None:
    data = b"x = 1\n" * 30 * above + line + b"\ny = 1\n"
    cursor = len(data) - 7 - int(where * len(line))
    place = place_in(data, cursor)
    prompt = build(place, TOKENIZER, LIMITS)

    assert len(prompt.tokens) <= LIMITS.max_length + longest_middle(LIMITS)
    before = TOKENIZER.decode(prompt.tokens[prompt.head :]) + prompt.need
    assert data[:cursor].endswith(before)
    assert len(before) > 8 or cursor <= 8


@settings(max_examples=100)
@given(texts, st.floats(0, 1))
def test_spans_and_pieces_hold_the_documents_tokens(data, where) -> None:
    place = place_in(data, int(where * len(data)))
    ids = place.encoding.ids
    prompt = build(place, TOKENIZER, LIMITS)

    for span in prompt.spans:
        if span.origin is not None:
            size = span.stop - span.start
            origin = ids[span.origin : span.origin + size]
            assert prompt.tokens[span.start : span.stop] == origin
    for piece in pieces(prompt, tuple(range(0, len(data), 40)), ids):
        size = piece.stop - piece.start
        assert (
            prompt.tokens[piece.start : piece.stop]
            == (piece.block[piece.lo : piece.lo + size])
        )


@settings(max_examples=100)
@given(texts, st.floats(0, 1), st.text(alphabet="ab .", min_size=1, max_size=8))
def test_typing_never_changes_the_head(data, where, typed) -> None:
    cursor = int(where * len(data))
    heads = set()
    anchor = place_in(data, cursor).anchor_byte
    for end in range(len(typed) + 1):
        text = data[:cursor] + typed[:end].encode() + data[cursor:]
        place = Place(text, TOKENIZER.encode(text), anchor, cursor + end)
        prompt = build(place, TOKENIZER, LIMITS)
        heads.add(prompt.tokens[: prompt.head])

    assert len(heads) <= 2  # one move of the window at most


def test_closers_the_editor_added_stay_out_of_the_suffix() -> None:
    assert rest_end(b"f(|)\nx", 2) == 2
    assert rest_end(b"f()\nx", 2) == 3
    assert rest_end(b"f(a)\nx", 2) == 2
    assert rest_end(b"f(", 2) == 2
    assert rest_end(b'f("", "")', 3) == 3


@given(st.binary(max_size=40).map(lambda b: bytes(x % 128 for x in b)))
def test_healing_splits_without_loss(text) -> None:
    kept, need = healed(TOKENIZER.encode(text), text)

    assert bytes(kept) + need == text
    assert bool(need) == bool(text)


def test_healing_never_asks_for_half_a_character() -> None:
    text = "x = é".encode()
    for end in range(1, len(text) + 1):
        _, need = healed(TOKENIZER.encode(text[:end]), text[:end])
        assert need[0] & 0xC0 != 0x80


CODE = b"".join(b"def f%d():\n    return %d\n\n" % (i, i) for i in range(300))


@given(st.integers(0, 5000), st.integers(40, 1000))
def test_window_fits_and_begins_with_a_line(end, room) -> None:
    start = window_start(CODE, TOKENIZER.encode(CODE), end, room)

    assert 0 <= start <= end
    assert end - start <= room
    assert end - start >= min(end, room // 2)
    assert start == 0 or b"\n" in CODE[start - 1 : start + 1] or room < 120


@given(st.integers(128, 3000), st.integers(1, 1024), st.integers(0, 8192))
def test_a_long_suffix_leaves_room_for_the_prefix(length, output, suffix) -> None:
    limits = Limits(length, min(suffix, most_suffix(length, output)), output)

    assert limits.prefix >= LEAST_PREFIX
    assert limits.suffix + limits.prefix + 3 <= length


def test_window_moves_rarely_while_typing() -> None:
    encoding = TOKENIZER.encode(CODE)
    starts = [window_start(CODE, encoding, end, 400) for end in range(400, 1400)]

    assert len(set(starts)) <= 12
    assert starts == sorted(starts)


class NoMarkers(ByteTokenizer):
    fim = None


def test_left_to_right_prompts_only_grow_while_typing() -> None:
    limits = Limits(400, 0, 20)
    anchor = CODE.rfind(b"def f200")
    heads = []
    for cursor in range(anchor, anchor + 25):
        data = CODE[:cursor]
        place = Place(data, TOKENIZER.encode(data), anchor, cursor)
        prompt = build(place, NoMarkers(), limits)
        assert len(prompt.tokens) <= limits.max_length
        heads.append(prompt.tokens[: prompt.head])

    assert len(set(heads)) == 1
