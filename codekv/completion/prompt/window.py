"""Which part of a document a prompt shows: sizes, window and anchor.

Functions of the text alone, chosen so that typing does not change them.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codekv.tokens.tokenizer import Encoding

NOT_TOP_LEVEL = frozenset(b" \t\n)]}")
# Tokens of the construct being typed; a longer one is cut as a prefix is.
MAX_MIDDLE = 256
# With fewer tokens the model does not know what it goes on with.
LEAST_PREFIX = 32


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in tokens: the whole prompt, its suffix, and what is kept for output.

    With an `interval` above 0, or with `dynamic`, the window gets `newest` of the
    prefix and sampled blocks before it the rest. With `dynamic`, a text below the
    cursor that is shorter than `suffix` leaves its room to the prefix.
    """

    max_length: int
    suffix: int
    output: int
    interval: int = 0
    newest: float = 0.8
    dynamic: bool = False

    @property
    def prefix(self) -> int:
        """Most tokens of prefix and middle together."""
        return max(self.max_length - self.suffix - self.output - 3, LEAST_PREFIX)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a completion is wanted, in a tokenised document.

    Attributes:
        data: The document's bytes.
        encoding: Tokens of all of `data`.
        anchor_byte: A line start at or before the cursor's line.
        cursor_byte: The cursor.
        cuts: Document tokens at which blocks begin.
        end_byte: Where the text after the completion begins; -1 for the cursor.
    """

    data: bytes
    encoding: Encoding
    anchor_byte: int
    cursor_byte: int
    cuts: tuple[int, ...] = ()
    end_byte: int = -1


def most_suffix(max_length: int, output: int) -> int:
    """Most tokens of suffix that leave room for the prefix."""
    return max(max_length - output - 3 - LEAST_PREFIX, 0)


def with_unused_room(place: Place, limits: Limits) -> Limits:
    """Give the prefix what a short text below the cursor leaves of the suffix's room.

    In steps of a quarter of that room, so that edits below move the window rarely.
    """
    if not limits.dynamic or limits.suffix == 0:
        return limits
    below = len(place.encoding.ids) - bisect_right(
        place.encoding.ends, place.cursor_byte
    )
    step = max(limits.suffix // 4, 1)
    return replace(limits, suffix=min(limits.suffix, -(-below // step) * step))


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


def bounded_anchor(place: Place, limits: Limits) -> int:
    """The anchor, or a later place if the middle would get long: a line start, mostly.

    What stands before the anchor can be cached exactly, the middle only as moved
    blocks; and a middle of a few hundred tokens is as good as all of a function.
    Taken from a grid of tokens, so that it stays while the user types on.
    """
    ends, anchor_byte = place.encoding.ends, place.anchor_byte
    first = bisect_right(ends, anchor_byte)
    last = bisect_right(ends, place.cursor_byte)
    room = longest_middle(limits)
    if last - first <= room:
        return anchor_byte
    stride = max(room // 2, 1)
    token = first + (last - first - room + stride - 1) // stride * stride
    line = place.data.rfind(b"\n", 0, ends[min(token, len(ends)) - 1]) + 1
    cursor_line = place.data.rfind(b"\n", 0, place.cursor_byte) + 1
    found = max(anchor_byte, min(line, cursor_line))
    # A line that is far too long by itself is cut somewhere inside.
    is_usual = last - bisect_right(ends, found) <= 2 * room
    return found if is_usual else ends[token - 1]


def longest_middle(limits: Limits) -> int:
    """Most tokens of a middle before its anchor moves on."""
    return max(min(limits.prefix // 2, MAX_MIDDLE), 16)


def boundary_before(encoding: Encoding, byte: int) -> tuple[int, int]:
    """The last token boundary at or before `byte`: (token index, its byte)."""
    token = bisect_right(encoding.ends, byte)
    return token, encoding.ends[token - 1] if token else 0
