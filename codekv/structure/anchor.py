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
    from grammars.registry import LineRules

_MAX_LEAD_LINES = 40
_MAX_GROUP_LINES = 2000
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
    header = _enclosing_header(tree, here, want)
    start = _with_lead(tree, header) if header is not None else _group(tree, here)
    return _within(data, start, own, cursor_byte, max_bytes)


def _code_line(tree: SyntaxTree, start: int) -> int:
    """The line's own start, or that of the line where the string around it begins."""
    outer = opaque_start(tree, start)
    return start if outer is None else line_start(tree.snapshot.data, outer)


def _depth(tree: SyntaxTree, start: int, cursor_byte: int) -> int:
    """How deep the code at the cursor is indented, or will be once it is typed."""
    data = tree.snapshot.data
    line = data[start : line_end(data, start)]
    if starts_with_closer(line):
        return width(line) + 1
    if not is_blank(line) and not _is_skipped(tree, line):
        return width(line)
    typed = width(line[: cursor_byte - start])
    above = _line_above(data, start)
    below = _line_below(data, line_end(data, start))
    around = min(_inner_width(tree, above), width(below)) if above and below else 0
    return max(typed, around)


def _inner_width(tree: SyntaxTree, line: bytes) -> int:
    """Indentation at which code after this line may stand: deeper after a header."""
    rules = tree.grammar.lines if tree.grammar else None
    opens = rules is not None and rules.opener.search(line) is not None
    return width(line) + (1 if opens or starts_with_closer(line) else 0)


def _line_above(data: bytes, start: int) -> bytes:
    """The nearest line with text above; empty if there is none."""
    return line_at(head := data[:start].rstrip(), len(head))


def _line_below(data: bytes, start: int) -> bytes:
    """The nearest line with text at `start` or below; empty if there is none."""
    found = _TEXT.search(data, start)
    return line_at(data, found.start()) if found else b""


def _enclosing_header(tree: SyntaxTree, start: int, want: int) -> int | None:
    """The innermost function header that the line at `start` belongs to, else class."""
    if tree.grammar is None:
        return None
    rules, data = tree.grammar.lines, tree.snapshot.data
    container: int | None = None
    text = data[start : line_end(data, start)].lstrip()
    if rules.function.match(text):
        return start
    if rules.container.match(text):
        container = start
    while start > 0 and want > 0:
        start = line_start(data, start - 1)
        line = data[start : line_end(data, start)]
        if is_blank(line) or width(line) >= want or _says_nothing(tree, start, line):
            continue
        want = width(line)
        text = line.lstrip()
        if rules.function.match(text):
            return start
        if container is None and rules.container.match(text):
            container = start
    return container


def _says_nothing(tree: SyntaxTree, start: int, line: bytes) -> bool:
    """Whether a line's indentation tells nothing: comment, closer, text of a string."""
    if starts_with_closer(line):
        return True
    if line.lstrip().startswith(b"{") or _is_skipped(tree, line):
        return True
    return opaque_start(tree, start) is not None


def _is_skipped(tree: SyntaxTree, line: bytes) -> bool:
    return tree.grammar is not None and bool(
        tree.grammar.lines.skip.match(line.lstrip())
    )


def _with_lead(tree: SyntaxTree, header: int) -> int:
    """Move up over decorators and attributes, also those of several lines."""
    assert tree.grammar is not None
    rules: LineRules = tree.grammar.lines
    data = tree.snapshot.data
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
        if not rules.lead.match(line.lstrip()):
            break
        best = start
    return best


def _group(tree: SyntaxTree, start: int) -> int:
    """First line of the run of top-level statements that the line belongs to."""
    data = tree.snapshot.data
    best = start
    at = start
    for _ in range(_MAX_GROUP_LINES):
        if at == 0:
            break
        at = _code_line(tree, line_start(data, at - 1))
        line = line_at(data, at)
        if is_blank(line):
            if width(line_at(data, best)) == 0:
                break
        elif width(line) == 0 and not starts_with_closer(line):
            if _begins_definition(tree, line):
                break
            best = at
    return best


def _begins_definition(tree: SyntaxTree, line: bytes) -> bool:
    if tree.grammar is None:
        return False
    rules = tree.grammar.lines
    return any(p.match(line) for p in (rules.function, rules.container, rules.lead))


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
