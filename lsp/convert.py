"""Columns in an editor's units and columns in code points, within one raw line.

Knows the three encodings an editor may negotiate. A column beyond the line means the
line's end and one inside a character means the character's start, so nothing an
editor sends can point outside the text. Does not know documents or line numbers.
"""

from __future__ import annotations

import re
from typing import Literal

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# UTF-8: bytes of the form 10xxxxxx go on with a character.
_CONTINUATION_MASK, _CONTINUATION = 0xC0, 0x80


def index_of_units(line: str, num_units: int, encoding: Encoding) -> int:
    """Tell which code point of `line` a column in the editor's units points at.

    Args:
        line: One line without its line end.
        num_units: The column; anything below zero means the start.
        encoding: What the column counts.

    Returns:
        A code point index in `[0, len(line)]`. Costs time linear in the line.
    """
    if num_units <= 0:
        return 0
    if encoding == "utf-32" or line.isascii():
        return min(num_units, len(line))
    if encoding == "utf-16":
        return _index_of_utf16(line, num_units)
    return _index_of_utf8(line, num_units)


def num_units_of(text: str, encoding: Encoding) -> int:
    """Count the editor's units that `text` takes."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-16":
        return len(text) + len(_ASTRAL.findall(text))
    return len(text.encode("utf-8", "surrogatepass"))


def join_surrogates(text: str) -> str:
    """Make one character of two halves that separate edits brought together."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode(
        "utf-16-le", "surrogatepass"
    )


def _index_of_utf16(line: str, num_units: int) -> int:
    num_astral = 0
    for match in _ASTRAL.finditer(line):
        start_unit = match.start() + num_astral
        if start_unit >= num_units:
            break
        if start_unit + 1 == num_units:
            return match.start()
        num_astral += 1
    return min(num_units - num_astral, len(line))


def _index_of_utf8(line: str, num_units: int) -> int:
    raw = line.encode("utf-8", "surrogatepass")
    end = min(num_units, len(raw))
    while end < len(raw) and raw[end] & _CONTINUATION_MASK == _CONTINUATION:
        end -= 1
    return len(raw[:end].decode("utf-8", "surrogatepass"))
