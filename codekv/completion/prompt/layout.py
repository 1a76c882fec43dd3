"""What the model sees: an anchored, healed fill-in-the-middle prompt.

    name [PRE] others, text up to the anchor [SUF] text after the cursor [MID] …cursor

The anchor is the start of the function that holds the cursor, so typing appends to
the end and nothing before it changes (the order of EFIM, Guo et al. 2025, with token
healing in place of its training). Models without markers get the text before the
cursor. Pure functions of tokens and offsets: no model, no cache.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codekv.completion.prompt.file_header import NO_HEADER, FileHeader
from codekv.completion.prompt.healing import MAX_HEALED_TOKENS, healed
from codekv.completion.prompt.sparse import newest_room, sampled_blocks
from codekv.completion.prompt.window import (
    Limits,
    Place,
    boundary_before,
    bounded_anchor,
    longest_middle,
    window_start,
    with_unused_room,
)
from codekv.engine.reuse.prompt_blocks import PromptBlock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codekv.tokens.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class PromptSpan:
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
    spans: tuple[PromptSpan, ...]
    prefix: int
    head: int
    window: int


def build(
    place: Place,
    tokenizer: Tokenizer,
    limits: Limits,
    heal: bool = True,
    lead: Sequence[int] = (),
    header: FileHeader = NO_HEADER,
) -> Prompt:
    """Lay out the prompt for a place.

    Args:
        place: The document and the cursor.
        tokenizer: The model's.
        limits: Sizes; what stands before the document counts against the window.
        heal: Whether the half-typed word is taken back and asked for again.
        lead: What other files have to say.
        header: Names the document's file.
    """
    before = len(lead) + len(header)
    limits = replace(limits, max_length=limits.max_length - before)
    if tokenizer.fim is not None:
        limits = with_unused_room(place, limits)
    fim, first = tokenizer.fim, first_tokens(tokenizer, lead, header)
    if fim is None:
        return _left_to_right(place, tokenizer, limits, heal, first)
    return _fill_in_middle(place, tokenizer, limits, heal, first)


def first_tokens(
    tokenizer: Tokenizer, lead: Sequence[int], header: FileHeader = NO_HEADER
) -> tuple[int, ...]:
    """What stands before the document in every full prompt."""
    if tokenizer.fim is not None:
        return (*header.before, tokenizer.fim.prefix, *lead, *header.inside)
    begin = () if tokenizer.bos_id is None else (tokenizer.bos_id,)
    return (*begin, *lead, *header.inside)


def _fill_in_middle(
    place: Place,
    tokenizer: Tokenizer,
    limits: Limits,
    heal: bool,
    first: Sequence[int],
) -> Prompt:
    encoding, fim = place.encoding, tokenizer.fim
    assert fim is not None
    anchor_byte = bounded_anchor(place, limits)
    anchor, middle_byte = boundary_before(encoding, anchor_byte)
    room = limits.prefix - limits.prefix // 4
    window = window_start(place.data, encoding, anchor, newest_room(room, limits))
    writer = _Writer()
    writer.add(first)
    _add_prefix(writer, place, (window, anchor), room, limits)
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
    place: Place,
    tokenizer: Tokenizer,
    limits: Limits,
    heal: bool,
    first: Sequence[int],
) -> Prompt:
    encoding = place.encoding
    anchor, middle_byte = boundary_before(encoding, bounded_anchor(place, limits))
    text = place.data[middle_byte : place.cursor_byte]
    ids, need = healed(tokenizer.encode(text), text, heal)
    room = limits.max_length - limits.output - 1
    # Not the middle's own length: the window must not move with each typed token.
    before = max(room - longest_middle(limits) - MAX_HEALED_TOKENS, room // 4)
    window = window_start(place.data, encoding, anchor, newest_room(before, limits))
    writer = _Writer()
    writer.add(first)
    _add_prefix(writer, place, (window, anchor), before, limits)
    ids = ids[-(room - (len(writer.tokens) - len(first))) :]
    head = len(writer.tokens)
    _add_middle(writer, ids, encoding.ids, anchor)
    if not writer.tokens:
        # A model needs one token to stand on, and an empty file has none.
        writer.add(tokenizer.encode(b"\n").ids)
    tokens, spans = tuple(writer.tokens), tuple(writer.spans)
    return Prompt(tokens, need, spans, head, head, window)


def pieces(
    prompt: Prompt, cuts: Sequence[int], ids: Sequence[int]
) -> list[PromptBlock]:
    """Which slots of a prompt hold which blocks of its document.

    Args:
        prompt: Laid out for this document.
        cuts: Token indices at which the document's blocks begin.
        ids: The document's tokens.
    """
    found: list[PromptBlock] = []
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
            piece = PromptBlock(start, start + size, block, lo - cuts[number], lo)
            found.append(piece)
            number += 1
    return found


class _Writer:
    """Collects tokens and the spans that tile them."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.spans: list[PromptSpan] = []

    def add(self, ids: Sequence[int], origin: int | None = None) -> None:
        if ids:
            start = len(self.tokens)
            self.tokens.extend(ids)
            self.spans.append(PromptSpan(start, len(self.tokens), origin))


def _add_prefix(
    writer: _Writer, place: Place, window: tuple[int, int], room: int, limits: Limits
) -> None:
    """Add the sampled blocks and the window behind them."""
    ids = place.encoding.ids
    for start, stop in (*sampled_blocks(place.cuts, window, room, limits), window):
        writer.add(ids[start:stop], start)


def _add_suffix(writer: _Writer, place: Place, tokenizer: Tokenizer, room: int) -> None:
    """Add at most `room` tokens of the text after the cursor, ending at a line."""
    encoding = place.encoding
    start_byte = max(place.cursor_byte, place.end_byte)
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
