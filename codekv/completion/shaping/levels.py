"""Whether lines stand where a block may, in languages that go by indentation.

The rule of Python's tokeniser: a line is deeper than the one before only behind a
header, and comes back only to where it was. Told by lines and brackets alone, because
a tree of broken code says little about indentation.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from codekv.structure.balance import marks
from codekv.structure.lines import is_blank, width

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grammars.registry import Grammar


def fits(grammar: Grammar, before: bytes, text: bytes, below: bytes) -> bool:
    """Whether a text, and what depends on it below, are indented as they may be.

    Args:
        grammar: Of a language that goes by indentation.
        before: From the start of a line outside all brackets to the text.
        text: What is to be inserted.
        below: What follows. Looked at up to the first line that is no deeper than the
            text's last one, and at the line that comes back from there.
    """
    start, stop = len(before), len(before) + len(text)
    levels: list[int] = []
    is_open = is_reached = False
    last = 0
    for at, end, line in _logical_lines(grammar, before + text + below):
        columns = width(line)
        if is_reached and columns >= last:
            continue
        if end > start and levels and _is_misfit(levels, columns, is_open):
            return False
        if is_reached:
            break
        while levels and levels[-1] > columns:
            levels.pop()
        if not levels or levels[-1] < columns:
            levels.append(columns)
        is_reached = at >= stop and columns <= last
        if at < stop:
            last = columns
        is_open = grammar.lines.opens_body(line[line.rfind(b"\n") + 1 :])
    return True


def _is_misfit(levels: list[int], columns: int, is_open: bool) -> bool:
    """Whether a line at `columns` stands neither in a block nor in one around it."""
    if columns > levels[-1]:
        return not is_open
    return columns > levels[0] and columns not in levels


def _logical_lines(grammar: Grammar, text: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Start, end and text of all lines of code, those in brackets joined."""
    changes = [(mark.byte, 1 if mark.is_open else -1) for mark in marks(grammar, text)]
    depths = [0, *accumulate(change for _, change in changes)]
    number = at = 0
    begun: int | None = None
    while at < len(text):
        end = text.find(b"\n", at)
        end = len(text) if end < 0 else end
        line = text[at:end]
        while number < len(changes) and changes[number][0] < end:
            number += 1
        is_remark = line.lstrip().startswith(grammar.comment)
        if begun is None and not is_blank(line) and not is_remark:
            begun = at
        if begun is not None and depths[number] <= 0 and not line.endswith(b"\\"):
            yield begun, end, text[begun:end]
            begun = None
        at = end + 1
