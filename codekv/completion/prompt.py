"""What the model sees: an anchored, healed fill-in-the-middle prompt.

    [PRE] text up to the anchor [SUF] text after the cursor [MID] anchor…cursor

The anchor is the start of the function that holds the cursor, so typing appends to
the end and nothing before it changes (the order of EFIM, Guo et al. 2025, with token
healing in place of its training). Models without markers get the text before the
cursor. Pure functions of tokens and offsets: no model, no cache.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.completion.far import sampled_lines
from codekv.engine.prefill import Piece
from codekv.structure.shape import rest_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codekv.tokens.tokenizer import Encoding, Fim, Tokenizer

NOT_TOP_LEVEL = frozenset(b" \t\n)]}")
MAX_HEALED_TOKENS = 3
MAX_MIDDLE = 256


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in tokens: the whole prompt, its suffix, and what is kept for output.

    With `interval` above 0, the window gets `newest` of the prefix and sampled lines
    before it the rest.
    """

    max_length: int
    suffix: int
    output: int
    interval: int = 0
    newest: float = 0.8

    @property
    def prefix(self) -> int:
        """Most tokens of prefix and middle together."""
        return max(self.max_length - self.suffix - self.output - 3, 32)


@dataclass(frozen=True, slots=True)
class Span:
    """A run of prompt tokens [start, stop) and the document token it starts with.

    `origin` is None for markers and for text that is tokenised on its own.
    """

    start: int
    stop: int
    origin: int | None


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt ready for the engine.

    Attributes:
        tokens: All token ids.
        need: Bytes the completion must begin with (the healed word).
        spans: Tile the tokens, in order.
        prefix: Tokens before the suffix's marker.
        head: Tokens before the middle: what typing does not change.
        window: Document token at which the prefix starts.
    """

    tokens: tuple[int, ...]
    need: bytes
    spans: tuple[Span, ...]
    prefix: int
    head: int
    window: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where a completion is wanted, in a tokenised document.

    Attributes:
        data: The document's bytes.
        encoding: Tokens of all of `data`.
        anchor_byte: A line start at or before the cursor's line.
        cursor_byte: The cursor.
    """

    data: bytes
    encoding: Encoding
    anchor_byte: int
    cursor_byte: int


def build(
    place: Place, tokenizer: Tokenizer, limits: Limits, heal: bool = True
) -> Prompt:
    """Lay out the prompt for a place."""
    if tokenizer.fim is None:
        return _left_to_right(place, tokenizer, limits, heal)
    return _fill_in_middle(place, tokenizer, tokenizer.fim, limits, heal)


def _fill_in_middle(
    place: Place, tokenizer: Tokenizer, fim: Fim, limits: Limits, heal: bool
) -> Prompt:
    encoding = place.encoding
    anchor_byte = _bounded_anchor(place, limits)
    anchor, middle_byte = _boundary_before(encoding, anchor_byte)
    room = limits.prefix - limits.prefix // 4
    dense = int(room * limits.newest) if limits.interval else room
    window = window_start(place.data, encoding, anchor, dense)
    writer = _Writer()
    writer.add((fim.prefix,))
    for start, stop in sampled_lines(
        place.data, encoding, window, room - dense, limits.interval
    ):
        writer.add(encoding.ids[start:stop], start)
    writer.add(encoding.ids[window:anchor], window)
    prefix = len(writer.tokens)
    writer.add((fim.suffix,))
    _add_suffix(writer, place, tokenizer, limits.suffix)
    writer.add((fim.middle,))
    head = len(writer.tokens)
    middle = tokenizer.encode(place.data[middle_byte : place.cursor_byte])
    ids, need = healed(middle, place.data[middle_byte : place.cursor_byte], heal)
    _add_middle(writer, ids, encoding.ids, anchor)
    tokens, spans = tuple(writer.tokens), tuple(writer.spans)
    return Prompt(tokens, need, spans, prefix, head, window)


def _left_to_right(
    place: Place, tokenizer: Tokenizer, limits: Limits, heal: bool
) -> Prompt:
    encoding = place.encoding
    anchor, middle_byte = _boundary_before(encoding, _bounded_anchor(place, limits))
    text = place.data[middle_byte : place.cursor_byte]
    ids, need = healed(tokenizer.encode(text), text, heal)
    room = limits.max_length - limits.output - 1
    # Not the middle's own length: the window must not move with each typed token.
    before = max(room - _longest_middle(limits) - MAX_HEALED_TOKENS, room // 4)
    window = window_start(place.data, encoding, anchor, before)
    ids = ids[-(room - (anchor - window)) :]
    writer = _Writer()
    if tokenizer.bos_id is not None:
        writer.add((tokenizer.bos_id,))
    writer.add(encoding.ids[window:anchor], window)
    head = len(writer.tokens)
    _add_middle(writer, ids, encoding.ids, anchor)
    if not writer.tokens:
        # A model needs one token to stand on, and an empty file has none.
        writer.add(tokenizer.encode(b"\n").ids)
    tokens, spans = tuple(writer.tokens), tuple(writer.spans)
    return Prompt(tokens, need, spans, head, head, window)


def pieces(prompt: Prompt, cuts: Sequence[int], ids: Sequence[int]) -> list[Piece]:
    """Which slots of a prompt hold which blocks of its document.

    Args:
        prompt: Laid out for this document.
        cuts: Token indices at which the document's blocks begin.
        ids: The document's tokens.
    """
    found: list[Piece] = []
    for span in prompt.spans:
        if span.origin is None:
            continue
        end = span.origin + span.stop - span.start
        number = bisect_right(cuts, span.origin) - 1
        while number < len(cuts) and (lo := max(cuts[number], span.origin)) < end:
            stop = cuts[number + 1] if number + 1 < len(cuts) else len(ids)
            start = span.start + lo - span.origin
            size = min(stop, end) - lo
            block = tuple(ids[cuts[number] : stop])
            piece = Piece(start, start + size, block, lo - cuts[number], number)
            found.append(piece)
            number += 1
    return found


def window_start(data: bytes, encoding: Encoding, end: int, room: int) -> int:
    """First document token of a prefix that ends at token `end`.

    Moves rarely and only to the beginning of a line, a top-level one if one is near:
    the start is taken from a grid of a quarter of `room`, so that typing moves it once
    in so many tokens. It depends on the text alone, not on how the text came to be.
    """
    if end <= room:
        return 0
    stride = max(room // 4, 1)
    least = -(-(end - room) // stride) * stride
    best = None
    for token in range(least, min(least + stride, end)):
        start = encoding.ends[token - 1]
        # Some vocabularies join a line's end with the indentation behind it.
        line = start if data[start - 1 : start] == b"\n" else start + 1
        if data[line - 1 : line] != b"\n":
            continue
        best = token if best is None else best
        if line < len(data) and data[line] not in NOT_TOP_LEVEL:
            return token
    return min(least, end) if best is None else best


def healed(
    encoding: Encoding, text: bytes, heal: bool = True
) -> tuple[tuple[int, ...], bytes]:
    """Split off the half-typed end: (tokens to keep, bytes to reproduce).

    Drops the last token, and more while the cut lies inside a word.
    """
    ids, ends = encoding.ids, encoding.ends
    if not heal or not ids:
        return ids, b""
    keep = len(ids) - 1
    least = max(len(ids) - MAX_HEALED_TOKENS, 0)
    while keep > least and _inside_word(text, ends[keep - 1]):
        keep -= 1
    cut = ends[keep - 1] if keep else 0
    # A token may end inside a character; never ask for half of one.
    while keep and cut < len(text) and text[cut] & 0xC0 == 0x80:
        keep -= 1
        cut = ends[keep - 1] if keep else 0
    return ids[:keep], text[cut:]


def _inside_word(text: bytes, cut: int) -> bool:
    return _is_word(text[cut]) and cut > 0 and _is_word(text[cut - 1])


def _is_word(byte: int) -> bool:
    return chr(byte).isalnum() or byte == 0x5F or byte >= 0x80


def _bounded_anchor(place: Place, limits: Limits) -> int:
    """The anchor, or a later line start if the middle would get long.

    What stands before the anchor can be cached exactly, the middle only as moved
    blocks; and a middle of a few hundred tokens is as good as all of a function.
    Taken from a grid of tokens, so that it stays while the user types on.
    """
    ends, anchor_byte = place.encoding.ends, place.anchor_byte
    first = bisect_right(ends, anchor_byte)
    last = bisect_right(ends, place.cursor_byte)
    room = _longest_middle(limits)
    if last - first <= room:
        return anchor_byte
    stride = max(room // 2, 1)
    token = first + (last - first - room + stride - 1) // stride * stride
    line = place.data.rfind(b"\n", 0, ends[min(token, len(ends)) - 1]) + 1
    cursor_line = place.data.rfind(b"\n", 0, place.cursor_byte) + 1
    return max(anchor_byte, min(line, cursor_line))


def _longest_middle(limits: Limits) -> int:
    return max(min(limits.prefix // 2, MAX_MIDDLE), 16)


def _boundary_before(encoding: Encoding, byte: int) -> tuple[int, int]:
    """The last token boundary at or before `byte`: (token index, its byte)."""
    token = bisect_right(encoding.ends, byte)
    return token, encoding.ends[token - 1] if token else 0


class _Writer:
    """Collects tokens and the spans that tile them."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.spans: list[Span] = []

    def add(self, ids: Sequence[int], origin: int | None = None) -> None:
        if ids:
            start = len(self.tokens)
            self.tokens.extend(ids)
            self.spans.append(Span(start, len(self.tokens), origin))


def _add_suffix(writer: _Writer, place: Place, tokenizer: Tokenizer, room: int) -> None:
    """Add at most `room` tokens of the text after the cursor, ending at a line."""
    encoding = place.encoding
    start_byte = rest_end(place.data, place.cursor_byte)
    token = bisect_left(encoding.ends, start_byte) + 1
    if start_byte == 0:
        token = 0
    elif encoding.ends and token <= len(encoding.ends):
        # The token that ends exactly here belongs to the text before.
        boundary = encoding.ends[token - 1]
        fragment = place.data[start_byte:boundary]
        ids = tokenizer.encode(fragment).ids[:room]
        writer.add(ids)
        room -= len(ids)
    stop = min(token + room, len(encoding.ids))
    if stop < len(encoding.ids):
        # Half a line at the end would only mislead; half of the room may be spent.
        while stop > token + room // 2 and not _ends_line(place, stop):
            stop -= 1
    if stop > token:
        writer.add(encoding.ids[token:stop], token)


def _ends_line(place: Place, token: int) -> bool:
    end = place.encoding.ends[token - 1]
    return place.data[end - 1 : end] == b"\n"


def _add_middle(
    writer: _Writer, ids: Sequence[int], document: Sequence[int], anchor: int
) -> None:
    """Add the middle; the part that agrees with the document keeps its origin."""
    same = 0
    while (
        same < len(ids)
        and anchor + same < len(document)
        and ids[same] == document[anchor + same]
    ):
        same += 1
    writer.add(ids[:same], anchor)
    writer.add(ids[same:])
