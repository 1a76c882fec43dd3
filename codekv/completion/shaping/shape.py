"""How much to offer at a cursor: nothing, one line, or a whole block.

Decided from the lines around the cursor, so that it does not flicker while broken
code is typed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from codekv.structure.anchor import find_anchor
from codekv.structure.balance import (
    CLOSER_OF,
    Balance,
    balance,
    closer,
    marks,
    string_around,
)
from codekv.structure.lines import (
    is_blank,
    line_at,
    line_end,
    line_start,
    opaque_start,
    starts_with_closer,
    width,
)

if TYPE_CHECKING:
    from codekv.structure.parser import SyntaxTree
    from grammars.registry import Grammar

Multiline = Literal["auto", "never", "always"]

CLOSING = b")]}>\"'`,;: \t"
"""What may stand right of a cursor without being code of its own."""

_MAX_SCAN = 1 << 15
"""Bytes before and behind the cursor whose brackets are weighed: a few hundred lines,
under 2 ms."""

_MAX_HEADER_LINES = 40
"""Lines a header or statement may run over before its first line is given up."""

_MAX_REMARKS = 60
"""Lines of remarks between a header and its empty body: a long licence or docstring."""

# What a line begins with that goes on with the line above.
_CONTINUES = (b":", b",", b"&", b"|", b"+", b".", b"?", b"=")


class Shape(StrEnum):
    """How much a completion may hold."""

    NONE = "none"
    LINE = "line"
    BLOCK = "block"


@dataclass(frozen=True, slots=True)
class ShapePlan:
    """What a completion at one cursor may be.

    Attributes:
        shape: How much to offer.
        cursor_byte: The cursor.
        end_byte: The offered text takes the place of everything from the cursor to
            here: the line's end if only closers are left on it, else the cursor.
        anchor_byte: Where the construct around the cursor begins.
        base: Brackets and quotes open at the cursor since the anchor, outermost first.
        line_depth: How many of them were open where the cursor's line begins.
        closes: What the text behind `end_byte` closes without having opened it, the
            innermost first.
        open_below: The quote that the text behind `end_byte` leaves open, as it does
            when what begins a long string is missing before it.
        header: Indentation of the line that opens the body; None outside a block.
        below: The first line with text below what is offered: below the cursor's
            line, or that line itself if the cursor stands before its text.
        reason: Why nothing is offered; empty otherwise.
    """

    shape: Shape
    cursor_byte: int
    end_byte: int
    anchor_byte: int = 0
    base: tuple[bytes, ...] = ()
    line_depth: int = 0
    closes: tuple[bytes, ...] = ()
    open_below: bytes = b""
    header: int | None = None
    below: bytes = b""
    reason: str = ""

    @property
    def wanted(self) -> int:
        """How many brackets and quotes have to be open where the offered text ends."""
        return len(self.closes)


def plan(
    tree: SyntaxTree,
    cursor_byte: int,
    invoked: bool = False,
    multiline: Multiline = "auto",
) -> ShapePlan:
    """Decide what to offer at a cursor.

    Args:
        tree: The document's tree.
        cursor_byte: The cursor, on a character border.
        invoked: The user asked for it, so even the inside of a word is completed.
        multiline: Whether whole blocks may be offered: where a body is empty, never,
            or always.
    """
    data = tree.snapshot.data
    if not invoked and _is_word(data, cursor_byte - 1) and _is_word(data, cursor_byte):
        return ShapePlan(Shape.NONE, cursor_byte, cursor_byte, reason="inside-word")
    anchor = find_anchor(tree, cursor_byte, _MAX_SCAN)
    above = balance(tree.grammar, data[anchor:cursor_byte]).opened
    end = rest_end(data, cursor_byte, above, tree.grammar)
    own = line_start(data, cursor_byte)
    behind = _behind(tree, anchor, end, above)
    is_unclosed = len(above) > len(behind.extra)
    header = _empty_body_header(tree, cursor_byte, is_unclosed)
    header = None if multiline == "always" else header
    is_block = multiline == "always" or (multiline == "auto" and header is not None)
    return ShapePlan(
        shape=Shape.BLOCK if is_block else Shape.LINE,
        cursor_byte=cursor_byte,
        end_byte=end,
        anchor_byte=anchor,
        base=above,
        line_depth=len(balance(tree.grammar, data[anchor:own]).opened),
        closes=behind.extra,
        open_below=b"".join(one for one in behind.opened[-1:] if one not in CLOSER_OF),
        header=header,
        below=_below(data, cursor_byte, end),
    )


def keeping_rest(tree: SyntaxTree, plan: ShapePlan) -> ShapePlan:
    """The same place with its line's rest left where it stands."""
    cursor = plan.cursor_byte
    behind = _behind(tree, plan.anchor_byte, cursor, plan.base)
    return replace(
        plan,
        end_byte=cursor,
        closes=behind.extra,
        open_below=b"".join(one for one in behind.opened[-1:] if one not in CLOSER_OF),
        below=_below(tree.snapshot.data, cursor, cursor),
    )


def rest_end(
    data: bytes,
    cursor_byte: int,
    above: tuple[bytes, ...] = (),
    grammar: Grammar | None = None,
) -> int:
    """The line's end if nothing but closers is left on it, else the cursor.

    Args:
        data: The document's bytes.
        cursor_byte: The cursor.
        above: Brackets and quotes open there, outermost first.
        grammar: The document's.
    """
    end = line_end(data, cursor_byte)
    rest = data[cursor_byte:end]
    typed = data[line_start(data, cursor_byte) : cursor_byte]
    # Before a line of closers, with space between, a line of its own may be put.
    is_before = is_blank(typed) and not is_blank(rest) and rest[:1].isspace()
    if rest.strip(CLOSING) or is_before:
        return cursor_byte
    # Two quotes are a string of their own, not the end of one; three end a long one.
    is_string = any(
        rest.count(quote) > 1 and rest.count(quote) != 3 * rest.count(quote * 3)
        for quote in (b'"', b"'", b"`")
    )
    return cursor_byte if is_string or _has_text(grammar, rest, above) else end


def _has_text(grammar: Grammar | None, rest: bytes, above: tuple[bytes, ...]) -> bool:
    """Whether a line's rest holds text of the string that the cursor is in."""
    inside = string_around(above)
    if not inside or not _is_closed_below(grammar, inside[0], rest):
        return False
    opened, at = list(inside), 0
    for mark in marks(grammar, rest, inside):
        is_in_text = bool(opened) and opened[-1] not in CLOSER_OF
        if is_in_text and rest[at : mark.byte]:
            return True
        at = mark.byte + len(mark.text)
        if mark.is_open:
            opened.append(mark.text)
        elif opened and closer(opened[-1]) == mark.text:
            opened.pop()
    return bool(opened) and opened[-1] not in CLOSER_OF and bool(rest[at:].strip())


def _is_word(data: bytes, offset: int) -> bool:
    if not 0 <= offset < len(data):
        return False
    byte = data[offset]
    return byte >= 0x80 or byte == 0x5F or chr(byte).isalnum()


def _below(data: bytes, cursor_byte: int, end: int) -> bytes:
    start = line_start(data, cursor_byte)
    line = line_at(data, start)
    is_before = end == cursor_byte and is_blank(data[start:cursor_byte])
    if is_before and not is_blank(line):
        return line
    return _line_below(data, start + len(line))


def _line_below(data: bytes, end: int) -> bytes:
    """The first line with text after the line that ends at `end`."""
    while end < len(data):
        start, end = end + 1, line_end(data, end + 1)
        if not is_blank(data[start:end]):
            return data[start:end]
    return b""


def _behind(
    tree: SyntaxTree, anchor: int, end: int, above: tuple[bytes, ...]
) -> Balance:
    """Weigh the text behind `end`, as far as the anchor's construct goes.

    How far that is, indentation tells.
    """
    data = tree.snapshot.data
    depth = width(line_at(data, anchor))
    inside = string_around(above)
    stop = line_end(data, end)
    limit = min(len(data), end + _MAX_SCAN)
    while stop < limit:
        line = line_at(data, stop + 1)
        is_out = width(line) < depth or (
            width(line) == depth and not _continues(tree, line)
        )
        if is_out and not is_blank(line):
            break
        stop += 1 + len(line)
        if _ends(tree, line, depth):
            break
    if inside and not _is_closed_below(tree.grammar, inside[0], data[end:stop]):
        inside = ()
    return balance(tree.grammar, data[end:stop], inside)


def _ends(tree: SyntaxTree, line: bytes, depth: int) -> bool:
    """Whether a line's bracket ends what began `depth` columns in."""
    opens = tree.grammar is not None and tree.grammar.lines.opens_body(line)
    return starts_with_closer(line) and width(line) == depth and not opens


def _is_closed_below(grammar: Grammar | None, quote: bytes, text: bytes) -> bool:
    """Whether `text`, behind an open string, seems to close it."""
    if grammar is None or quote in grammar.quotes:
        return quote in text.split(b"\n", 1)[0]
    # Strings of their own have two quotes each, so an odd one is the open string's.
    return text.count(quote) % 2 == 1


def _continues(tree: SyntaxTree, line: bytes) -> bool:
    """Whether a line of the anchor's own indentation belongs to its construct."""
    quotes = tree.grammar.long_quotes if tree.grammar else ()
    text = line.lstrip()
    return starts_with_closer(line) or text.startswith((b"{", *quotes))


def _empty_body_header(
    tree: SyntaxTree, cursor_byte: int, is_unclosed: bool
) -> int | None:
    """Indentation of the header whose body is empty and begins at the cursor.

    `is_unclosed` tells that a bracket open at the cursor is not closed behind it.
    """
    if tree.grammar is None:
        return None
    data = tree.snapshot.data
    start = line_start(data, cursor_byte)
    line = data[start : line_end(data, start)]
    if data[cursor_byte : start + len(line)].strip(CLOSING):
        return None
    at: int | None = start
    if is_blank(line):
        at = _header_above(tree, start)
    elif not opens_body(tree, start, data[start:cursor_byte]):
        return None
    if at is None:
        return None
    at = statement_start(tree, at)
    depth = width(line_at(data, at))
    if at < start < cursor_byte and is_blank(line) and width(line) <= depth:
        return None
    below = _line_below(data, start + len(line))
    if tree.grammar.is_indented or not below:
        return None if below and width(below) > depth else depth
    # Braces: the closing one tells the body's depth better than a header of many lines.
    if starts_with_closer(below):
        return min(depth, width(below))
    is_container = tree.grammar.lines.begins_container(line_at(data, at))
    is_next = width(below) == depth and is_unclosed and not is_container
    return depth if width(below) < depth or is_next else None


def _header_above(tree: SyntaxTree, start: int) -> int | None:
    """The line that opens a body with nothing in it yet but remarks."""
    assert tree.grammar is not None
    data, rules = tree.snapshot.data, tree.grammar.lines
    for _ in range(_MAX_REMARKS):
        if start == 0:
            return None
        start = line_start(data, start - 1)
        line = line_at(data, start)
        text = line.strip()
        if opens_body(tree, start, line):
            return start
        is_remark = rules.is_skipped(line) or text.startswith((b'"""', b"'''"))
        if not (is_blank(line) or is_remark or opaque_start(tree, start) is not None):
            return None
    return None


def statement_start(tree: SyntaxTree, start: int) -> int:
    """The line where the statement begins that the line at `start` ends."""
    data, at = tree.snapshot.data, start
    end = line_end(data, start)
    for _ in range(_MAX_HEADER_LINES):
        text = data[at:end]
        is_first = text.lstrip()[:1] not in _CONTINUES
        if at == 0 or (is_first and not balance(tree.grammar, text).extra):
            return at
        at = line_start(data, at - 1)
    return start


def opens_body(tree: SyntaxTree, start: int, line: bytes) -> bool:
    """Whether the line at `start` ends with what begins a body.

    False in the middle of a dictionary, a slice or a string.
    """
    if tree.grammar is None:
        return False
    rules = tree.grammar.lines
    if not rules.opens_body(line) or rules.is_skipped(line):
        return False
    opened = balance(tree.grammar, line).opened
    is_bracket = bool(opened) and not (
        opened[-1] == b"{" and line.rstrip()[-1:] == b"{"
    )
    return not is_bracket and opaque_start(tree, start) is None
