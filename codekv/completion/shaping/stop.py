"""Where a completion ends: its statement, its block, or what is already there.

Works on the text before the cursor plus the text decoded so far; asked after every
decoding step, so it looks only at what can matter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codekv.completion.shaping.shape import Shape, ShapePlan
from codekv.structure.balance import CLOSER_OF, balance
from codekv.structure.lines import (
    is_blank,
    line_at,
    line_start,
    starts_with_closer,
    width,
)

if TYPE_CHECKING:
    from codekv.structure.parser import SyntaxTree

_TRIVIAL = b")]}>\"'`,;: \t\n"
_PERIODS = range(1, 41)  # bytes that a model in a loop repeats, mostly one clause
_MIN_REPEATS = 4  # tables of numbers say the same thing three times
_MIN_REPEATED = 24  # bytes; shorter repetitions occur in matrices and flags
_MAX_RULER = 100  # bytes of one character: longer than any ruler of dashes
_MAX_BLANK_LINES = 3  # styles allow two between definitions; more is no answer
_CLOSING_LINE = re.compile(rb"[ \t]*[)\]}]+[;,]?")


class StopChecker:
    """Tells when the text decoded at one cursor is complete."""

    def __init__(self, tree: SyntaxTree, plan: ShapePlan, max_lines: int = 12) -> None:
        data = tree.snapshot.data
        self._grammar = tree.grammar
        self._plan = plan
        self._max_lines = max_lines
        self._before = data[plan.anchor_byte : plan.cursor_byte]
        own = line_start(data, plan.cursor_byte)
        self._typed = data[own : plan.cursor_byte]
        self._outer = width(line_at(data, plan.anchor_byte))

    def feed(self, text: bytes) -> bool:
        """Whether all bytes decoded so far make a complete text."""
        return self.end(text) is not None

    def end(self, text: bytes) -> int | None:
        """Where in `text` the completion ends; None if it is not complete yet."""
        if self._plan.shape is Shape.NONE:
            return 0
        ends = [
            self._block_end(text)
            if self._plan.shape is Shape.BLOCK
            else self._statement_end(text),
            self.below_again(text),
            repetition(text),
        ]
        known = [end for end in ends if end is not None]
        return min(known) if known else None

    def depth(self, text: bytes) -> int:
        """Brackets and quotes open since the anchor, at the end of `text`."""
        opened = balance(self._grammar, self._before + text).opened
        is_closed_below = bool(opened) and opened[-1] == self._plan.open_below
        return len(opened) - is_closed_below

    def _statement_end(self, text: bytes) -> int | None:
        plan = self._plan
        body = len(text) - len(text.lstrip())
        if text.count(b"\n", 0, body) > _MAX_BLANK_LINES:
            return 0
        if is_blank(text):
            return None
        least = max(plan.wanted, min(plan.line_depth, len(plan.base)))
        at, lines = text.find(b"\n", body), 1
        while at >= 0:
            is_header = text[:at].rstrip().endswith(b"{") and not self._is_indented
            is_whole = self.depth(text[:at]) <= least and not self._leads_on(text[:at])
            if is_header or lines >= self._max_lines or is_whole:
                return at
            at, lines = text.find(b"\n", at + 1), lines + 1
        return None

    def _leads_on(self, text: bytes) -> bool:
        """Whether the last line is a decorator, which says nothing by itself."""
        *above, line = text.rsplit(b"\n", 1)
        grammar = self._grammar
        if grammar is None or not grammar.is_indented or not above:
            return False
        return grammar.lines.is_lead(line)

    @property
    def _is_indented(self) -> bool:
        return self._grammar is None or self._grammar.is_indented

    def _block_end(self, text: bytes) -> int | None:
        """The newline before the first line that leaves the block."""
        start, body, header, lines = 0, None, -1, 0
        if not is_blank(self._typed):
            start = text.find(b"\n") + 1
            if start == 0:
                return None
        while True:
            end = text.find(b"\n", start)
            line = text[start : end if end >= 0 else len(text)]
            if not is_blank(line) and not self._is_skipped(line):
                columns = width(self._typed + line if start == 0 else line)
                if body is None:
                    body, header = self._limits(columns)
                is_out = columns < body or columns <= header
                if is_out and end < 0 and self._may_be_label(line):
                    return None
                if is_out and self._is_code(
                    text[: max(0, start - 1)], columns <= header
                ):
                    return self._closing_end(text, start, end)
                lines += 1
            if end < 0:
                return None
            if lines >= self._max_lines:
                return end
            start = end + 1

    def _limits(self, columns: int) -> tuple[int, int]:
        """The body's indentation, and one that is outside whatever brackets say.

        Without a header of its own, a text goes on until it leaves the construct of
        the anchor.
        """
        header = self._plan.header
        if header is not None and columns <= header and not self._is_indented:
            # Where brackets rule, a body need not be indented: namespaces are not.
            return columns, columns - 1
        if header is not None:
            return columns, header
        outer = self._outer if columns > self._outer else self._outer - 1
        return outer + 1, outer

    def _is_skipped(self, line: bytes) -> bool:
        """Whether a line may stand anywhere: a directive or a label."""
        return not self._is_indented and (
            self._grammar is not None and self._grammar.lines.is_skipped(line)
        )

    def _may_be_label(self, line: bytes) -> bool:
        """Whether a line that is not complete may still become a label."""
        return not self._is_indented and not starts_with_closer(line)

    def _is_code(self, text: bytes, is_far_out: bool) -> bool:
        """Whether a line behind `text` that is less indented begins a statement."""
        opened = balance(self._grammar, self._before + text).opened
        if len(opened) <= len(self._plan.base):
            return True
        # An open bracket may have been forgotten; a string runs as far as it runs.
        return is_far_out and opened[-1] in CLOSER_OF

    def _closing_end(self, text: bytes, start: int, end: int) -> int | None:
        """The block's end, with its closing line if nothing below closes it."""
        before = max(0, start - 1)
        if self.depth(text[:before]) <= self._plan.wanted:
            return before
        found = _CLOSING_LINE.match(text, start)
        if found is None:
            return before
        return found.end() if end >= 0 else None

    def below_again(self, text: bytes) -> int | None:
        """The end of the text before a line that repeats the line below, if any."""
        below = self._plan.below.rstrip()
        if not below.strip(_TRIVIAL) or below not in self._typed + text:
            return None
        start = 0
        while (end := text.find(b"\n", start)) >= 0:
            line = self._typed + text[:end] if start == 0 else text[start:end]
            if line.rstrip() == below:
                return max(0, start - 1)
            start = end + 1
        return None


def repetition(text: bytes) -> int | None:
    """Where a text begins to repeat itself: behind the first copy; None if nowhere."""
    for period in _PERIODS:
        # Rulers of dashes and the like are one character many times over.
        size = _MAX_RULER if period == 1 else max(period * _MIN_REPEATS, _MIN_REPEATED)
        tail = text[-size:]
        is_one_character = period > 1 and tail == tail[:1] * size
        if is_one_character or not tail.strip() or len(tail) < size:
            continue
        if tail[period:] == tail[:-period]:
            start = len(text) - size
            while start and text[start - 1] == text[start - 1 + period]:
                start -= 1
            return start + period
    return _repeated_lines(text)


def first_repetition(text: bytes) -> int | None:
    """Where a text begins to repeat itself, told at the first line that shows it.

    There decoding would have stopped.
    """
    at = text.find(b"\n")
    while at >= 0:
        if (found := repetition(text[: at + 1])) is not None:
            return found
        at = text.find(b"\n", at + 1)
    return repetition(text)


def _repeated_lines(text: bytes) -> int | None:
    """Behind the first of three equal lines, or of three equal pairs of lines."""
    lines = text.split(b"\n")
    for group in (1, 2, 3):
        size = group * 3
        tail = lines[-1 - size : -1]
        if len(tail) == size and tail == tail[:group] * 3 and any(tail[0].split()):
            if not b"".join(tail[:group]).strip(_TRIVIAL):
                continue
            return len(b"\n".join(lines[: -1 - size + group]))
    return None
