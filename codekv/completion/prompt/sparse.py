"""Sparse context: lines sampled from what lies before the prompt's window.

Off by default. With `kvcache.sparse_interval` = n, every n-th line above the window
is kept, the nearest first, in what `kvcache.newest_share` leaves of the prefix. Whole
lines, because half a line misleads; a function of the text alone, so that it is
cached like everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codekv.cache.window import sparse_positions

if TYPE_CHECKING:
    from codekv.tokens.tokenizer import Encoding


def sampled_lines(
    data: bytes, encoding: Encoding, window: int, room: int, interval: int
) -> list[tuple[int, int]]:
    """Runs of tokens to put before the window, in order.

    Args:
        data: The document.
        encoding: Its tokens.
        window: Document token at which the window begins.
        room: Most tokens of all runs together.
        interval: Every how many lines one is kept.
    """
    if interval <= 0 or window == 0 or room <= 0:
        return []
    starts = [0]
    for token in range(1, window):
        end = encoding.ends[token - 1]
        if data[end - 1 : end] == b"\n":
            starts.append(token)
    stops = [*starts[1:], window]
    kept: list[tuple[int, int]] = []
    for line in reversed(sparse_positions(len(starts), 0, interval)):
        size = stops[line] - starts[line]
        if size > room:
            break
        room -= size
        kept.append((starts[line], stops[line]))
    return kept[::-1]
