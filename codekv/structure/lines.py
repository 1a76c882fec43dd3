"""What single lines tell: indentation, headers, and whether a line is code at all.

Broken code has no reliable tree while someone types, but its lines still have
indentation. Everything here looks at one line of bytes and the language's patterns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codekv.structure.parser import SyntaxTree
    from grammars.registry import LineRules

# Python's own rule for comparing tabs with spaces.
TAB_WIDTH = 8
# Lines above a definition that may belong to it: decorators and comments.
_MAX_LEAD_LINES = 40
# Longer signatures than this are not looked for by lines alone.
_MAX_HEADER_LINES = 20
# One line in five may be a continuation with an indentation of its own.
_AGREED = 0.8
_CLOSERS = b")]}"


def line_start(data: bytes, offset: int) -> int:
    """Where the line that holds `offset` begins."""
    return data.rfind(b"\n", 0, offset) + 1


def line_end(data: bytes, offset: int) -> int:
    """Where the line that holds `offset` ends, its newline not included."""
    end = data.find(b"\n", offset)
    return len(data) if end < 0 else end


def line_at(data: bytes, offset: int) -> bytes:
    """The line that holds `offset`, without its newline."""
    return data[line_start(data, offset) : line_end(data, offset)]


def width(line: bytes) -> int:
    """Columns of white space before a line's text; a tab goes to the next stop."""
    columns = 0
    for byte in line:
        if byte == 0x20:
            columns += 1
        elif byte == 0x09:
            columns += TAB_WIDTH - columns % TAB_WIDTH
        else:
            break
    return columns


def indentation(line: bytes) -> bytes:
    """The white space a line begins with."""
    return line[: len(line) - len(line.lstrip(b" \t"))]


def header_text(data: bytes, start: int) -> bytes:
    """The line at `start`, with what follows up to its last closing parenthesis.

    Joins the lines of a header whose parameters stand on lines of their own. Where the
    parenthesis is not closed within a few lines, the first line alone.
    """
    end = line_end(data, start)
    first = data[start:end]
    if first.count(b"(") <= first.count(b")"):
        return first
    for _ in range(_MAX_HEADER_LINES):
        if end == len(data):
            break
        end = line_end(data, end + 1)
        text = data[start:end]
        if text.count(b"(") <= text.count(b")"):
            return b" ".join(text.split(b"\n"))
    return first


def is_blank(line: bytes) -> bool:
    """Whether a line holds nothing but white space."""
    return not line or line.isspace()


def starts_with_closer(line: bytes) -> bool:
    """Whether a line's text begins with a closing bracket."""
    text = line.lstrip()
    return bool(text) and text[0] in _CLOSERS


def opaque_start(tree: SyntaxTree, offset: int) -> int | None:
    """Where the string or comment that runs over `offset` from before begins.

    Returns:
        None if the byte is code, or if such a text begins just there.
    """
    return tree.opaque.start_of(offset)


def lead_start(rules: LineRules, data: bytes, header: int) -> int:
    """Move from a header's line up over its decorators and attributes.

    Those may run over several lines; `header` and the result are line starts.
    """
    depth = width(line_at(data, header))
    best = start = header
    for _ in range(_MAX_LEAD_LINES):
        if start == 0:
            break
        start = line_start(data, start - 1)
        line = data[start : line_end(data, start)]
        if is_blank(line) or width(line) < depth:
            break
        if width(line) > depth or starts_with_closer(line):
            continue
        if not rules.is_lead(line):
            break
        best = start
    return best


def says_nothing(tree: SyntaxTree, start: int, line: bytes) -> bool:
    """Whether a line's indentation tells nothing: comment, closer, text of a string."""
    if starts_with_closer(line) or line.lstrip().startswith(b"{"):
        return True
    if tree.grammar is not None and tree.grammar.lines.is_skipped(line):
        return True
    return opaque_start(tree, start) is not None


def body_unit(data: bytes) -> bytes | None:
    """What one step of indentation is in a file: a tab, some spaces, or None."""
    tabs, steps = 0, dict.fromkeys((2, 3, 4, 8), 0)
    last = 0
    for line in data[: 1 << 16].split(b"\n"):
        if is_blank(line):
            continue
        if line.startswith(b"\t"):
            tabs += 1
            continue
        here = len(indentation(line))
        if here - last in steps:
            steps[here - last] += 1
        last = here
    total = sum(steps.values())
    if tabs > total:
        return b"\t"
    best = max(steps, key=lambda n: steps[n])
    # A file of two minds has no unit that a text could be held to.
    return b" " * best if steps[best] > _AGREED * total else None
