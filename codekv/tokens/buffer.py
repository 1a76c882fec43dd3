"""The tokens of a whole document, kept up to date edit by edit.

Only the stretch between the cuts around an edit is tokenised again (`cuts.py`); the
result equals a full tokenisation.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from codekv.cooperative import Cooperative, finish
from codekv.text.edit import Edit, Revision, edit_of
from codekv.tokens.cuts import LOOK, Cuts
from codekv.tokens.tokenizer import Encoding

if TYPE_CHECKING:
    from codekv.tokens.tokenizer import Tokenizer

_PIECE_BYTES = 1 << 13
"""Some 2,500 tokens, which take about 3 ms on a laptop's core."""


class TokenBuffer:
    """One document's tokens; not thread-safe.

    Attributes:
        num_encoded_bytes: How many bytes the last update tokenised.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Begin with an empty text.

        Args:
            tokenizer: One that does not say where it can be cut (`cuts`) has every
                text tokenised as a whole.
        """
        self._tokenizer = tokenizer
        self._cuts: Cuts = getattr(tokenizer, "cuts", Cuts(()))
        self._data = b""
        self._encoding = Encoding((), ())
        # Lists are spliced in place; a tuple would copy every token several times.
        self._ids: list[int] = []
        self._ends: list[int] = []
        self.num_encoded_bytes = 0

    def update(self, data: bytes) -> Encoding:
        """Tokenise the document's new content; cheap if little of it changed."""
        return finish(self.update_in_steps(data))

    def update_in_steps(
        self, data: bytes, revision: Revision | None = None
    ) -> Cooperative[Encoding]:
        """Tokenise as `update`, set aside after every few kilobytes.

        Args:
            data: The new content.
            revision: From the content before to this one, if it is known already.
        """
        while (edit := edit_of(revision, self._data, data)) is not None:
            known = self._data
            start, end, shift = _stretch(edit, data, self._cuts)
            ids: list[int] = []
            ends: list[int] = []
            at = start
            for piece in self._cuts.pieces(data[start:end], _PIECE_BYTES):
                if at > start:
                    yield
                fresh = self._tokenizer.encode(piece)
                ids += fresh.ids
                ends += [at + stop for stop in fresh.ends]
                at += len(piece)
            # Other work may have brought the buffer to another text meanwhile.
            if self._data is known:
                self.num_encoded_bytes = end - start
                found = Encoding(tuple(ids), tuple(ends))
                return self._splice(data, (start, end, shift), found)
        self.num_encoded_bytes = 0
        return self._encoding

    def _splice(
        self, data: bytes, stretch: tuple[int, int, int], fresh: Encoding
    ) -> Encoding:
        """Put fresh tokens in place of those of a stretch."""
        start, end, shift = stretch
        # Cuts are ends of tokens in both texts, so both searches are exact.
        head = bisect_right(self._ends, start)
        tail = bisect_right(self._ends, end - shift)
        if shift:
            behind = np.array(self._ends[tail:], dtype=np.int64)
            self._ends[tail:] = (behind + shift).tolist()
        self._ends[head:tail] = fresh.ends
        self._ids[head:tail] = fresh.ids
        self._data = data
        self._encoding = Encoding(tuple(self._ids), tuple(self._ends))
        return self._encoding


def _stretch(edit: Edit, new: bytes, cuts: Cuts) -> tuple[int, int, int]:
    """Bytes [start, end) of `new` to tokenise, and how far what follows has moved.

    A cut before the edit must see the same bytes in both texts on its right, a cut
    after it on its left.
    """
    head = edit.start_byte
    start = cuts.before(new, head - LOOK) if head > LOOK else 0
    # A cut at the very end of the text is one in both.
    end = cuts.after(new, edit.new_end_byte + LOOK)
    return start, end, edit.shift
