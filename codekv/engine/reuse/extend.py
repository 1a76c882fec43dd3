"""Bring a live sequence to a prompt by computing what it lacks: the exact way.

The slow twin of every other way, and the way for short rests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from codekv.cooperative import Cooperative
    from codekv.engine.live_sequence import LiveSequence
    from codekv.model.runtime.interface import Logits, Runtime

CHUNK = 64
"""Tokens of a step while a user waits; the newest keystroke may have to wait for it."""

FEW = 4
"""Tokens that cost no more in one step than one does."""


@dataclass(frozen=True, slots=True, eq=False)
class ComputedGuess:
    """Guessed tokens that were computed together with the end of a prompt.

    They stand in the slots behind the prompt; `rows` [n, V] are the logits after each.
    """

    tokens: tuple[int, ...] = ()
    rows: Tensor | None = None


NOTHING_AHEAD = ComputedGuess()


def longest(chunk: int = CHUNK) -> int:
    """Tokens of the longest step: half a chunk is not worth a step of its own."""
    return chunk + chunk // 2


def next_chunk(num_left: int, chunk: int = CHUNK) -> int:
    """Size of the next step of a prefill."""
    return num_left if num_left <= longest(chunk) else chunk


def extend(
    runtime: Runtime,
    seq: LiveSequence,
    tokens: Sequence[int],
    chunk: int = CHUNK,
    guess: Sequence[int] = (),
) -> Cooperative[tuple[Tensor, int, ComputedGuess]]:
    """Make `seq` hold exactly `tokens` by computing what it lacks.

    A short rest is computed in one step with `guess`, tokens that may come next, so
    that decoding finds its first draft verified already.

    Returns:
        Logits [V] after the last token, how many tokens were computed, and the guess
        if it was.
    """
    common = seq.common_prefix(tokens)
    known = seq.logits.get(len(tokens) - 1) if common == len(tokens) else None
    if known is not None:
        seq.crop(common)
        return known, 0, NOTHING_AHEAD
    seq.crop(min(common, len(tokens) - 1))
    seq.reserve(len(tokens))
    computed = len(tokens) - len(seq)
    while (size := next_chunk(len(tokens) - len(seq), chunk)) < len(tokens) - len(seq):
        part = tokens[len(seq) : len(seq) + size]
        runtime.forward(seq.kv, part, len(seq), "none")
        seq.append(part)
        yield
    part = [*tokens[len(seq) :]]
    added = list(guess) if len(part) <= FEW else []
    seq.reserve(len(tokens) + len(added))
    # Rows of the output matrix cost time, so they are made only where they are used.
    wanted: Logits = "all" if added else "last"
    logits = runtime.forward(seq.kv, [*part, *added], len(seq), wanted)
    assert logits is not None
    seq.append(part)
    after = logits[len(part) - 1 if added else -1]
    seq.logits = {len(tokens) - 1: after}
    yield
    ahead = ComputedGuess(tuple(added), logits[len(part) :]) if added else NOTHING_AHEAD
    return after, computed, ahead
