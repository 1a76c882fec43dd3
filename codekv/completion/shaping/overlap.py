"""Nothing is said twice: the one rule for what stands around the cursor already.

A model that sees the text behind the cursor still writes on into it, mostly word for
word. Wherever the cursor stands in a line or in a chain of lines, the offered text ends
before it repeats the line's rest, and before it repeats the lines below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codekv.structure.lines import is_blank, line_end, line_start

if TYPE_CHECKING:
    from codekv.completion.shaping.trim_context import TrimContext

LEAST_REPEATED = 8
"""So many equal bytes across a line's end are no accident: the bound that the property
tests hold every answer to. On the cursor's own line, where both texts touch, two are
enough, or one that is no letter."""

LEAST_ECHO = 5
"""So many bytes suffice if they are all that is typed: `return return x` is none."""

_LEAST_CORE = 3
"""Bytes of a line's rest, its separators left out, that are enough to know it by."""

_MAX_BELOW = 400
"""Bytes of the text below that are compared; a line answer is rarely longer."""

_OPERATORS = b"&|+-*/%<>=?:.,\\^~"


def is_gap(context: TrimContext) -> bool:
    r"""Whether the cursor stands where a link of a chain of lines is missing.

    Only white space before it, and behind it, on its line, what goes on with an
    expression: `&& rest`, `+ \`, `.map(f)`.
    """
    grammar, rest = context.tree.grammar, context.rest.lstrip()
    if grammar is None or not context.keeps_rest or not is_blank(context.typed):
        return False
    return grammar.lines.joins(rest)


def operand(text: bytes, context: TrimContext) -> bytes:
    """The missing link of a chain alone: one line, no operator, no neighbour again."""
    grammar = context.tree.grammar
    assert grammar is not None
    line = text.lstrip().split(b"\n", 1)[0]
    line = without_rest(line, context).rstrip()
    while (words := line.split()) and grammar.lines.is_join(words[-1]):
        line = line[: -len(words[-1])].rstrip()
    above, below = _neighbours(context)
    if grammar.lines.is_join((above.split() or [b""])[-1]):
        # The operator before the link stands above.
        while (words := line.split()) and grammar.lines.is_join(words[0]):
            line = line[len(words[0]) :].lstrip()
    if _bare(line, context) in (_bare(above, context), _bare(below, context)):
        return b""
    return line if context.rest[:1].isspace() or not line else _spaced(line, context)


def _spaced(line: bytes, context: TrimContext) -> bytes:
    """A space before an operator that stands right at the cursor."""
    return line if context.rest[:1] in b".?\\" else line + b" "


def _bare(line: bytes, context: TrimContext) -> bytes:
    """A link without the operators and closers around it."""
    grammar = context.tree.grammar
    assert grammar is not None
    words = line.strip().rstrip(b";,)").split()
    while words and grammar.lines.is_join(words[0]):
        words = words[1:]
    while words and grammar.lines.is_join(words[-1]):
        words = words[:-1]
    return b" ".join(words)


def _neighbours(context: TrimContext) -> tuple[bytes, bytes]:
    """The line above the cursor's and the line below it."""
    data, cursor = context.tree.snapshot.data, context.plan.cursor_byte
    own, end = line_start(data, cursor), line_end(data, cursor)
    above = data[line_start(data, own - 1) : own - 1] if own else b""
    return above, data[end + 1 : line_end(data, end + 1)] if end < len(data) else b""


def without_rest(text: bytes, context: TrimContext) -> bytes:
    """A line's text up to where it says what follows on the cursor's line."""
    rest = context.rest
    whole = rest.strip()
    if not whole:
        return text
    end = _rest_inside(text, whole, context)
    core = whole.rstrip(b";, ")
    if end is None and len(core) >= _LEAST_CORE:
        # A chain that goes on where the line's statement ends.
        end = _rest_inside(text, core, context)
    if end is None:
        end = len(text.rstrip()) - overlap(text.rstrip(), whole)
        if end == len(text.rstrip()):
            return text
    text = text[:end]
    return text.rstrip() if rest[:1].isspace() else text


def _rest_inside(text: bytes, whole: bytes, context: TrimContext) -> int | None:
    """Where a text says all of the line's rest, at the end or on the way."""
    grammar = context.tree.grammar
    # A lone operator may stand in a text that goes on to the same one.
    is_long = len(whole) > 1 and not (grammar and grammar.lines.is_join(whole))
    if whole == b"{" and context.rest[:1].isspace():
        # A header's brace, not that of a literal, which stands close to its name.
        is_long, whole = True, b" {"
    at = text.find(whole) if is_long else -1
    while at >= 0:
        if context.balance(text[:at]).opened == context.plan.base:
            return at
        at = text.find(whole, at + 1)
    # With brackets of its own before it, only at the end.
    is_last = len(whole) > 1 or whole in (b"\\", b"{")
    if is_last and text.rstrip().endswith(whole):
        return text.rindex(whole)
    return None


def overlap(text: bytes, follows: bytes) -> int:
    """How many bytes at a text's end are the first ones of what follows it.

    A single letter is no overlap, and a closing bracket or quote is one only if the
    text has nothing that it closes.
    """
    for size in range(min(len(text), len(follows)), 1, -1):
        if text.endswith(follows[:size]):
            return size
    last = follows[:1]
    if not last or text[-1:] != last or _is_word(last):
        return 0
    return 0 if _is_own_closer(text, last) else 1


def _is_own_closer(text: bytes, last: bytes) -> bool:
    """Whether a text's last byte closes something that the text itself opens."""
    opener = {b")": b"(", b"]": b"[", b"}": b"{"}.get(last)
    if opener is not None:
        return text.count(last) <= text.count(opener)
    return last in b"\"'`" and text.count(last) % 2 == 0


def _is_word(byte: bytes) -> bool:
    return byte.isalnum() or byte == b"_" or byte >= b"\x80"


def without_below(text: bytes, context: TrimContext) -> bytes:
    """A text up to where its last line goes on with the lines below.

    White space does not count, so that a chain written on one line is found, too.
    """
    if context.keeps_rest:
        return text
    data, grammar = context.tree.snapshot.data, context.tree.grammar
    end = line_end(data, context.plan.cursor_byte)
    below = b" ".join(data[end : end + _MAX_BELOW].split())
    first = data[end + 1 : line_end(data, end + 1)].strip()
    head, newline, last = text.rstrip().rpartition(b"\n")
    begin = last.find(first, 1) if len(first) >= LEAST_REPEATED else -1
    if begin > 0:
        return (head + newline + last[:begin]).rstrip()
    # A link of the same chain: its operator is enough.
    is_chain = grammar is not None and grammar.lines.joins(first)
    least = 2 if is_chain else LEAST_REPEATED
    for size in range(min(len(last), len(below)), least - 1, -1):
        if last.endswith(below[:size]) and _is_border(last, below, size):
            return (head + newline + last[:-size]).rstrip()
    return text


def _is_border(said: bytes, below: bytes, size: int) -> bool:
    """Whether no word is cut where a repetition begins and ends."""
    begin = said[-size - 1 : len(said) - size]
    is_begin = not (_is_word(begin) and _is_word(below[:1])) if begin else True
    after = below[size : size + 1]
    is_end = (
        not (_is_word(after) and _is_word(below[size - 1 : size])) if after else True
    )
    return is_begin and (is_end or size >= LEAST_REPEATED)


def without_name(text: bytes, context: TrimContext) -> bytes:
    """Not the file's own name, which the prompt begins with, as a first line."""
    first, _, left = text.lstrip().partition(b"\n")
    name = context.tree.snapshot.uri.rsplit("/", 1)[-1].encode()
    said = first.lstrip(b"#/-*;%<! ").rstrip(b"->*/ ")
    is_name = bool(name) and is_blank(context.typed) and len(first) > len(said)
    return left if is_name and said.endswith(name) and b" " not in said else text


def without_echo(text: bytes, context: TrimContext) -> bytes:
    """Not the typed line, or the end of it, once more."""
    typed = context.typed.strip()
    if not typed and context.is_in_brackets:
        # The line above is the same statement.
        typed = _neighbours(context)[0].strip()
    begun = text.lstrip()
    least = min(LEAST_REPEATED, max(len(typed), LEAST_ECHO))
    for size in range(min(len(typed), len(begun)), least - 1, -1):
        tail = typed[-size:]
        is_said = begun.startswith(tail) and any(map(str.isalnum, map(chr, tail)))
        before = typed[-size - 1 : len(typed) - size]
        is_whole = size == len(typed) or not (_is_word(before) and _is_word(tail[:1]))
        if is_said and is_whole:
            left = begun[size:]
            return left.lstrip(b" \t") if context.typed[-1:].isspace() else left
    return text
