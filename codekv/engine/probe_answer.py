"""How far an answer's reused slots bend what the model says: for measurements only.

Runs on the engine's thread and takes seconds: the whole prompt is computed twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from codekv.engine.engine import Engine
    from codekv.engine.sequence import LiveSequence

CUTS = ((64, 0), (48, 16))
"""Two ways to cut the same prompt, and how many tokens at its end are computed one by
one, as typing does it: what differs between them is the runtime's noise."""


@dataclass(frozen=True, slots=True)
class Drift:
    """The next-token distribution at a prompt's end, reused against fresh.

    Attributes:
        num_tokens: The prompt's length.
        num_inexact: Slots from the first one on that is not exact.
        kl: Divergence of the fresh distribution from the reused one, in nats.
        noise: The same between two fresh ones, cut in two ways.
        same_top: Whether the likeliest token is the same.
    """

    num_tokens: int
    num_inexact: int
    kl: float
    noise: float
    same_top: bool


class AnswerProbe:
    """Compares the last prompt with a fresh run of it; may look again after idle work.

    A look changes nothing in the engine.
    """

    def __init__(self) -> None:
        self._tokens: list[int] = []
        self._fresh: tuple[Tensor, ...] = ()

    def look(self, engine: Engine) -> Drift | None:
        """Compare what the engine holds now; None if it holds no answered prompt."""
        found = _last(engine)
        if found is None:
            return None
        tokens, seq = found
        if tokens != self._tokens:
            self._fresh = tuple(_compute(engine, tokens, *cut) for cut in CUTS)
            self._tokens = tokens
        reused = seq.logits[len(tokens) - 1]
        fresh, other = self._fresh
        return Drift(
            num_tokens=len(tokens),
            num_inexact=len(tokens) - min(seq.num_exact, len(tokens)),
            kl=_divergence(fresh, reused),
            noise=_divergence(fresh, other),
            same_top=int(fresh.argmax()) == int(reused.argmax()),
        )


def _last(engine: Engine) -> tuple[list[int], LiveSequence] | None:
    """The prompt that was brought up last; its end is where logits are known."""
    for seq in reversed(list(engine.pool)):
        if seq.logits:
            return seq.tokens[: max(seq.logits) + 1], seq
    return None


def _compute(engine: Engine, tokens: list[int], chunk: int, single: int) -> Tensor:
    runtime = engine.runtime
    kv = runtime.new_kv(len(tokens))
    row: Tensor | None = None
    last = max(len(tokens) - single, 0)
    starts = [*range(0, last, chunk), *range(last, len(tokens)), len(tokens)]
    for start, stop in pairwise(starts):
        row = runtime.forward(kv, tokens[start:stop], start, "last")
    assert row is not None
    return row[-1]


def _divergence(fresh: Tensor, other: Tensor) -> float:
    """Kullback-Leibler divergence of two rows of logits [V], in nats."""
    p, q = fresh.double().log_softmax(-1), other.double().log_softmax(-1)
    return max(float((p.exp() * (p - q)).sum()), 0.0)
