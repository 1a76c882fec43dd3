"""Segments and tokens to blocks: which runs of tokens are cached as one.

The rule works on integers alone: where segments, statements and tokens end.
"""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

from codekv.structure.segment import split_points

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from codekv.structure.parser import SyntaxTree
    from codekv.structure.segment import Segment, SplitPoint

MIN_TOKENS = 32

Block = tuple[int, int]


def blocks_of(
    tree: SyntaxTree,
    found: Sequence[Segment],
    token_ends: Sequence[int],
    chunk_size: int,
) -> list[Block]:
    """Cut a tokenised buffer into blocks at its segments' borders."""
    return blocks(found, token_ends, chunk_size, lambda s: split_points(tree, s))


def blocks(
    found: Sequence[Segment],
    token_ends: Sequence[int],
    chunk_size: int,
    points: Callable[[Segment], Sequence[SplitPoint]] = lambda _: (),
) -> list[Block]:
    """Cut tokens into blocks `(first, one past the last)` of at most `chunk_size`.

    Args:
        found: Segments that tile the text.
        token_ends: Byte offset at which each token ends; tokens tile the text. A
            token that straddles a border falls behind it.
        chunk_size: The longest block, in tokens.
        points: Where a segment may be split; asked only for those that are too long.

    Returns:
        Blocks that tile the tokens. Pieces of fewer than 32 tokens are joined with
        the following one, or at the end with the one before, where that fits.
    """
    pieces: list[Block] = []
    start = 0
    for number, segment in enumerate(found):
        is_last = number == len(found) - 1
        end = len(token_ends)
        if not is_last:
            end = max(start, bisect.bisect_right(token_ends, segment.end_byte))
        if end - start > chunk_size:
            cuts = _token_points(points(segment), token_ends)
            pieces += _split((start, end), chunk_size, cuts)
        elif end > start:
            pieces.append((start, end))
        start = end
    if start < len(token_ends):
        pieces += _split((start, len(token_ends)), chunk_size, [])
    return _join(pieces, chunk_size)


def _token_points(
    points: Sequence[SplitPoint], token_ends: Sequence[int]
) -> list[tuple[int, tuple[int, int]]]:
    """Split points as (first token behind the split, rank)."""
    return [(bisect.bisect_right(token_ends, p.byte), p.rank) for p in points]


def _split(
    piece: Block, size: int, points: list[tuple[int, tuple[int, int]]]
) -> list[Block]:
    """Cut a long piece at the best point of the second half of each block."""
    start, end = piece
    keep = min(MIN_TOKENS, size // 2)
    pieces = []
    while end - start > size:
        latest = min(start + size, end - keep)
        low = bisect.bisect_left(points, (start + (size + 1) // 2,))
        high = bisect.bisect_right(points, (latest, (1 << 62, 0)))
        inside = points[low:high]
        cut = min(inside, key=lambda p: p[1])[0] if inside else latest
        pieces.append((start, cut))
        start = cut
    return [*pieces, (start, end)]


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
