"""Where in a file an episode happens, and what is typed there.

Everything typed is the file's own text: the rest of a line is deleted and typed again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.traces.trace import ARRIVE, Script

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from bench.traces.corpus import Function, Line, SourceFile

DEEP = 3_500
"""Bytes above a deep place: at least 900 tokens of ordinary code."""

WINDOW = 5_000
"""Bytes that a context of about 1,300 tokens reaches back."""


_STATEMENT = re.compile(rb"\s*[A-Za-z_][\w.]*(?: = | \+= |\(|\.).{3,}[\w)\];]")


@dataclass(frozen=True, slots=True)
class TypingTarget:
    """Bytes [start, end) that are deleted, and the strokes typed in their place."""

    start: int
    end: int
    strokes: tuple[str, ...]


def strokes_from(data: bytes, start: int, limit: int) -> TypingTarget:
    """Cut the text from `start` on into at most `limit` strokes.

    A stroke is a character; a line end takes the next line's indentation (and blank
    lines before it) with it, as an editor's automatic indentation does. The deleted
    range reaches to the end of the line in which the last stroke lies.
    """
    text = data[start:].decode()
    strokes: list[str] = []
    index = 0
    while index < len(text) and len(strokes) < limit:
        stop = index + 1
        if text[index] == "\n":
            while stop < len(text) and text[stop] in " \t\n":
                stop += 1
        strokes.append(text[index:stop])
        index = stop
    line_end = text.find("\n", index)
    stop = len(text) if line_end < 0 else line_end
    return TypingTarget(start, start + len(text[:stop].encode()), tuple(strokes))


def target_in(
    file: SourceFile, function: Function, limit: int, rng: Random
) -> TypingTarget | None:
    """Choose a place inside a function's body where `limit` strokes can be typed."""
    lines = [i for i in range(function.first + 1, function.last + 1) if file.is_code(i)]
    rng.shuffle(lines)
    for index in lines:
        line = file.lines[index]
        body = line.text.decode()
        code = len(body.strip())
        if code < 6:
            continue
        column = line.indent + rng.randrange(0, code // 2)
        start = line.start + len(body[:column].encode())
        target = strokes_from(file.data, start, limit)
        if len(target.strokes) == limit:
            return target
    return None


def other_line(
    file: SourceFile, function: Function, rng: Random
) -> tuple[Line, str] | None:
    """Choose a statement of a function and another one of the file to stand there."""
    mine = [line for line in _statements(file, function) if line.indent]
    if not mine:
        return None
    line = rng.choice(mine)
    others = [
        other.text.decode().strip()
        for each in file.functions
        for other in _statements(file, each)
        if other.indent == line.indent and other.text != line.text
    ]
    return (line, rng.choice(others)) if others else None


def _statements(file: SourceFile, function: Function) -> list[Line]:
    """Lines that look like whole statements of one line."""
    lines = [file.lines[i] for i in range(function.first + 1, function.last + 1)]
    return [line for line in lines if _STATEMENT.fullmatch(line.text)]


def deep_functions(file: SourceFile, above: int = DEEP) -> list[int]:
    """Indices of functions that begin at least `above` bytes into the file."""
    return [
        index
        for index, function in enumerate(file.functions)
        if file.lines[function.first].start >= above
    ]


def span(file: SourceFile, function: Function) -> tuple[int, int]:
    """Byte range of a function's whole lines, without the last line end."""
    return file.lines[function.first].start, file.lines[function.last].end


# Time to read the place that one has jumped to.
ARRIVE_SECONDS = 6.0


class Visit:
    """A person typing at one place, who may go away and come back.

    Edits elsewhere in the document must lie wholly above the place.
    """

    def __init__(
        self,
        script: Script,
        file: SourceFile,
        target: TypingTarget,
        arrive: bool = False,
    ) -> None:
        """Come to a place; with `arrive`, ask there once and read for a while.

        Opening a file is an event of its own: the report keeps these first answers
        apart, so that they neither hide nor spoil what typing costs.
        """
        self._script = script
        self._uri = file.uri
        self._left = list(target.strokes)
        script.replace(file.uri, target.start, target.end, "")
        self._behind = len(script.text(file.uri)) - target.start
        if arrive:
            self.ask(ARRIVE)
            script.settle(ARRIVE_SECONDS)

    @property
    def cursor(self) -> int:
        """The place's offset in the present text."""
        return len(self._script.text(self._uri)) - self._behind

    def type(self, count: int, label: str) -> None:
        """Type the next strokes, asking after each."""
        now, self._left = self._left[:count], self._left[count:]
        self._script.type(self._uri, self.cursor, now, label)

    def ask(self, label: str) -> None:
        """Ask without typing."""
        self._script.ask(self._uri, self.cursor, label)


def begin(
    files: Sequence[SourceFile], rng: Random, strokes: int, before: int = 0
) -> tuple[Script, SourceFile, int, TypingTarget] | None:
    """Choose a deep function with `before` others in reach above it, and open it."""
    file = rng.choice(files)
    deep = [index for index in deep_functions(file) if index >= before]
    if not deep:
        return None
    index = rng.choice(deep)
    target = target_in(file, file.functions[index], strokes, rng)
    reach = file.lines[file.functions[index - before].first].start
    if target is None or target.start - reach > WINDOW:
        return None
    script = Script(rng)
    script.open(file.uri, file.language, file.data)
    return script, file, index, target
