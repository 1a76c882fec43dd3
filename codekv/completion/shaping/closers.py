"""Brackets and quotes of an offered text: none too many, none too few.

Weighed against what is open before the cursor and what is closed behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codekv.structure.balance import CLOSER_OF, closer, marks
from codekv.structure.lines import width

if TYPE_CHECKING:
    from codekv.completion.shaping.trim_context import TrimContext


def extra_closers(text: bytes, context: TrimContext) -> bytes:
    """Not what closes brackets that the text behind the cursor closes."""
    plan, head = context.plan, context.head
    opened: list[bytes] = []
    last_drop: int | None = None
    filled: int | None = None
    for mark in marks(context.tree.grammar, head + text):
        at = mark.byte - len(head)
        if mark.is_open:
            opened.append(mark.text)
            if at >= 0 and filled is None and _is_filled(opened, context):
                filled = at + len(mark.text)
        elif opened and closer(opened[-1]) == mark.text:
            if filled is not None and len(opened) == plan.wanted:
                return text[:filled]
            # Another bracket, opened in place of a closed one, is not the same.
            if at >= 0 and opened == [*plan.base[: plan.wanted]]:
                last_drop = at
            opened.pop()
        elif at >= 0:
            # Nothing is open that this could close.
            text = text[:at]
            break
    closed = tuple(closer(one) for one in reversed(opened[: plan.wanted]))
    is_changed = last_drop is not None and closed != plan.closes
    return text[:last_drop] if is_changed or len(opened) < plan.wanted else text


def _is_filled(opened: list[bytes], context: TrimContext) -> bool:
    """Whether what the last bracket is to hold stands below already, and its end."""
    plan = context.plan
    is_new = len(plan.base) < len(opened) == plan.wanted
    is_same = is_new and closer(opened[-1]) == plan.closes[0] != b"}"
    return is_same and width(plan.below) > width(context.typed)


def missing_closers(text: bytes, context: TrimContext) -> bytes:
    """Give back what was right of the cursor and is still needed."""
    rest = context.rest.rstrip()
    if context.plan.end_byte == context.plan.cursor_byte or not rest:
        return text
    if _is_in_comment(text, context):
        return text
    closed = _closed_again(text, rest, context)
    text = text.rstrip() + closed if closed else text
    tail = rest[len(rest.rstrip(b",;:")) :]
    lines = text.rstrip().split(b"\n")
    if tail and not (lines[0].endswith(tail) or lines[-1].endswith(tail)):
        text = text.rstrip() + tail
    return text


def _closed_again(text: bytes, rest: bytes, context: TrimContext) -> bytes:
    """Closing brackets and quotes of the line's rest that the text leaves needed."""
    after_rest = context.balance(rest)
    opened = list(context.balance(text.rstrip()).opened)
    # With less before it than when it was written, the rest may close too many.
    floor, closed = max(len(after_rest.opened), context.plan.wanted), b""
    if len(context.plan.base) > floor:
        while len(opened) > floor:
            closed += closer(opened.pop())
    for one in after_rest.extra:
        # What the text opens may be closed by what stood there without a partner.
        if len(opened) > floor and closer(opened[-1]) == one:
            closed += closer(opened.pop())
    return closed


def _is_in_comment(text: bytes, context: TrimContext) -> bool:
    """Whether what stands behind the text would be part of its comment."""
    before = context.balance(text)
    if before.opened and before.opened[-1] not in CLOSER_OF:
        return False
    return before == context.balance(text + b"(")
