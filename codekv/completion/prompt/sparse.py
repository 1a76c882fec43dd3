"""Sparse context: blocks sampled from what lies before the prompt's window.

Off by default. With `kvcache.sparse_interval` = n, every n-th block above the window is
kept, the nearest first; with `kvcache.dynamic_size`, an even sample of them. Both in
what `kvcache.newest_share` leaves of the prefix. Whole blocks, because half a function
misleads and because a block is what the cache can store and find again; a function of
the text alone, so that it is cached like everything else.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from codekv.cache.window import dynamic_blocks, sparse_positions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codekv.completion.prompt.window import Limits

Run = tuple[int, int]
"""Document tokens [start, stop)."""


def newest_room(room: int, limits: Limits) -> int:
    """Most tokens of the window in a prefix of `room` tokens."""
    is_sampled = limits.interval > 0 or limits.dynamic
    return int(room * limits.newest) if is_sampled else room


def sampled_blocks(
    cuts: Sequence[int], window: Run, room: int, limits: Limits
) -> list[Run]:
    """Blocks to put before the window, in order.

    Args:
        cuts: Document tokens at which blocks begin.
        window: Begins and ends at these document tokens.
        room: Most tokens of prefix, the window included.
        limits: How to sample.
    """
    start, stop = window
    bounds = [*(cut for cut in cuts if cut < start), start]
    older = list(pairwise(bounds))
    if not older or not (limits.interval or limits.dynamic):
        return []
    sizes = [hi - lo for lo, hi in older]
    left = room - (stop - start)
    if limits.interval == 0:
        kept = dynamic_blocks([*sizes, stop - start], room, limits.newest)
        return [older[number] for number in kept if number < len(older)]
    found: list[Run] = []
    for number in reversed(sparse_positions(len(older), 0, limits.interval)):
        if sizes[number] > left:
            break
        left -= sizes[number]
        found.append(older[number])
    return found[::-1]
