"""Which tokens or blocks of a long context stay: pure functions over counts.

Two named techniques. *Sparse sampling* keeps everything recent and every n-th of what
is older. *Dynamic size* keeps a fixed number: the newest share whole, the rest
sampled evenly. Both keep the very first token, on which attention leans
(StreamingLLM, Xiao et al., 2024).
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from codekv.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


def sparse_positions(num_tokens: int, num_recent: int, interval: int) -> list[int]:
    """Keep the last `num_recent` tokens and every `interval`-th before them.

    An interval of 0 or 1 keeps everything.

    Returns:
        Positions that stay, ascending.
    """
    _check_counts(num_tokens, num_recent, interval)
    older = max(num_tokens - num_recent, 0)
    return [*range(0, older, max(interval, 1)), *range(older, num_tokens)]


def dynamic_blocks(
    sizes: Sequence[int], max_length: int, newest_share: float = 0.8
) -> list[int]:
    """Keep blocks of together `max_length` tokens; `sizes` are in tokens.

    The newest blocks stay while they fit into the newest share; of the older ones an
    even sample stays, as many as fit into what is left.

    Returns:
        Indices of blocks that stay, ascending; at most `max_length` tokens together.
    """
    _check_counts(max_length, *sizes)
    if sum(sizes) <= max_length:
        return list(range(len(sizes)))
    newest = _newest(max_length, newest_share)
    num_recent = sum(total <= newest for total in accumulate(reversed(sizes)))
    older = len(sizes) - num_recent
    room = max_length - sum(sizes[older:])
    # The largest even sample that fits; sampling fewer is not always smaller, so the
    # sizes are tried one after the other.
    for num_sampled in range(older, 0, -1):
        sample = _sample(older, num_sampled)
        if sum(sizes[i] for i in sample) <= room:
            return [*sample, *range(older, len(sizes))]
    return list(range(older, len(sizes)))


def _newest(max_length: int, newest_share: float) -> int:
    if not 0.0 < newest_share <= 1.0:
        raise UsageError(f"the newest share must be in (0, 1], got {newest_share}")
    return int(max_length * newest_share)


def _sample(num_items: int, num_sampled: int) -> list[int]:
    """Spread `num_sampled` indices evenly over `num_items`, the first included."""
    return [i * num_items // num_sampled for i in range(num_sampled)]


def _check_counts(*counts: int) -> None:
    if min(counts, default=0) < 0:
        raise UsageError(f"counts of tokens cannot be negative, got {counts}")
