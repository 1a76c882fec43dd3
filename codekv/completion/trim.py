"""From decoded bytes to the text that is offered.

A chain of small filters, each of which makes one promise about the result: nothing
that is already there, balanced brackets, the file's indentation and line ends. Every
filter that changes something is named in the result, so that it can be counted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.completion.indent import fit
from codekv.structure.balance import CLOSER_OF, balance, closer, marks
from codekv.structure.errors import num_errors, with_text
from codekv.structure.lines import is_blank, line_end, line_start
from codekv.structure.shape import CLOSING, Shape
from codekv.structure.stop import StopChecker

if TYPE_CHECKING:
    from collections.abc import Callable

    from codekv.structure.parser import SyntaxTree
    from codekv.structure.shape import Plan

_SPECIAL = re.compile(
    rb"<\|[a-zA-Z0-9_ ]{1,40}\|>|<(?:fim|file|repo)_[a-z]+>|</?s>(?=\s*$)"
)
_LEAST_OVERLAP = 2
_LEAST_ECHO = 8
_MAX_DROPPED = 12


@dataclass(frozen=True, slots=True)
class TrimContext:
    """Where a text was decoded.

    Attributes:
        plan: What may be offered at the cursor.
        special: Texts of the model's special tokens.
        max_lines: The most lines a text may have.
        is_cut: Decoding ended at the length limit, so the last line may be half a line.
        invoked: The user asked for it: even a lone bracket is an answer.
    """

    tree: SyntaxTree
    plan: Plan
    special: tuple[bytes, ...] = ()
    max_lines: int = 12
    is_cut: bool = False
    invoked: bool = False


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What may be offered: `text` in place of `[start_byte, end_byte)`.

    Attributes:
        text: With the document's line ends; empty if there is nothing to offer.
        filters: Names of the filters that changed something, in order; the last one
            says why an empty text is empty.
    """

    text: str
    start_byte: int
    end_byte: int
    filters: tuple[str, ...]


def finish(raw: bytes, context: TrimContext) -> Trimmed:
    """Make what is offered out of the bytes decoded after the cursor."""
    text, changed = raw, []
    if context.plan.shape is Shape.NONE:
        text, changed = b"", [context.plan.reason or "none"]
    for name, function in _FILTERS.items():
        if not text:
            break
        shorter = function(text, context)
        if shorter != text:
            changed.append(name)
            text = shorter
    snapshot = context.tree.snapshot
    shown = text.decode("utf-8", errors="ignore").replace("\n", snapshot.eol)
    plan = context.plan
    return Trimmed(shown, plan.cursor_byte, plan.end_byte, tuple(changed))


def _whole_characters(text: bytes, _: TrimContext) -> bytes:
    """Drop half a character at the end, and anything that is not UTF-8."""
    return text.decode("utf-8", errors="ignore").encode()


def _line_ends(text: bytes, _: TrimContext) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _special_tokens(text: bytes, context: TrimContext) -> bytes:
    ends = [text.find(token) for token in context.special if token]
    found = _SPECIAL.search(text)
    ends.append(found.start() if found else -1)
    return text[: min((end for end in ends if end >= 0), default=len(text))]


def _stray_space(text: bytes, context: TrimContext) -> bytes:
    """No space after a space, a bracket or a dot."""
    typed = _typed(context)
    if is_blank(typed) or _is_in_string(context):
        return text
    if typed[-1:] in b"([.":
        return text.lstrip(b" \t")
    # More than one space may line something up.
    is_single = text[:1] == b" " and text[1:2] not in (b" ", b"\t")
    return text[1:] if is_single and typed[-1:] in b" \t" else text


def _echo(text: bytes, context: TrimContext) -> bytes:
    """Not the cursor's line once more."""
    typed = _typed(context).strip()
    begun = text.lstrip()
    is_word = any(chr(byte).isalnum() for byte in typed)
    if len(typed) >= _LEAST_ECHO and is_word and begun.startswith(typed):
        return begun[len(typed) :]
    return text


def _complete(text: bytes, context: TrimContext) -> bytes:
    """Not beyond the statement or block, nor what is below or was said before."""
    checker = StopChecker(context.tree, context.plan, context.max_lines)
    # The end of the text ends its last line, unless it was cut there.
    whole = text if context.is_cut else text + b"\n"
    ends = [checker.end(text), checker.end(whole)]
    return text[: min((end for end in ends if end is not None), default=len(text))]


def _half_line(text: bytes, context: TrimContext) -> bytes:
    """Not the half line at which decoding ran out of room, if there are others."""
    if not context.is_cut or not text.lstrip().count(b"\n"):
        return text
    checker = StopChecker(context.tree, context.plan, context.max_lines)
    if checker.end(text + b"\n") == len(text) and checker.end(text) is not None:
        return text
    return text[: text.rindex(b"\n")]


def _rest_again(text: bytes, context: TrimContext) -> bytes:
    """Not what follows on the cursor's own line."""
    rest = _rest(context)
    if context.plan.end_byte > context.plan.cursor_byte or is_blank(rest):
        return text
    text = text.split(b"\n", 1)[0]
    whole = rest.strip()
    if text.rstrip().endswith(whole):
        return text[: text.rindex(whole)]
    for size in range(min(len(text), len(rest)), _LEAST_OVERLAP - 1, -1):
        if text.endswith(rest[:size]):
            return text[:-size]
    return text


def _indentation(text: bytes, context: TrimContext) -> bytes:
    return fit(context.tree, context.plan, text)


def _extra_closers(text: bytes, context: TrimContext) -> bytes:
    """Not what closes brackets that the text behind the cursor closes."""
    plan, head = context.plan, _head(context)
    opened: list[bytes] = []
    last_drop: int | None = None
    for mark in marks(context.tree.grammar, head + text):
        if mark.is_open:
            opened.append(mark.text)
            continue
        is_new = mark.byte >= len(head)
        if opened and closer(opened[-1]) == mark.text:
            if is_new and len(opened) == plan.wanted:
                last_drop = mark.byte - len(head)
            opened.pop()
        elif is_new:
            # Nothing is open that this could close.
            text = text[: mark.byte - len(head)]
            break
    return text if len(opened) >= plan.wanted else text[:last_drop]


def _missing_closers(text: bytes, context: TrimContext) -> bytes:
    """Give back what was right of the cursor and is still needed."""
    rest = _rest(context).rstrip()
    if context.plan.end_byte == context.plan.cursor_byte or not rest:
        return text
    head, grammar = _head(context), context.tree.grammar
    after_rest = balance(grammar, head + rest).opened
    after_text = balance(grammar, head + text.rstrip()).opened
    if _is_in_comment(text, context):
        return text
    missing = after_text[len(after_rest) :]
    if len(context.plan.base) > len(after_rest) and missing:
        text = text.rstrip() + b"".join(closer(one) for one in reversed(missing))
    tail = rest[len(rest.rstrip(b",;:")) :]
    lines = text.rstrip().split(b"\n")
    if tail and not (lines[0].endswith(tail) or lines[-1].endswith(tail)):
        text = text.rstrip() + tail
    return text


def _is_in_comment(text: bytes, context: TrimContext) -> bool:
    """Whether what stands behind the text would be part of its comment."""
    grammar, head = context.tree.grammar, _head(context)
    before = balance(grammar, head + text)
    if before.opened and before.opened[-1] not in CLOSER_OF:
        return False
    return before == balance(grammar, head + text + b"(")


def _trailing_space(text: bytes, context: TrimContext) -> bytes:
    has_rest = context.plan.end_byte == context.plan.cursor_byte and not is_blank(
        _rest(context)
    )
    return text if has_rest else text.rstrip()


def _nothing_new(text: bytes, context: TrimContext) -> bytes:
    """Nothing rather than white space, lone closers or what is there already."""
    rest = context.tree.snapshot.data[context.plan.cursor_byte : context.plan.end_byte]
    if text.strip() == rest.strip() or not text.strip():
        return b""
    if not context.invoked and not text.strip(CLOSING + b"\n"):
        return b""
    return text


def _parses(text: bytes, context: TrimContext) -> bytes:
    """A whole block leaves the file no more broken than it was."""
    plan, tree = context.plan, context.tree
    if plan.shape is not Shape.BLOCK and b"\n" not in text.strip():
        return text
    before = num_errors(tree)
    for _ in range(_MAX_DROPPED):
        after = with_text(tree, plan.cursor_byte, plan.end_byte, text)
        if num_errors(after) <= before:
            return text
        if b"\n" not in text.strip():
            break
        text = _missing_closers(text[: text.rindex(b"\n")].rstrip(), context)
    return b"" if before == 0 and plan.shape is Shape.BLOCK else text


_FILTERS: dict[str, Callable[[bytes, TrimContext], bytes]] = {
    "half-character": _whole_characters,
    "line-ends": _line_ends,
    "special-token": _special_tokens,
    "stray-space": _stray_space,
    "echo": _echo,
    "complete": _complete,
    "half-line": _half_line,
    "repeats-rest": _rest_again,
    "indentation": _indentation,
    "extra-closers": _extra_closers,
    "missing-closers": _missing_closers,
    "trailing-space": _trailing_space,
    "parses": _parses,
    "nothing-new": _nothing_new,
}

FILTER_NAMES = tuple(_FILTERS)


def _typed(context: TrimContext) -> bytes:
    """The cursor's line up to the cursor."""
    data, cursor = context.tree.snapshot.data, context.plan.cursor_byte
    return data[line_start(data, cursor) : cursor]


def _rest(context: TrimContext) -> bytes:
    """The cursor's line from the cursor on."""
    data, cursor = context.tree.snapshot.data, context.plan.cursor_byte
    return data[cursor : line_end(data, cursor)]


def _head(context: TrimContext) -> bytes:
    """The text from the anchor to the cursor."""
    plan = context.plan
    return context.tree.snapshot.data[plan.anchor_byte : plan.cursor_byte]


def _is_in_string(context: TrimContext) -> bool:
    base = context.plan.base
    return bool(base) and base[-1] not in CLOSER_OF
