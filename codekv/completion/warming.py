"""What idle work computes of a document before anybody asks for it.

Near: from the window's start to the end of the cursor's block, exactly as the next
prompts hold it. Far: every other block that no store knows, nearest the cursor first,
in stretches with some text before them for context. Pure functions of integers and
tokens.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from codekv.engine.background.idle import Chain
from codekv.storage.presets import pin_first
from codekv.structure.classes import token_classes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from codekv.completion.document import CodeDocument

STRETCH = 2048
"""Most tokens of far blocks in one chain, so that attention stays cheap."""

CONTEXT = 512
"""Tokens before a stretch that it is computed behind, at least, where there are."""


@dataclass(frozen=True, slots=True)
class WarmLimit:
    """How much of a document is computed ahead.

    Attributes:
        limit: Most tokens, the nearest to the cursor.
        knows: Tells for runs of tokens whether they are stored already.
    """

    limit: int
    knows: Callable[[Sequence[Sequence[int]]], Sequence[bool]]


Stretch = tuple[int, int, int]
"""Block numbers: context from the first, own blocks from the second to the third."""


def near_chain(
    document: CodeDocument, window: int, token: int, first: Sequence[int], persist: bool
) -> Chain:
    """The window up to the end of the block that holds document token `token`.

    `first` is what stands before the document in a prompt.
    """
    bounds = _bounds(document)
    stop = bounds[min(bisect_right(bounds, token), len(bounds) - 1)]
    own = [cut for cut in bounds if window <= cut <= stop]
    return _chain(document, min(window, stop), own, first, persist)


def far_chains(
    document: CodeDocument,
    token: int,
    first: Sequence[int],
    persist: bool,
    ahead: WarmLimit,
) -> Iterator[Chain]:
    """Chains for the blocks that nobody knows, the nearest to `token` first."""
    bounds = _bounds(document)
    known = ahead.knows(blocks_of(document))
    near = _nearest(bounds, token, ahead.limit)
    missing = [not held and number in near for number, held in enumerate(known)]
    for context, start, stop in stretches(bounds, missing, token):
        own = bounds[start : stop + 1]
        yield _chain(document, bounds[context], own, first, persist)


def blocks_of(document: CodeDocument) -> list[tuple[int, ...]]:
    """The tokens of each of a document's blocks."""
    ids = document.encoding.ids
    return [tuple(ids[lo:hi]) for lo, hi in pairwise(_bounds(document))]


def stretches(
    bounds: Sequence[int], missing: Sequence[bool], token: int
) -> list[Stretch]:
    """Group missing blocks into stretches, the nearest to `token` first.

    Args:
        bounds: Where blocks begin, and the end of the last one.
        missing: Per block.
        token: The cursor.
    """
    found: list[Stretch] = []
    number = 0
    while number < len(missing):
        if not missing[number]:
            number += 1
            continue
        stop = number + 1
        while (
            stop < len(missing)
            and missing[stop]
            and bounds[stop + 1] - bounds[number] <= STRETCH
        ):
            stop += 1
        context = number
        while context > 0 and bounds[number] - bounds[context] < CONTEXT:
            context -= 1
        found.append((context, number, stop))
        number = stop

    def distance(stretch: Stretch) -> int:
        lo, hi = bounds[stretch[1]], bounds[stretch[2]]
        return max(lo - token, token - hi, 0)

    return sorted(found, key=distance)


def _nearest(bounds: Sequence[int], token: int, limit: int) -> set[int]:
    """Numbers of the blocks nearest to `token`, of `limit` tokens together."""

    def distance(number: int) -> int:
        return max(bounds[number] - token, token - bounds[number + 1], 0)

    found: set[int] = set()
    for number in sorted(range(len(bounds) - 1), key=distance):
        limit -= bounds[number + 1] - bounds[number]
        if limit < 0:
            break
        found.add(number)
    return found


def _bounds(document: CodeDocument) -> list[int]:
    return [*document.cuts, len(document.encoding.ids)]


def _chain(
    document: CodeDocument,
    begin: int,
    own: Sequence[int],
    first: Sequence[int],
    persist: bool,
) -> Chain:
    """Tokens from `begin` on as a chain with blocks between the borders `own`."""
    ids = document.encoding.ids
    stop = own[-1] if own else begin
    classes = token_classes(document.tree, document.encoding.ends)[begin:stop]
    return Chain(
        document.snapshot.uri,
        (*first, *ids[begin:stop]),
        tuple(cut - begin + len(first) for cut in own),
        pin_first(bytes(len(first)) + classes),
        persist,
    )
