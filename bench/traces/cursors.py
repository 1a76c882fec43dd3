"""Cursors in real files at which the quality of answers is judged.

The text at the cursor is cut out as a person would not have typed it yet; what stood
there is the answer wanted. Seeded: the same files and seed give the same cursors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from bench.traces.corpus import by_repository

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.traces.corpus import SourceFile

_CLOSERS = re.compile(rb"[\w\"'][)\]}]+[:;,]?$")
_CALL = re.compile(rb"\w\((?=[\w\"'])|, (?=\w)")
_HALF_WORD = re.compile(rb"[A-Za-z_]\w{3,}")
_ATTEMPTS = 40
"""Most files have a place of every kind within so many tries."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """One question and what the author wrote there.

    Attributes:
        kind: A key of `KINDS`.
        data: The document as it would be with `wanted` not typed yet.
        wanted: From the cursor to its line's end, or the whole next line.
        whole: The author's document.
    """

    kind: str
    uri: str
    language: str
    data: bytes
    cursor_byte: int
    wanted: bytes
    whole: bytes


def cursors(
    files: Sequence[SourceFile], kinds: Sequence[str], limit: int, seed: int
) -> Iterator[Cursor]:
    """Choose at most `limit` cursors; kinds and repositories take turns."""
    groups = list(by_repository(files).values())
    seen: set[tuple[str, str, int]] = set()
    for number in range(limit):
        rng = Random(f"{seed}/{number}")
        kind = kinds[number % len(kinds)]
        group = groups[number // len(kinds) % len(groups)]
        for _ in range(_ATTEMPTS):
            found = _cursor(rng.choice(group), kind, rng)
            if found is None or (key := (kind, found.uri, found.cursor_byte)) in seen:
                continue
            seen.add(key)
            yield found
            break


def _cursor(file: SourceFile, kind: str, rng: Random) -> Cursor | None:
    index = rng.randrange(1, len(file.lines))
    if not file.is_code(index):
        return None
    hole = KINDS[kind](file, index, rng)
    if hole is None:
        return None
    start, end, shown = hole
    data = file.data[:start] + shown + file.data[end:]
    cursor = start + len(shown)
    wanted = file.data[start:end].removeprefix(shown)
    return Cursor(kind, file.uri, file.language, data, cursor, wanted, file.data)


Hole = tuple[int, int, bytes]
"""Bytes [start, end) of a file, and what stands there before the cursor instead."""


def _next_line(file: SourceFile, index: int, _: Random) -> Hole:
    """A line has just been begun: nothing stands on it, not even white space."""
    line = file.lines[index]
    return line.start, line.end, b""


def _indented_line(file: SourceFile, index: int, _: Random) -> Hole:
    """A line has just been begun, and the editor has indented it."""
    line = file.lines[index]
    return line.start, line.end, line.text[: line.indent]


def _line_end(file: SourceFile, index: int, _: Random) -> Hole:
    """The text is all there: is something made up, or said twice?"""
    line = file.lines[index]
    return line.end, line.end, b""


def _half_line(file: SourceFile, index: int, rng: Random) -> Hole | None:
    """The line breaks off in the middle of a word."""
    line = file.lines[index]
    words = list(_HALF_WORD.finditer(line.text))
    if not words:
        return None
    word = rng.choice(words)
    start = line.start + rng.randrange(word.start() + 1, word.end())
    return start, line.end, b""


def _before_closers(file: SourceFile, index: int, rng: Random) -> Hole | None:
    """The editor has put the closing brackets behind the cursor."""
    line = file.lines[index]
    closers = _CLOSERS.search(line.text)
    if closers is None:
        return None
    opening = max(line.text.rfind(b"(", 0, closers.start()), line.indent)
    start = rng.randrange(opening, closers.start() + 1) + 1
    if line.text[start] & 0xC0 == 0x80:
        return None
    return line.start + start, line.start + closers.start() + 1, b""


def _in_call(file: SourceFile, index: int, rng: Random) -> Hole | None:
    """Inside a call that is all there."""
    line = file.lines[index]
    places = list(_CALL.finditer(line.text))
    if not places:
        return None
    at = line.start + rng.choice(places).end()
    return at, at, b""


KINDS = {
    "next-line": _next_line,
    "indented-line": _indented_line,
    "line-end": _line_end,
    "half-line": _half_line,
    "before-closers": _before_closers,
    "in-call": _in_call,
}
