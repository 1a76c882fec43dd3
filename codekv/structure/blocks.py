"""Segments and tokens to blocks: which runs of tokens are cached as one.

The rule works on integers alone: where segments, statements and tokens end.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from codekv.structure.split import NO_SPLITS, Splits, splits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from codekv.structure.parser import SyntaxTree
    from codekv.structure.segment import Segment

# Each block's first tokens are repaired when it moves: smaller ones gain little.
MIN_TOKENS = 32

Block = tuple[int, int]


def blocks_of(
    tree: SyntaxTree,
    found: Sequence[Segment],
    token_ends: Sequence[int],
    chunk_size: int,
) -> list[Block]:
    """Cut a tokenised buffer into blocks at its segments' borders."""
    return blocks(found, token_ends, chunk_size, lambda s: splits(tree, s))


def blocks(
    found: Sequence[Segment],
    token_ends: Sequence[int],
    chunk_size: int,
    splits_of: Callable[[Segment], Splits] = lambda _: NO_SPLITS,
) -> list[Block]:
    """Cut tokens into blocks `(first, one past the last)` of at most `chunk_size`.

    Args:
        found: Segments that tile the text.
        token_ends: Byte offset at which each token ends; tokens tile the text. A
            token that straddles a border falls behind it.
        chunk_size: The longest block, in tokens.
        splits_of: Where a segment may be split; asked only for those too long.

    Returns:
        Blocks that tile the tokens. Pieces of fewer than 32 tokens are joined with
        the following one, or at the end with the one before, where that fits.
    """
    pieces: list[Block] = []
    start = 0
    for number, segment in enumerate(found):
        end = len(token_ends)
        if number < len(found) - 1:
            end = max(start, bisect_right(token_ends, segment.end_byte, start))
        if end - start > chunk_size:
            cutter = _Cutter(token_ends, segment.start_byte, splits_of(segment))
            pieces += cutter.cut((start, end), chunk_size)
        elif end > start:
            pieces.append((start, end))
        start = end
    if start < len(token_ends):
        cutter = _Cutter(token_ends, 0, NO_SPLITS)
        pieces += cutter.cut((start, len(token_ends)), chunk_size)
    return _join(pieces, chunk_size)


class _Cutter:
    """Cuts one segment's tokens where it may be split."""

    def __init__(self, token_ends: Sequence[int], base: int, where: Splits) -> None:
        self._token_ends = token_ends
        self._base = base
        self._where = where

    def cut(self, piece: Block, size: int) -> list[Block]:
        """Cut at the best place of the second half of each block."""
        start, end = piece
        keep = min(MIN_TOKENS, size // 2)
        pieces = []
        while end - start > size:
            latest = min(start + size, end - keep)
            cut = self._best(start + (size + 1) // 2, latest)
            pieces.append((start, cut))
            start = cut
        return [*pieces, (start, end)]

    def _best(self, first: int, last: int) -> int:
        """The token at which to cut, between two tokens, both included."""
        starts, ranks = self._where.starts, self._where.ranks
        low = bisect_left(starts, self._token_ends[first - 1] - self._base)
        high = bisect_right(starts, self._token_ends[last - 1] - self._base)
        if low == high:
            return last
        # Among lines that are all alike the last one makes the longest block.
        best = min(range(low, high), key=ranks.__getitem__) if ranks else high - 1
        token = bisect_right(self._token_ends, self._base + starts[best])
        return min(max(token, first), last)


def _join(pieces: list[Block], size: int) -> list[Block]:
    """Join tiny pieces with their neighbours."""
    least = min(MIN_TOKENS, size // 2)
    joined: list[Block] = []
    for start, end in pieces:
        if joined:
            first, last = joined[-1]
            if last - first < least and end - first <= size:
                joined[-1] = (first, end)
                continue
        joined.append((start, end))
    if len(joined) > 1:
        (first, _), (start, end) = joined[-2:]
        if end - start < least and end - first <= size:
            joined[-2:] = [(first, end)]
    return joined
