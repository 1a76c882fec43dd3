"""A vocabulary sorted by bytes: which tokens agree with bytes that must come.

Token healing drops the last token of a prompt and forces its bytes while decoding:
the next token either starts with the bytes that are left or is a first part of them.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from codekv.tokens.tokenizer import Tokenizer

    Ids = NDArray[np.int64]

# More different half words than a day of typing has.
_CACHED = 4096


class Vocabulary:
    """Look-ups by bytes over the tokens that stand for text; thread-safe.

    Arrays are shared between calls and read-only.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Sort the vocabulary; takes a few tenths of a second."""
        pieces = [tokenizer.token_bytes(i) for i in range(tokenizer.vocab_size)]
        order = sorted((i for i, p in enumerate(pieces) if p), key=pieces.__getitem__)
        self.size = tokenizer.vocab_size
        self._sorted = [pieces[i] for i in order]
        self._ids = _frozen(order)
        self._pieces = pieces
        self._cached: Callable[[bytes], Ids] = lru_cache(_CACHED)(self._find)

    def allowed(self, need: bytes) -> Ids:
        """Ids that may come next when the text must go on with `need`; cached."""
        return self._cached(need)

    def starting_with(self, need: bytes) -> Ids:
        """Ids whose bytes start with `need`, in the order of their bytes."""
        first, last = self._range(need)
        return self._ids[first:last]

    def prefixes_of(self, need: bytes) -> Ids:
        """Ids whose bytes are a first part of `need`, shorter than it."""
        found: list[int] = []
        for size in range(1, len(need)):
            part = need[:size]
            at = bisect_left(self._sorted, part)
            while at < len(self._sorted) and self._sorted[at] == part:
                found.append(int(self._ids[at]))
                at += 1
        return _frozen(found)

    def _find(self, need: bytes) -> Ids:
        return _frozen(
            np.concatenate((self.starting_with(need), self.prefixes_of(need)))
        )

    @cached_property
    def has_newline(self) -> NDArray[np.bool_]:
        """By id: whether the token holds a line end."""
        flags = np.fromiter((b"\n" in piece for piece in self._pieces), np.bool_)
        flags.setflags(write=False)
        return flags

    @cached_property
    def newline_ids(self) -> Ids:
        """Ids of the tokens that hold a line end, ascending."""
        return _frozen(np.flatnonzero(self.has_newline))

    def _range(self, need: bytes) -> tuple[int, int]:
        first = bisect_left(self._sorted, need)
        above = need.rstrip(b"\xff")
        if not above:
            return first, len(self._sorted)
        after = above[:-1] + bytes([above[-1] + 1])
        return first, bisect_left(self._sorted, after, first)


def _frozen(ids: object) -> Ids:
    array = np.asarray(ids, dtype=np.int64)
    array.setflags(write=False)
    return array
