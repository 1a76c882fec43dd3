"""Whole blocks: what a text opens with a brace, it closes, or it does not open it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codekv.structure.balance import CLOSER_OF, closer, marks
from codekv.structure.lines import indentation, line_at, line_start

if TYPE_CHECKING:
    from codekv.completion.shaping.trim_context import TrimContext


def whole_blocks(text: bytes, context: TrimContext) -> bytes:
    """Cut half a block off behind whole statements, or close it where it began.

    A block counts as half if its brace is the text's own and neither the text nor what
    stands below closes it: `for (…) {` alone, or a body cut at the length limit.
    """
    grammar, plan = context.tree.grammar, context.plan
    if grammar is None or grammar.is_indented or context.keeps_rest:
        return text
    least = max(len(plan.base), plan.wanted)
    opened = _opened(text, context)
    if len(opened) <= least or b"{" not in [one for _, one in opened[least:]]:
        return text
    if any(one not in CLOSER_OF for _, one in opened):
        return text
    begin = opened[least][0] - len(context.head)
    if begin < 0:
        return text
    whole = text[: text.rfind(b"\n", 0, begin)] if b"\n" in text[:begin] else b""
    closed = _closed(text, opened[least:], context)
    # Lines and brackets may be wrong about what stands below; the parser decides.
    choices = [text, closed, closed + b";"]
    if whole.strip() and len(_opened(whole, context)) <= least:
        choices.insert(1, whole)
    return min(choices, key=context.num_errors_with)


def _opened(text: bytes, context: TrimContext) -> list[tuple[int, bytes]]:
    """What is open at a text's end, and where it stands behind the anchor."""
    opened: list[tuple[int, bytes]] = []
    for mark in marks(context.tree.grammar, context.head + text):
        if mark.is_open:
            opened.append((mark.byte, mark.text))
        elif opened and closer(opened[-1][1]) == mark.text:
            opened.pop()
    return opened


def _closed(
    text: bytes, opened: list[tuple[int, bytes]], context: TrimContext
) -> bytes:
    """Close brackets, each at the indentation of the line that opened it."""
    data, plan = context.tree.snapshot.data, context.plan
    begin = line_start(data, plan.anchor_byte)
    around = data[begin : plan.cursor_byte] + text
    text, last = text.rstrip(), -1
    for byte, one in reversed(opened):
        at = byte + plan.anchor_byte - begin
        own = line_start(around, at)
        if own != last:
            text += b"\n" + indentation(line_at(around, at))
        text, last = text + closer(one), own
    return text
