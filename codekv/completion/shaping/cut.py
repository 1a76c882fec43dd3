"""Where an unfinished text may be cut so that what is shown does not mislead.

A cut text ends with a whole name, number or word, or behind a bracket that closes a
call, an argument or an index; never inside a string, a name with its attributes, or
brackets that it has opened itself. It is always a beginning of the text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codekv.structure.balance import CLOSER_OF, balance, closer, marks, string_around

if TYPE_CHECKING:
    from grammars.registry import Grammar

_WORD = re.compile(rb"[\w\x80-\xff]+")
"""A name or number; bytes above ASCII belong to names."""

_GOES_ON = re.compile(rb"[\w\x80-\xff.(\[{:\x22\x27`!?]")
"""Behind a name: it is not whole, or it is called, indexed or continued."""


def sensible_cut(grammar: Grammar | None, head: bytes, text: bytes) -> bytes:
    """Cut an unfinished text back to its last sensible end.

    Args:
        grammar: Of the document; None for an unknown language.
        head: The cursor's line before the text, which may be inside a string.
        text: Decoded so far; what comes next is not known.

    Returns:
        A beginning of `text` without white space at its end; empty if no end makes
        sense yet.
    """
    opened = balance(grammar, head).opened
    inside = string_around(opened)
    if opened and opened[-1] not in CLOSER_OF and opened[-1] not in text:
        return b""
    best = 0
    for start, stop in _closed_ranges(grammar, text, inside):
        if start and not _GOES_ON.match(text, start):
            best = start
        words = _WORD.finditer(text, start, stop)
        # At a range's end a bracket or quote follows, or nothing is known yet.
        best = max((w.end() for w in words if _is_whole(text, w.end())), default=best)
    return text[:best]


def _is_whole(text: bytes, end: int) -> bool:
    return end < len(text) and not _GOES_ON.match(text, end)


def _closed_ranges(
    grammar: Grammar | None, text: bytes, inside: tuple[bytes, ...]
) -> list[tuple[int, int]]:
    """Stretches of a text in which none of its brackets and strings is open.

    All but the first begin behind a closing bracket or quote.
    """
    ranges: list[tuple[int, int]] = []
    # Code in a string is followed by that string's text.
    is_code = len(inside) > 1 and inside[-1] in CLOSER_OF
    opened, start = [] if is_code else [*inside[-1:]], 0
    for mark in marks(grammar, text, inside):
        if not opened:
            ranges.append((start, mark.byte))
        if is_code and not opened and not mark.is_open:
            return ranges
        if mark.is_open:
            opened.append(mark.text)
        elif (opened and closer(opened.pop()) != mark.text) or (
            not text.startswith(mark.text, mark.byte)
        ):
            # Broken from here on, as by a string that its line leaves open.
            return ranges
        if not opened:
            # A closing one without a partner closes what stood before the text.
            start = mark.byte + len(mark.text)
    if not opened:
        ranges.append((start, len(text)))
    return ranges
