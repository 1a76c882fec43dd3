"""Brackets and quotes in text that may be broken: what is open, what is closed.

A small lexer, not a parser: half-typed code has no tree, but its brackets can still be
counted once comments and the text of strings are out of the way. What begins a string,
and code inside one, is the language's data.
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


def balance(
    grammar: Grammar | None, text: bytes, inside: tuple[bytes, ...] = ()
) -> Balance:
    """Weigh a text's brackets and quotes.

    Args:
        grammar: Tells strings and comments apart; None knows double quotes only.
        text: Any text.
        inside: What is open where the text begins, from the outermost string on: its
            quote alone in the string's text, brackets behind it in code that the
            string holds.
    """
    opened: list[bytes] = []
    extra: list[bytes] = []
    for mark in marks(grammar, text, inside):
        if mark.is_open:
            opened.append(mark.text)
        elif opened and closer(opened[-1]) == mark.text:
            opened.pop()
        elif mark.text not in CLOSER_OF.values() and mark.text in opened:
            # A string that ends takes along what is still open in it.
            while opened.pop() != mark.text:
                pass
        else:
            extra.append(mark.text)
    return Balance(tuple(opened), tuple(extra))


def closer(opener: bytes) -> bytes:
    """What closes a bracket or quote."""
    return CLOSER_OF.get(opener, opener)


def string_around(opened: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """What of open brackets and quotes lies in a string: its quote and all behind it.

    Empty outside of strings.
    """
    first = next((i for i, one in enumerate(opened) if one not in CLOSER_OF), None)
    return () if first is None else opened[first:]


def marks(
    grammar: Grammar | None, text: bytes, inside: tuple[bytes, ...] = ()
) -> Iterator[Mark]:
    """List brackets and the quotes of strings.

    The text of strings has none, but the code that a string holds (an f-string's
    `{}`, a template's `${}`) is code like any other. A string of one line ends with
    its line, whatever is open in it.
    """
    return _Lexer(grammar, inside).marks(text)


class _Lexer:
    """Walks through one text; what is next depends on the strings it is in."""

    def __init__(self, grammar: Grammar | None, inside: tuple[bytes, ...]) -> None:
        template = grammar.template if grammar else None
        self._grammar = grammar
        # What is open from the outermost string that holds code on; a quote on top
        # means that string's text.
        self._around = list(inside)
        self._next = 0
        # A quote alone does not tell whether its string holds code.
        self._is_template = len(inside) != 1 or bool(template and not template.prefix)

    def marks(self, text: bytes) -> Iterator[Mark]:
        """See the function of this name."""
        at = 0
        while at < len(text):
            around = self._around
            if around and around[-1] not in CLOSER_OF:
                pattern = _body(self._grammar, around[-1], self._is_template)
                step = self._in_string
            else:
                pattern = _code(self._grammar, is_inner=bool(around))
                step = self._in_code
                self._is_template = True
            found = pattern.search(text, at)
            if found is None:
                return
            self._next = found.end()
            yield from step(found)
            at = self._next

    def _in_string(self, found: re.Match[bytes]) -> Iterator[Mark]:
        """What the text of the innermost string comes to."""
        if found.lastgroup == "end":
            yield Mark(found.start(), self._around.pop(), is_open=False)
        elif found.lastgroup == "line":
            yield from self._end_string(found.start())
        elif found.lastgroup == "code":
            bracket = found.group()[-1:]
            self._around.append(bracket)
            yield Mark(found.end() - 1, bracket, is_open=True)

    def _in_code(self, found: re.Match[bytes]) -> Iterator[Mark]:
        """What a piece of code comes to."""
        token, kind, at = found.group(), found.lastgroup, found.start()
        if kind == "bracket":
            if self._around and token in CLOSER_OF:
                self._around.append(token)
            elif self._around and closer(self._around[-1]) == token:
                self._around.pop()
            yield Mark(at, token, token in CLOSER_OF)
        elif kind == "line":
            if self._is_in_short():
                yield from self._end_string(at)
        elif kind in ("template", "string"):
            yield from self._string(found)
        elif token.startswith((b"R", b"r")) and not token.rstrip(b"#").endswith(b'"'):
            # A raw string that is still open; complete ones are skipped whole.
            yield Mark(at, b'"', is_open=True)

    def _string(self, found: re.Match[bytes]) -> Iterator[Mark]:
        quote = found.group("begin") or found.group("quote")
        if self._is_in_short() and not _is_nested(found, quote, self._quote):
            # The string ends although the code in it does not.
            while self._around.pop() in CLOSER_OF:
                pass
            at = max(found.start("begin"), found.start("quote"))
            self._next = at + len(quote)
            yield Mark(at, quote, is_open=False)
            return
        if found.lastgroup == "template":
            self._around.append(quote)
            yield Mark(found.end() - len(quote), quote, is_open=True)
            return
        token = found.group()
        yield Mark(found.start(), quote, is_open=True)
        if len(token) >= 2 * len(quote) and _is_closed(token, quote):
            yield Mark(found.end() - len(quote), quote, is_open=False)
        elif found.end() < len(found.string):
            # A string that its line leaves open ends there all the same.
            yield Mark(found.end(), quote, is_open=False)

    def _end_string(self, at: int) -> Iterator[Mark]:
        """Close the innermost string, and all that is open in it, at its line's end."""
        while self._around:
            one = self._around.pop()
            yield Mark(at, closer(one), is_open=False)
            if one not in CLOSER_OF:
                return

    @property
    def _quote(self) -> bytes:
        """The innermost string's quote; empty outside of strings."""
        return next(
            (one for one in reversed(self._around) if one not in CLOSER_OF), b""
        )

    def _is_in_short(self) -> bool:
        return self._quote in _short_quotes(self._grammar)


def _is_nested(found: re.Match[bytes], quote: bytes, around: bytes) -> bool:
    """Whether a quote begins a string in a string rather than ends the outer one."""
    if quote != around:
        return True
    line = found.string[found.start() :].split(b"\n", 1)[0]
    # Its own closing quote, the code's end and the outer closing quote must follow.
    parts = line.split(quote)
    return len(parts) > 3 and any(part.lstrip()[:1] in _ENDS_CODE for part in parts[2:])


_ENDS_CODE = (b"}", b")", b"]")
"""What follows a string in code that a string holds, mostly."""


def _short_quotes(grammar: Grammar | None) -> frozenset[bytes]:
    if grammar is None:
        return frozenset()
    return frozenset(grammar.quotes) - frozenset(grammar.long_quotes)


def _is_closed(token: bytes, quote: bytes) -> bool:
    body = token[len(quote) : -len(quote)]
    slashes = len(body) - len(body.rstrip(b"\\"))
    return token.endswith(quote) and slashes % 2 == 0


@functools.cache
def _body(
    grammar: Grammar | None, quote: bytes, is_template: bool
) -> re.Pattern[bytes]:
    """What the text of a string with this quote comes to next."""
    template = grammar.template if grammar else None
    literal, code = rb"\\(?s:.)", rb""
    if template is not None and is_template and quote in template.quotes:
        literal += b"|" + template.literal if template.literal else b""
        code = b"|(?P<code>" + template.code + b")"
    end = b"|(?P<end>" + re.escape(quote) + b")"
    line = rb"|(?P<line>\n)" if quote in _short_quotes(grammar) else b""
    return re.compile(b"(?P<skip>" + literal + b")" + code + end + line)


@functools.cache
def _code(grammar: Grammar | None, is_inner: bool) -> re.Pattern[bytes]:
    """What a piece of code comes to next.

    In the code that a string holds, a comment sign is mostly part of a format, and a
    line's end may be the string's end.
    """
    quotes: tuple[bytes, ...] = (b'"',)
    long: tuple[bytes, ...] = ()
    skipped: list[bytes] = []
    begin = rb"(?!)"
    if grammar is not None:
        quotes, long = grammar.quotes, grammar.long_quotes
        if grammar.literal:
            skipped.append(grammar.literal)
        if grammar.comment and not is_inner:
            skipped.append(re.escape(grammar.comment) + rb"[^\n]*")
        if grammar.remark and not is_inner:
            start, end = map(re.escape, grammar.remark)
            skipped.append(start + rb"(?s:.*?)(?:" + end + rb"|\Z)")
        if grammar.raw:
            skipped.append(grammar.raw)
        if grammar.template is not None:
            begin = b"|".join(map(re.escape, _longest_first(grammar.template.quotes)))
    parts = [b"(?P<skip>" + b"|".join(skipped) + b")"] if skipped else []
    parts += [rb"(?P<line>\n)"] if is_inner else []
    parts.append(b"(?P<template>" + _prefix(grammar) + b"(?P<begin>" + begin + b"))")
    strings = [(q, True) for q in _longest_first(long)]
    strings += [(q, False) for q in quotes]
    parts.append(b"(?P<string>" + _strings(strings) + b")")
    parts.append(rb"(?P<bracket>[()\[\]{}])")
    return re.compile(b"|".join(parts))


def _prefix(grammar: Grammar | None) -> bytes:
    """What stands before the quote of a string that holds code."""
    if grammar is None or grammar.template is None or not grammar.template.prefix:
        return b""
    return rb"(?<!\w)(?:" + grammar.template.prefix + b")"


def _longest_first(quotes: tuple[bytes, ...]) -> list[bytes]:
    """Three quotes are not one and two."""
    return sorted(quotes, key=len, reverse=True)


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
