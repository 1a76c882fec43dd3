"""Spans of tokens that a prompt shares with live sequences, at any position.

An edit above the cursor, a moved window or a jump leaves most of a prompt standing in
some sequence, only elsewhere. Found as rsync finds blocks (Tridgell, 1999): short
grams (n consecutive tokens) of the one are looked up in the other and every match is
extended.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codekv.engine.live_sequence import common_prefix

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from codekv.engine.live_sequence import LiveSequence

GRAM = 8
"""Tokens that must agree for a match to be looked at: fewer repeat all over a file
(`self.`, line ends), more would hide what stands between two edits of a line."""

WORTH_MOVING = 32
"""A span of its own must be so long; short ones repeat by chance, in other contexts."""

WORTH_CONTINUING = 12
"""A span that goes on where the last one broke off may be shorter."""

NEAR = 64
"""Tokens deleted or inserted between two spans of which one continues the other."""

MAX_PLACES = 8
"""Places looked at for one gram: enough for code, and bounded for repeated text."""

_WIDTH = array("i").itemsize


@dataclass(frozen=True, slots=True, eq=False)
class SharedSpan:
    """Prompt slots [start, stop) that equal slots of `source` from `origin` on.

    `seen` of the tokens before the span also stand before it in its source.
    """

    start: int
    stop: int
    source: LiveSequence
    origin: int
    seen: int = 0

    @property
    def shift(self) -> int:
        """How many positions the span moves."""
        return self.start - self.origin


def find_shared_spans(
    tokens: Sequence[int],
    gaps: Iterable[tuple[int, int]],
    sources: Sequence[LiveSequence],
) -> list[SharedSpan]:
    """Find spans for the gaps of a prompt, the longest at each place.

    Args:
        tokens: The prompt.
        gaps: Ascending ranges of its slots to look into.
        sources: Sequences to look for them in, the most trusted first.

    Returns:
        Spans that do not overlap, ascending.
    """
    finder = _Finder(tokens, sources)
    found: list[SharedSpan] = []
    for start, stop in gaps:
        finder.search(start, stop, found)
    return found


class _Finder:
    """The grams of all sources, and the greedy search through a prompt."""

    def __init__(self, tokens: Sequence[int], sources: Sequence[LiveSequence]) -> None:
        self._tokens = list(tokens)
        self._grams = _grams(tokens)
        self._places: dict[bytes, list[tuple[LiveSequence, int]]] = {}
        self._first: dict[int, dict[bytes, int]] = {}
        for source in sources:
            first = self._first[id(source)] = {}
            for origin, gram in enumerate(_grams(source.tokens)):
                first.setdefault(gram, origin)
                places = self._places.setdefault(gram, [])
                if len(places) < MAX_PLACES:
                    places.append((source, origin))

    def search(self, start: int, stop: int, found: list[SharedSpan]) -> None:
        """Append the spans of one gap."""
        at = start
        while at + GRAM <= stop:
            last = found[-1] if found else None
            span = self._best(at, stop, last)
            if span is None:
                at += 1
            else:
                found.append(replace(span, seen=self._seen(span)))
                at = span.stop

    def _best(self, at: int, stop: int, last: SharedSpan | None) -> SharedSpan | None:
        best: SharedSpan | None = None
        best_rank = (0, 0)
        for source, origin in self._places.get(self._grams[at], ()):
            goes_on = last is not None and _goes_on(last, source, at, origin)
            least = WORTH_CONTINUING if goes_on else WORTH_MOVING
            # Most matches are too short; that shows without copying all of the rest.
            if source.tokens[origin : origin + least] != self._tokens[at : at + least]:
                continue
            rest = source.tokens[origin : origin + stop - at]
            size = common_prefix(rest, self._tokens[at:stop])
            if size < least:
                continue
            span = SharedSpan(at, at + size, source, origin)
            rank = (size, int(goes_on))
            if rank > best_rank:
                best, best_rank = span, rank
        return best

    def _seen(self, span: SharedSpan) -> int:
        """How many tokens before a span its source has before it too (by grams)."""
        first, never = self._first[id(span.source)], len(span.source.tokens)
        seen = until = 0
        for at, gram in enumerate(self._grams[: span.start]):
            if first.get(gram, never) < span.origin:
                seen += at + GRAM - max(at, until)
                until = at + GRAM
        return min(seen, span.start)


def _goes_on(last: SharedSpan, source: LiveSequence, start: int, origin: int) -> bool:
    """Whether a span continues the one before it, with a little changed in between."""
    if source is not last.source:
        return False
    between = origin - (last.origin + last.stop - last.start)
    return 0 <= between <= NEAR and start - last.stop <= NEAR


def _grams(tokens: Sequence[int]) -> list[bytes]:
    data = array("i", tokens).tobytes()
    size = GRAM * _WIDTH
    return [data[i : i + size] for i in range(0, len(data) - size + 1, _WIDTH)]
