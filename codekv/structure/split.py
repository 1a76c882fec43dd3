"""Where a segment that is too long for one block may be split.

Depends on the segment's own text alone, so that the same function is split the same
way wherever it stands, and the splits behind an edit fall on the same lines as before.
"""

from __future__ import annotations

import functools
import zlib
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from codekv.structure.balance import marks
from codekv.structure.lines import is_blank, starts_with_closer, width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codekv.structure.parser import SyntaxTree
    from codekv.structure.segment import Segment
    from grammars.registry import Grammar

_MAX_SCANNED = 1 << 15
"""Longer segments are data as a rule: their lines are all alike, and ranking them at
every keystroke would cost more than it tells."""

_INSIDE = 1000
"""More than twice any indentation, so that lines inside brackets rank last."""


@dataclass(frozen=True, slots=True)
class Splits:
    """Line starts at which a text may be split, in order.

    Attributes:
        starts: Bytes from the text's beginning.
        ranks: One per start; smaller ones are better. Empty where all are alike.
    """

    starts: Sequence[int]
    ranks: tuple[tuple[int, int], ...]


NO_SPLITS = Splits((), ())


def splits(tree: SyntaxTree, segment: Segment) -> Splits:
    """List the line starts inside a segment, counted from its beginning.

    The beginnings of shallow statements rank first, lines inside brackets and strings
    last. Among equals the line's own content decides.
    """
    text = tree.snapshot.data[segment.start_byte : segment.end_byte]
    if len(text) > _MAX_SCANNED:
        ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n"))
        return Splits(array("q", (ends + 1).astype(np.int64).tobytes()), ())
    return _splits(tree.grammar, text)


@functools.lru_cache(maxsize=256)
def _splits(grammar: Grammar | None, text: bytes) -> Splits:
    inside = _lines_inside(grammar, text)
    starts, ranks, at = [], [], 0
    for line in text.split(b"\n"):
        if at and not is_blank(line):
            # A closing bracket belongs to the statement above it.
            is_end = starts_with_closer(line) or line.lstrip().startswith(b"{")
            depth = 2 * width(line) + is_end + (_INSIDE if at in inside else 0)
            starts.append(at)
            ranks.append((depth, zlib.crc32(line)))
        at += len(line) + 1
    return Splits(tuple(starts), tuple(ranks))


def _lines_inside(grammar: Grammar | None, text: bytes) -> frozenset[int]:
    """Starts of the lines that begin inside parentheses or a string."""
    found: set[int] = set()
    opened: list[int] = []
    for mark in marks(grammar, text):
        if mark.text in (b"{", b"}"):
            continue
        if mark.is_open:
            opened.append(mark.byte)
        elif opened:
            start = opened.pop()
            if not opened:
                found.update(_line_starts(text, start, mark.byte))
    return frozenset(found)


def _line_starts(text: bytes, start: int, end: int) -> list[int]:
    starts = []
    at = text.find(b"\n", start, end)
    while at >= 0:
        starts.append(at + 1)
        at = text.find(b"\n", at + 1, end)
    return starts
