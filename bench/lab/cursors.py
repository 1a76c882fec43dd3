"""Does a completion change? Greedy text at real cursor positions, exact and restored.

The restored run is checked in one pass: it gives the same text exactly if every token
of the exact text is the likeliest after the tokens before it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.engine.decoding.drafts import NgramIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from bench.lab.context import Exact, Text
    from bench.lab.scheme import Scheme
    from codekv.model.runtime.interface import Runtime
    from codekv.storage.tensors import KVTensors

NUM_GENERATED = 24
"""About two lines of code: what most offers have."""

FIRST_CURSOR = 128
"""Cursors stand behind at least so many tokens."""

_DRAFT = 7
"""A step of 8 tokens costs little more than one of 1 (`docs/design/decode.md`)."""


@dataclass(frozen=True, slots=True)
class LabCursor:
    """A place in a text and the exact model's greedy text there.

    Attributes:
        slot: Tokens before the cursor.
        line: Tokens of `greedy` that belong to the cursor's line, the one with the
            line break included.
    """

    slot: int
    greedy: tuple[int, ...]
    line: int


def places(text: Text, num_places: int) -> list[int]:
    """Random places in a text's context, the last one first."""
    source = random.Random(text.name)
    pool = range(FIRST_CURSOR, text.num_context + 1)
    return sorted(source.sample(pool, min(num_places, len(pool))), reverse=True)


def exact_cursors(
    runtime: Runtime,
    kv: KVTensors,
    case: tuple[Text, Exact],
    ends_line: Callable[[int], bool],
    num_places: int,
) -> list[LabCursor]:
    """Complete at random places; `kv` is **overwritten**.

    Going backwards lets one filled `kv` serve all places: a completion writes only
    to slots behind its cursor.
    """
    text, exact = case
    for layer, (keys, values) in enumerate(exact.cached):
        kv.write(layer, 0, keys, values)
    cursors = []
    for slot in places(text, num_places):
        greedy = _complete(runtime, kv, text.tokens[:slot])
        line = next(
            (i + 1 for i, token in enumerate(greedy) if ends_line(token)), len(greedy)
        )
        cursors.append(LabCursor(slot, greedy, line))
    return cursors


def count_same(
    runtime: Runtime,
    kv: KVTensors,
    case: tuple[Text, Exact],
    scheme: Scheme,
    cursors: Iterable[LabCursor],
) -> tuple[int, int]:
    """Cursors whose whole text, and whose line, a restored context leaves alone.

    Args:
        runtime: The model.
        kv: **Overwritten**.
        case: The text and its exact run.
        scheme: How the context was stored.
        cursors: Of this text, last place first.
    """
    text, exact = case
    scheme.restore(runtime, kv, text, exact)
    whole = lines = 0
    for cursor in cursors:
        tokens = (text.tokens[cursor.slot - 1], *cursor.greedy[:-1])
        logits = runtime.forward(kv, tokens, cursor.slot - 1, "all")
        assert logits is not None
        likeliest = logits.argmax(-1).tolist()
        whole += tuple(likeliest) == cursor.greedy
        lines += tuple(likeliest[: cursor.line]) == cursor.greedy[: cursor.line]
    return whole, lines


def _complete(
    runtime: Runtime, kv: KVTensors, before: Sequence[int]
) -> tuple[int, ...]:
    """Greedy tokens after `before`, whose last token is computed again."""
    index = NgramIndex()
    index.extend(before)
    made: list[int] = []
    while len(made) < NUM_GENERATED:
        room = NUM_GENERATED - len(made) - 1
        draft = index.draft(min(_DRAFT, room)) if room else []
        start = len(index.tokens) - 1
        logits = runtime.forward(kv, [index.tokens[-1], *draft], start, "all")
        assert logits is not None
        likeliest = logits.argmax(-1).tolist()
        num_right = 0
        while num_right < len(draft) and draft[num_right] == likeliest[num_right]:
            num_right += 1
        new = likeliest[: num_right + 1]
        index.extend(new)
        made += new
    return tuple(made)
