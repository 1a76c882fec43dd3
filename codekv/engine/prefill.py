"""Bring a live sequence to a prompt: reuse, restore, move, compute the rest.

The plan is integers only and can be tested without a model; carrying it out is a
generator that yields after every chunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torch import Tensor

    from codekv.engine.sequence import LiveSequence
    from codekv.engine.worker import Steps
    from codekv.model.runtime import Runtime

CHUNK = 64
IDLE_CHUNK = 64


@dataclass(slots=True)
class Reuse:
    """How the slots of one answer came to be; `context` is their sum."""

    exact: int = 0
    restored: int = 0
    moved: int = 0
    computed: int = 0

    @property
    def context(self) -> int:
        """Number of prompt tokens."""
        return self.exact + self.restored + self.moved + self.computed


def extend(
    runtime: Runtime, seq: LiveSequence, tokens: Sequence[int], chunk: int = CHUNK
) -> Steps[tuple[Tensor, int]]:
    """Make `seq` hold exactly `tokens` by computing what it lacks; nothing approximate.

    The slow twin of every other way, and the way for short rests.

    Returns:
        Logits [V] after the last token, and how many tokens were computed.
    """
    common = seq.common_prefix(tokens)
    known = seq.logits.get(len(tokens) - 1) if common == len(tokens) else None
    if known is not None:
        seq.crop(common)
        return known, 0
    seq.crop(min(common, len(tokens) - 1))
    seq.reserve(len(tokens))
    computed = len(tokens) - len(seq)
    row: Tensor | None = None
    while len(seq) < len(tokens):
        part = tokens[len(seq) : len(seq) + chunk]
        last = len(seq) + len(part) == len(tokens)
        logits = runtime.forward(seq.kv, part, len(seq), "last" if last else "none")
        seq.append(part)
        if last:
            assert logits is not None
            row = logits[-1]
        yield
    assert row is not None
    seq.logits = {len(tokens) - 1: row}
    return row, computed


def scattered_runs(slots: Iterable[int], chunk: int = CHUNK) -> list[list[int]]:
    """Cut ascending slots into groups of at most `chunk`."""
    ordered = sorted(slots)
    return [ordered[i : i + chunk] for i in range(0, len(ordered), chunk)]
