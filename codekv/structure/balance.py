"""Brackets and quotes in text that may be broken: what is open, what is closed.

A scanner of single characters, not a parser: half-typed code has no tree, but its
brackets can still be counted once strings and comments are out of the way.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grammars.registry import Grammar

CLOSER_OF = {b"(": b")", b"[": b"]", b"{": b"}"}


@dataclass(frozen=True, slots=True)
class Mark:
    """One bracket or quote: opening or closing, where, and its text."""

    byte: int
    text: bytes
    is_open: bool


@dataclass(frozen=True, slots=True)
class Balance:
    """What a text leaves open, and what it closes without having opened it.

    Attributes:
        opened: Brackets and quotes still open at the end, outermost first.
        extra: Closing ones without a partner, in order.
    """

    opened: tuple[bytes, ...]
    extra: tuple[bytes, ...]


def balance(grammar: Grammar | None, text: bytes, inside: bytes = b"") -> Balance:
    """Weigh a text's brackets and quotes.

    Args:
        grammar: Tells strings and comments apart; None knows double quotes only.
        text: Any text.
        inside: The quote of the string in which the text begins.
    """
    opened: list[bytes] = []
    extra: list[bytes] = []
    for mark in marks(grammar, text, inside):
        if mark.is_open:
            opened.append(mark.text)
        elif opened and closer(opened[-1]) == mark.text:
            opened.pop()
        else:
            extra.append(mark.text)
    return Balance(tuple(opened), tuple(extra))


def closer(opener: bytes) -> bytes:
    """What closes a bracket or quote."""
    return CLOSER_OF.get(opener, opener)


def marks(grammar: Grammar | None, text: bytes, inside: bytes = b"") -> Iterator[Mark]:
    """List brackets and the quotes of strings; those inside strings are left out."""
    at = 0
    if inside:
        at = text.find(inside)
        if at < 0:
            return
        yield Mark(at, inside, is_open=False)
        at += len(inside)
    for found in _scanner(grammar).finditer(text, at):
        token = found.group()
        if found.lastgroup == "bracket":
            yield Mark(found.start(), token, is_open=token in CLOSER_OF)
        elif token.startswith((b"R", b"r")) and not token.rstrip(b"#").endswith(b'"'):
            # A raw string that is still open; complete ones are skipped whole.
            yield Mark(found.start(), b'"', is_open=True)
        elif found.lastgroup == "string":
            quote = found.group("quote")
            yield Mark(found.start(), quote, is_open=True)
            if len(token) >= 2 * len(quote) and _is_closed(token, quote):
                yield Mark(found.end() - len(quote), quote, is_open=False)
            elif found.end() < len(text):
                # A string that its line leaves open ends there all the same.
                yield Mark(found.end(), quote, is_open=False)


def _is_closed(token: bytes, quote: bytes) -> bool:
    body = token[len(quote) : -len(quote)]
    slashes = len(body) - len(body.rstrip(b"\\"))
    return token.endswith(quote) and slashes % 2 == 0


@functools.cache
def _scanner(grammar: Grammar | None) -> re.Pattern[bytes]:
    quotes: tuple[bytes, ...] = (b'"',)
    long: tuple[bytes, ...] = ()
    skipped: list[bytes] = []
    if grammar is not None:
        quotes, long = grammar.quotes, grammar.long_quotes
        if grammar.literal:
            skipped.append(grammar.literal)
        if grammar.comment:
            skipped.append(re.escape(grammar.comment) + rb"[^\n]*")
        if grammar.remark:
            begin, end = map(re.escape, grammar.remark)
            skipped.append(begin + rb"(?s:.*?)(?:" + end + rb"|\Z)")
        if grammar.raw:
            skipped.append(grammar.raw)
    # Longer quotes first: three are not one and two.
    strings = [(q, True) for q in sorted(long, key=len, reverse=True)]
    strings += [(q, False) for q in quotes]
    parts = [b"(?P<skip>" + b"|".join(skipped) + b")"] if skipped else []
    parts.append(b"(?P<string>" + _strings(strings) + b")")
    parts.append(rb"(?P<bracket>[()\[\]{}])")
    return re.compile(b"|".join(parts))


def _strings(quotes: list[tuple[bytes, bool]]) -> bytes:
    # A text without strings, such as prose, has nothing that opens one.
    opening = b"|".join(re.escape(quote) for quote, _ in quotes) or rb"(?!)"
    bodies = []
    for quote, is_long in quotes:
        text = re.escape(quote)
        char = rb"(?!" + text + rb")[^\\]" if is_long else rb"[^\\\n" + text + rb"]"
        body = rb"(?:\\(?s:.)|" + char + rb")*+(?:" + text + rb")?"
        bodies.append(rb"(?<=" + text + rb")" + body)
    return rb"(?P<quote>" + opening + rb")(?:" + rb"|".join(bodies) + rb")"
