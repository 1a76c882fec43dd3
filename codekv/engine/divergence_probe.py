"""How far an answer's reused slots change what the model says: for measurements only.

Runs on the engine's thread and takes seconds: the whole prompt is computed twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from codekv.model.runtime.greedy import go_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from codekv.engine.engine import Engine
    from codekv.engine.live_sequence import LiveSequence
    from codekv.model.runtime.interface import Runtime
    from codekv.storage.tensors import KVTensors

CUTS = ((64, 0), (48, 16))
"""Two ways to cut the same prompt, and how many tokens at its end are computed one by
one, as typing does it: what differs between them is the runtime's noise."""

TEXT_TOKENS = 12
"""Greedy tokens that are compared: about a line."""


@dataclass(frozen=True, slots=True)
class AnswerDivergence:
    """What the model says at a prompt's end, reused against fresh.

    Attributes:
        num_tokens: The prompt's length.
        num_inexact: Slots from the first one on that is not exact.
        kl: Divergence of the fresh next-token distribution from the reused one, nats.
        noise: The same between two fresh ones, cut in two ways.
        same_top: Whether the likeliest token is the same.
        same_text: Whether the greedy text is the same.
        noise_text: Whether it is between the two fresh ones.
    """

    num_tokens: int
    num_inexact: int
    kl: float
    noise: float
    same_top: bool
    same_text: bool
    noise_text: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Prediction:
    """What the model says after a prompt: logits [V], and greedy tokens."""

    logits: Tensor
    text: tuple[int, ...]


class AnswerProbe:
    """Compares the last prompt with a fresh run of it; may look again after idle work.

    A look changes nothing in the engine.
    """

    def __init__(self) -> None:
        self._tokens: list[int] = []
        self._fresh: tuple[_Prediction, ...] = ()

    def look(self, engine: Engine) -> AnswerDivergence | None:
        """Compare what the engine holds now; None if it holds no answered prompt."""
        found = _last(engine)
        if found is None:
            return None
        tokens, seq = found
        runtime = engine.runtime
        if tokens != self._tokens:
            self._fresh = tuple(_compute(runtime, tokens, *cut) for cut in CUTS)
            self._tokens = tokens
        kv = runtime.new_kv(len(tokens) + TEXT_TOKENS)
        kv.copy_slots(seq.kv, 0, len(tokens))
        reused = _predict(runtime, kv, len(tokens), seq.logits[len(tokens) - 1])
        fresh, other = self._fresh
        return AnswerDivergence(
            num_tokens=len(tokens),
            num_inexact=len(tokens) - min(seq.num_exact, len(tokens)),
            kl=_divergence(fresh.logits, reused.logits),
            noise=_divergence(fresh.logits, other.logits),
            same_top=fresh.text[0] == reused.text[0],
            same_text=fresh.text == reused.text,
            noise_text=fresh.text == other.text,
        )


def _last(engine: Engine) -> tuple[list[int], LiveSequence] | None:
    """The prompt that was brought up last; its end is where logits are known."""
    for seq in reversed(list(engine.pool)):
        if seq.logits:
            return seq.tokens[: max(seq.logits) + 1], seq
    return None


def _compute(
    runtime: Runtime, tokens: Sequence[int], chunk: int, single: int
) -> _Prediction:
    kv = runtime.new_kv(len(tokens) + TEXT_TOKENS)
    logits: Tensor | None = None
    last = max(len(tokens) - single, 0)
    starts = [*range(0, last, chunk), *range(last, len(tokens)), len(tokens)]
    for start, stop in pairwise(starts):
        logits = runtime.forward(kv, tokens[start:stop], start, "last")
    assert logits is not None
    return _predict(runtime, kv, len(tokens), logits[-1])


def _predict(runtime: Runtime, kv: KVTensors, slot: int, logits: Tensor) -> _Prediction:
    return _Prediction(logits, tuple(go_on(runtime, kv, slot, logits, TEXT_TOKENS)))


def _divergence(fresh: Tensor, other: Tensor) -> float:
    """Kullback-Leibler divergence of two rows of logits [V], in nats."""
    p, q = fresh.double().log_softmax(-1), other.double().log_softmax(-1)
    return max(float((p.exp() * (p - q)).sum()), 0.0)
