"""From decoded bytes to the text that is offered.

A chain of small filters, each of which makes one promise about the result: nothing
that is already there, balanced brackets, the file's indentation and line ends. Every
filter that changes something is named in the result, so that it can be counted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codekv.completion.shaping.closers import extra_closers, missing_closers
from codekv.completion.shaping.halves import whole_blocks
from codekv.completion.shaping.indent import fit
from codekv.completion.shaping.levels import fits
from codekv.completion.shaping.overlap import (
    is_gap,
    operand,
    without_below,
    without_echo,
    without_name,
    without_rest,
)
from codekv.completion.shaping.shape import CLOSING, Shape, keeping_rest
from codekv.completion.shaping.stop import StopChecker, first_repetition
from codekv.completion.shaping.trim_context import TrimContext
from codekv.structure.errors import num_errors, with_text
from codekv.structure.lines import is_blank, line_start
from codekv.structure.parser import Parser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from codekv.structure.parser import SyntaxTree


__all__ = ["FILTER_NAMES", "TrimContext", "Trimmed", "finish"]

_SPECIAL = re.compile(
    rb"<\|[a-zA-Z0-9_ ]{1,40}\|>|<(?:fim|file|repo)_[a-z]+>|</?s>(?=\s*$)"
)
# A text that ends so goes on with what follows.
_GOES_ON = tuple(bytes([byte]) for byte in b" \t=([{,+-*/%.&|<>!~^")
_MAX_DROPPED = 12
"""Lines that may be cut off a block to make it parse: as many as it may have."""

_MAX_CLOSERS = 4
"""Closers in a row that a text may have too many of; more are no slip."""

_MAX_AFRESH = 1 << 16
"""Longest file in bytes that is parsed afresh for one answer: about 10 ms."""

_LOST = 1 << 30
"""Faults of an answer that loses text: more than `num_errors` ever counts."""

_DAMAGED = ("damages",)
_FAR_BELOW = 4000
"""Bytes below in which the line that leaves the cursor's block stands, mostly."""


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
    """Make what is offered out of the bytes decoded after the cursor.

    An answer never leaves the file with more faults than it had, and never loses what
    stands right of the cursor. Where the first reading of a text would, others are
    tried: the closers behind the cursor stay where they are; the text ends before its
    last closer. Where none of them helps, nothing is offered.
    """
    first = _read(raw, context)
    if not first.text or context.tree.grammar is None:
        return first
    faults = _faults_of(first, context)
    if faults == 0 or faults < (before := _faults_in(context.tree)):
        return first
    best = first
    for other in _other_readings(raw, context, faults > before):
        found = _faults_of(other, context) if other.text else faults
        if found < faults:
            best, faults = other, found
        if faults == 0:
            break
    # On a file that is broken already, syntax tells little of whole lines.
    is_line = is_blank(context.typed) and is_blank(context.rest)
    if faults <= before or (before and is_line and faults < _LOST):
        return best
    return replace(first, text="", filters=(*first.filters, *_DAMAGED))


def _other_readings(
    raw: bytes, context: TrimContext, is_damage: bool
) -> Iterator[Trimmed]:
    """A text read with less taken away behind the cursor, then with less of its end."""
    plan = context.plan
    kept = context
    if plan.end_byte > plan.cursor_byte:
        kept = replace(context, plan=keeping_rest(context.tree, plan))
        yield _read(raw, kept)
    if not is_damage:
        return
    text = raw.rstrip()
    for _ in range(_MAX_CLOSERS):
        if not text or text[-1:] not in CLOSING.strip():
            return
        text = text[:-1].rstrip()
        yield _read(text, context)
        if kept is not context:
            yield _read(text, kept)


def _faults_of(found: Trimmed, context: TrimContext) -> int:
    """Faults of the file with an answer; more than any file has if it loses text."""
    tree = context.tree
    text = found.text.replace(tree.snapshot.eol, "\n").encode()
    replaced = tree.snapshot.data[found.start_byte : found.end_byte]
    if not _holds(text, replaced):
        return _LOST
    return _faults_in(with_text(tree, found.start_byte, found.end_byte, text))


def _faults_in(tree: SyntaxTree) -> int:
    """Faults of a file, counted afresh.

    Where a text cannot be parsed, a parser that starts from an older tree may give up
    elsewhere than one that starts from nothing, and the numbers cannot be compared.
    """
    found = num_errors(tree)
    if found and len(tree.snapshot.data) <= _MAX_AFRESH:
        found = num_errors(Parser().parse(tree.snapshot, None))
    return found


def _holds(text: bytes, replaced: bytes) -> bool:
    """Whether all that is replaced stands in a text again, in its order."""
    left = iter(text)
    return all(byte in left for byte in b"".join(replaced.split()))


def _read(raw: bytes, context: TrimContext) -> Trimmed:
    """Pass a text through all filters once."""
    text, changed = raw, []
    if context.plan.shape is Shape.NONE:
        text, changed = b"", [context.plan.reason or "none"]
    for name, function in _FILTERS.items():
        if not text:
            break
        shorter = function(text, context)
        # A line's own end goes with every answer; that is no change worth counting.
        if shorter.rstrip() != text.rstrip() or not shorter:
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
    typed = context.typed
    if is_blank(typed) or context.is_in_string:
        return text
    if typed[-1:] in b"([.":
        return text.lstrip(b" \t")
    # More than one space may line something up.
    is_single = text[:1] == b" " and text[1:2] not in (b" ", b"\t")
    return text[1:] if is_single and typed[-1:] in b" \t" else text


def _complete(text: bytes, context: TrimContext) -> bytes:
    """Not beyond the statement or block, nor what is below or was said before."""
    checker = StopChecker(context.tree, context.plan, context.max_lines)
    # The end of the text ends its last line, unless it was cut there.
    whole = text if context.is_cut else text + b"\n"
    repeated = first_repetition(whole)
    ends = [checker.end(text), checker.end(whole), repeated]
    text = text[: min((end for end in ends if end is not None), default=len(text))]
    # Where it began to repeat itself it was not at an end.
    is_stuck = len(text) == repeated and _is_left(text, context)
    return b"" if is_stuck else text


def _half_line(text: bytes, context: TrimContext) -> bytes:
    """Not the half line at which decoding ran out of room, if there are others."""
    if not context.is_cut or not text.lstrip().count(b"\n"):
        return text
    checker = StopChecker(context.tree, context.plan, context.max_lines)
    if checker.end(text + b"\n") == len(text) and checker.end(text) is not None:
        return text
    return text[: text.rindex(b"\n")]


def _rest_again(text: bytes, context: TrimContext) -> bytes:
    """Not what follows on the cursor's own line, wherever in it the cursor stands."""
    if not context.keeps_rest:
        return text
    if is_gap(context):
        return operand(text, context)
    if is_blank(context.typed):
        return _line_before(text, context)
    return without_rest(text.split(b"\n", 1)[0], context)


def _rest_after_closers(text: bytes, context: TrimContext) -> bytes:
    """Not what follows, which a text may end with once its closers are gone."""
    return text if is_blank(context.typed) else _rest_again(text, context)


def _line_before(text: bytes, context: TrimContext) -> bytes:
    """Put lines of their own before the text that the cursor stands before."""
    typed, below = context.typed, (context.typed + context.rest).rstrip()
    lines = (typed + text).split(b"\n")
    if below in [line.rstrip() for line in lines]:
        number = [line.rstrip() for line in lines].index(below)
        text = b"\n".join(lines[:number])[len(typed) :]
    head, newline, last = text.rstrip().rpartition(b"\n")
    kept = without_rest(last, context)
    if kept.strip() != last.strip():
        # What is left of the last line begins the line that stands here.
        is_begun = kept.rstrip().endswith(_GOES_ON)
        return head + newline + kept if is_begun else head.rstrip()
    if is_blank(text) or text.endswith(_GOES_ON):
        return text if text.strip() else b""
    own_lines = text.rstrip() + b"\n" + typed
    is_worse = context.num_errors_with(own_lines) > context.num_errors_with(text)
    return text if is_worse else own_lines


def _indentation(text: bytes, context: TrimContext) -> bytes:
    """The file's steps, unless only the text's own leave the lines below in place."""
    fitted = fit(context.tree, context.plan, text)
    if fitted == text or _is_level(fitted, context):
        return fitted
    return text if _is_level(text, context) else fitted


def _line_below(text: bytes, context: TrimContext) -> bytes:
    """Not the line below, which a line may have become by fitting."""
    checker = StopChecker(context.tree, context.plan, context.max_lines)
    # Without its end the last line is not compared.
    return text[: checker.below_again(text + b"\n")]


def _trailing_space(text: bytes, context: TrimContext) -> bytes:
    return text if context.keeps_rest else text.rstrip()


def _left_open(text: bytes, context: TrimContext) -> bytes:
    """Not a quote that its line leaves open, nor a statement cut in the middle."""
    plan, grammar = context.plan, context.tree.grammar
    if grammar is None or not text.strip():
        return text
    opened = context.balance(text).opened
    last = opened[-1] if opened else b""
    # A raw string may run on over lines with the same quote.
    is_one_line = last in grammar.quotes and not grammar.raw
    is_new = last not in plan.base
    if is_one_line and is_new:
        return b""
    first = text.split(b"\n", 1)[0].rstrip()
    is_sentence = first.endswith(b".") and last in first
    if context.is_cut and is_new and last in grammar.long_quotes and is_sentence:
        # The first sentence of a long docstring is one by itself.
        return first + last
    is_header = text.rstrip().endswith(b"{")
    is_left = context.is_cut and not is_header and _is_left(text, context)
    return b"" if is_left and plan.shape is Shape.LINE else text


def _is_left(text: bytes, context: TrimContext) -> bool:
    """Whether a text opens what nothing closes."""
    plan = context.plan
    return len(context.balance(text).opened) > max(len(plan.base), plan.wanted)


def _levels(text: bytes, context: TrimContext) -> bytes:
    """Nothing behind or before which a line would stand where none can."""
    return text if _is_level(text, context) else b""


def _is_level(text: bytes, context: TrimContext) -> bool:
    """Whether the language, if it goes by indentation, can stand it."""
    plan, tree = context.plan, context.tree
    grammar, data = tree.grammar, tree.snapshot.data
    if grammar is None or not grammar.is_indented or plan.base:
        return True
    before = data[line_start(data, plan.anchor_byte) : plan.cursor_byte]
    below = data[plan.end_byte : plan.end_byte + _FAR_BELOW]
    return fits(grammar, before, text, below)


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
    before, whole = num_errors(tree), text
    for _ in range(_MAX_DROPPED):
        if context.num_errors_with(text) <= before:
            return text
        if b"\n" not in text.strip():
            break
        text = missing_closers(text[: text.rindex(b"\n")].rstrip(), context)
    is_half = text != whole and _is_left(text, context)
    is_broken = before == 0 and plan.shape is Shape.BLOCK
    return b"" if is_half or is_broken else text


_FILTERS: dict[str, Callable[[bytes, TrimContext], bytes]] = {
    "half-character": _whole_characters,
    "line-ends": _line_ends,
    "special-token": _special_tokens,
    "stray-space": _stray_space,
    "echo": without_echo,
    "own-name": without_name,
    "complete": _complete,
    "half-line": _half_line,
    "repeats-rest": _rest_again,
    "indentation": _indentation,
    "line-below": _line_below,
    "extra-closers": extra_closers,
    "rest-after-closers": _rest_after_closers,
    "goes-on-below": without_below,
    "missing-closers": missing_closers,
    "trailing-space": _trailing_space,
    "half-block": whole_blocks,
    "parses": _parses,
    "left-open": _left_open,
    "levels": _levels,
    "nothing-new": _nothing_new,
}

FILTER_NAMES = (*_FILTERS, *_DAMAGED)
