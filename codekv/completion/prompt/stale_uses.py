"""Uses of names whose definition changed: the top rung of the repair ladder.

A moved token that names a function was computed when that function looked otherwise.
Such tokens can be computed anew with the joints. Headers count, not bodies.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from codekv.structure.outline import outlines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from codekv.completion.document import CodeDocument


class Definitions:
    """The headers of each document when its prompt was exact last."""

    def __init__(self) -> None:
        self._known: dict[str, dict[bytes, bytes]] = {}

    def settle(self, document: CodeDocument) -> None:
        """Note that everything was computed with this text."""
        self._known[document.snapshot.uri] = _headers(document)

    def changed(self, document: CodeDocument) -> frozenset[bytes]:
        """Names that are defined otherwise now, or no longer, or newly."""
        known = self._known.get(document.snapshot.uri)
        if known is None:
            return frozenset()
        now = _headers(document)
        return frozenset(
            name
            for name in known.keys() | now.keys()
            if known.get(name) != now.get(name)
        )

    def forget(self, uri: str) -> None:
        """Drop a closed document."""
        self._known.pop(uri, None)


def uses(
    tokens: Sequence[int], token_bytes: Callable[[int], bytes], names: Iterable[bytes]
) -> tuple[int, ...]:
    """Slots of a prompt that hold any of the names, ascending."""
    names = sorted(names)
    if not names:
        return ()
    pieces = [token_bytes(token) for token in tokens]
    ends = list(accumulate(map(len, pieces)))
    pattern = re.compile(
        rb"(?<!\w)(?:" + b"|".join(map(re.escape, names)) + rb")(?!\w)"
    )
    found: set[int] = set()
    for match in pattern.finditer(b"".join(pieces)):
        first = bisect_right(ends, match.start())
        last = bisect_left(ends, match.end())
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def _headers(document: CodeDocument) -> dict[bytes, bytes]:
    return {outline.name: outline.text for outline in outlines(document.tree)}
