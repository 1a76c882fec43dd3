"""Where the prompt is frozen: the line at which the construct being typed begins.

The anchor must not move while the user types, and what the user types is broken code
most of the time. So it is derived from the lines above the cursor and their
indentation; the tree is asked only which of those lines are text inside a string or a
comment, which errors at the cursor do not disturb.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codekv.structure.lines import (
    header_text,
    is_blank,
    lead_start,
    line_at,
    line_end,
    line_start,
    opaque_start,
    says_nothing,
    starts_with_closer,
    width,
)

if TYPE_CHECKING:
    from codekv.structure.parser import SyntaxTree

# Lines looked at above the cursor; a longer construct has its anchor inside.
_MAX_GROUP_LINES = 2000
_UNFINISHED = (b"(", b"[", b"{", b",", b"\\")
_TEXT = re.compile(rb"\S")


def find_anchor(tree: SyntaxTree, cursor_byte: int, max_bytes: int = 4096) -> int:
    """Find the line start at which the prompt's frozen part ends.

    It is the innermost named function's first line, decorators included; else the
    class's; else the first line of the top-level statements around the cursor. When
    that lies more than `max_bytes` back, a later line is taken, which then stays the
    same over the next `max_bytes / 2` bytes of typing.

    Returns:
        A line start at or before the cursor's own.
    """
    data = tree.snapshot.data
    own = line_start(data, cursor_byte)
    here = _code_line(tree, own)
    want = _depth(tree, here, cursor_byte if here == own else line_end(data, here))
    header = enclosing_header(tree, here, want)
    if header is None or tree.grammar is None:
        start = _group(tree, here, want > 0)
    else:
        start = lead_start(tree.grammar.lines, data, header)
    return _within(data, start, own, cursor_byte, max_bytes)


def _code_line(tree: SyntaxTree, start: int) -> int:
    """The line's own start, or that of the line where the string around it begins."""
    outer = opaque_start(tree, start)
    return start if outer is None else line_start(tree.snapshot.data, outer)


def _depth(tree: SyntaxTree, start: int, cursor_byte: int) -> int:
    """How deep the code at the cursor is indented, or will be once it is typed."""
    data = tree.snapshot.data
    line = data[start : line_end(data, start)]
    if starts_with_closer(line) or line.lstrip().startswith(b"{"):
        return width(line) + 1
    is_comment = tree.grammar is not None and tree.grammar.lines.is_skipped(line)
    if not is_blank(line) and not is_comment:
        return width(line)
    typed = width(line[: cursor_byte - start])
    above = _line_above(tree, start)
    opens = tree.grammar is not None and tree.grammar.lines.opens_body(above)
    if opens or above.rstrip()[-1:] in _UNFINISHED:
        return max(typed, width(above) + 1)
    below = _line_below(data, line_end(data, start))
    # A bracket that closes below closes what the cursor is in.
    least = width(below) + (1 if starts_with_closer(below) else 0)
    inner = width(above) + (1 if starts_with_closer(above) else 0)
    return max(typed, min(inner, least) if above and below else 0)


def _line_above(tree: SyntaxTree, start: int) -> bytes:
    """The nearest line above that holds code; empty if there is none."""
    data = tree.snapshot.data
    text = data[:start].rstrip()
    return line_at(data, _code_line(tree, line_start(text, len(text))))


def _line_below(data: bytes, start: int) -> bytes:
    """The nearest line with text at `start` or below; empty if there is none."""
    found = _TEXT.search(data, start)
    return line_at(data, found.start()) if found else b""


def enclosing_header(tree: SyntaxTree, start: int, want: int) -> int | None:
    """Find the header that the line at `start` belongs to.

    Args:
        tree: Asked for its text and for what is inside strings.
        start: Where the line begins.
        want: How deep the line is indented, or will be.

    Returns:
        The innermost named function's line (the outermost one's where functions
        cannot be nested and inner ones are mistakes), else the innermost class's,
        else None.
    """
    if tree.grammar is None:
        return None
    rules, data = tree.grammar.lines, tree.snapshot.data
    function: int | None = None
    container: int | None = None
    at: int | None = start
    while at is not None:
        line = header_text(data, at)
        if rules.begins_function(line):
            function = at
            if tree.grammar.can_nest:
                break
        elif container is None and rules.begins_container(line):
            container = at
        at = _outer_line(tree, at, want)
        want = width(line_at(data, at)) if at is not None else 0
    return container if function is None else function


def _outer_line(tree: SyntaxTree, start: int, want: int) -> int | None:
    """The next line above that is less indented than `want` and says something."""
    data = tree.snapshot.data
    while start > 0 and want > 0:
        start = line_start(data, start - 1)
        line = data[start : line_end(data, start)]
        if is_blank(line) or width(line) >= want:
            continue
        if not says_nothing(tree, start, line):
            return start
    return None


def _group(tree: SyntaxTree, start: int, is_inner: bool) -> int:
    """First line of the run of top-level statements that the line belongs to.

    An inner line belongs to the top-level line above it, whatever that is.
    """
    data = tree.snapshot.data
    best = start
    at = start
    for _ in range(_MAX_GROUP_LINES):
        if at == 0:
            break
        at = line_start(data, at - 1)
        line = line_at(data, at)
        if not is_blank(line) and width(line) > 0:
            continue
        at = _code_line(tree, at)
        line = line_at(data, at)
        if is_blank(line):
            if width(line_at(data, best)) == 0:
                break
        elif width(line) == 0 and not starts_with_closer(line):
            if _begins_definition(tree, line) and not (is_inner and best == start):
                break
            best = at
    return best


def _begins_definition(tree: SyntaxTree, line: bytes) -> bool:
    if tree.grammar is None:
        return False
    rules = tree.grammar.lines
    return (
        rules.begins_function(line)
        or rules.begins_container(line)
        or rules.is_lead(line)
    )


def _within(data: bytes, start: int, own: int, cursor_byte: int, limit: int) -> int:
    """Step forward to a line near the cursor if the construct is too long.

    Steps are half the limit wide and counted from the construct's start, so the
    result stays while the user types on.
    """
    if cursor_byte - start <= limit:
        return start
    step = max(1, limit // 2)
    steps = (cursor_byte - start - limit + step - 1) // step
    moved = line_start(data, min(start + steps * step, own))
    return max(start, min(moved, own))
