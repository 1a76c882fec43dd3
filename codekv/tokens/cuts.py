"""Places where a text can be cut so that its parts are tokenised as the whole is.

Tokenizers split text into words before they merge, and most agree on some places: a
word that starts with a space after a visible character, punctuation after a letter.
Which of them hold is asked of the tokenizer itself, once, on examples; on the others
nothing is ever cut. Both sides of a cut are free of one another, so a long text can be
encoded in pieces, and an edit changes tokens only between the cuts around it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_CANDIDATES = (
    rb"(?<=[!-~])(?= [A-Za-z])",
    rb"(?<=[A-Za-z])(?=[!-&(-/:-@\[-`{-~])",
    rb"(?<=[0-9])(?=[0-9])",
)
"""A visible character before a space and a letter; a letter before punctuation other
than an apostrophe; a digit before a digit."""

LOOK = 2
"""Bytes on either side of a cut that decide whether it is one."""

_LEFTS = (
    b"x",
    b"word",
    b"a_b",
    b"  # It's",
    b"f(x)",
    b"f(x):\n    return",
    b"\n\n\tif",
    b"12",
    b"= 1234567",
    b"a1",
    b"don't",
    b"x \t=",
    b"\xe4\xb8\x96\xe7\x95\x8cab",
    b"!=",
    b"('",
    b"n\n  }",
)
_RIGHTS = (
    b" x",
    b" word",
    b" The end",
    b" not'",
    b" s = 1\n",
    b"(x",
    b"():\n",
    b".name",
    b"_id",
    b"_",
    b", y",
    b'"',
    b"\\n",
    b"// c",
    b"===\n\n",
    b"1",
    b"123",
    b"9 x",
    b"0x1F",
)


class Cuts:
    """Finds cuts in a text; without patterns it finds none."""

    def __init__(self, patterns: Iterable[bytes]) -> None:
        joined = b"|".join(patterns)
        self._pattern = re.compile(joined) if joined else None

    def after(self, data: bytes, at: int) -> int:
        """The first cut at or after `at`; the text's end if there is none."""
        if self._pattern is None or at >= len(data):
            return len(data)
        match = self._pattern.search(data, at)
        return match.start() if match else len(data)

    def before(self, data: bytes, at: int) -> int:
        """The last cut at or before `at`; 0 if there is none."""
        if self._pattern is None:
            return 0
        reach = 64
        end = min(at, len(data))
        while True:
            start = max(0, end - reach)
            # The pattern looks ahead, so the window ends behind the cut.
            window = data[max(0, start - LOOK) : end + LOOK]
            offset = max(0, start - LOOK)
            found = [m.start() + offset for m in self._pattern.finditer(window)]
            usable = [cut for cut in found if start <= cut <= end and cut > 0]
            if usable:
                return usable[-1]
            if start == 0:
                return 0
            reach *= 4

    def pieces(self, data: bytes, size: int) -> list[bytes]:
        """Cut a text into pieces of about `size` bytes, or larger."""
        parts = []
        start = 0
        while start < len(data):
            end = self.after(data, start + size)
            parts.append(data[start:end])
            start = end
        return parts


def find_cuts(encode: Callable[[str], list[int]], pieces: Sequence[bytes]) -> Cuts:
    """Ask a tokenizer where it can be cut.

    Args:
        encode: Tokenises a text in one go.
        pieces: The bytes of every entry, by id; an entry that a text really becomes
            and that reaches over a cut rules that kind of cut out.
    """
    # One search over all entries at once: a zero byte is on no side of any cut.
    joined = b"\0".join(pieces)
    return Cuts(
        pattern
        for pattern in _CANDIDATES
        if _holds(pattern, encode)
        and not any(
            encode(pieces[token].decode(errors="replace")) == [token]
            for token in _crossing(pattern, joined, pieces)
        )
    )


def _holds(pattern: bytes, encode: Callable[[str], list[int]]) -> bool:
    cut = re.compile(pattern)
    for left in _LEFTS:
        for right in _RIGHTS:
            match = cut.search(left + right, len(left))
            if match and match.start() == len(left):
                parts = encode(left.decode()) + encode(right.decode())
                if parts != encode((left + right).decode()):
                    return False
    return True


def _crossing(pattern: bytes, joined: bytes, pieces: Sequence[bytes]) -> set[int]:
    """Ids of the entries that reach over a cut, whether a text becomes them or not."""
    found = [match.start() for match in re.finditer(pattern, joined)]
    if not found:
        return set()
    starts = list(accumulate((len(piece) + 1 for piece in pieces), initial=0))
    return {bisect_right(starts, at) - 1 for at in found}
