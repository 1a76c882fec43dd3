"""The loop: bring a sequence to the prompt, decode, remember.

Runs on the worker's thread only. Knows tokens and tensors; no text, no syntax.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codekv.engine.decode import Decoded, DecodeOptions, Decoder, Stop, Vocab
from codekv.engine.draft import DraftPolicy, NgramIndex
from codekv.engine.prefill import Reuse, extend
from codekv.engine.sequence import LiveSequence, SequencePool, common_prefix

if TYPE_CHECKING:
    from codekv.engine.worker import Steps
    from codekv.model.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Task:
    """One prompt to continue."""

    tokens: tuple[int, ...]
    options: DecodeOptions
    stop: Stop


@dataclass(slots=True)
class Outcome:
    """What came of a task; times in milliseconds."""

    decoded: Decoded
    reuse: Reuse
    prefill_ms: float = 0.0
    decode_ms: float = 0.0
    ttft_ms: float = 0.0


@dataclass(eq=False)
class Engine:
    """One model with its live sequences."""

    runtime: Runtime
    vocab: Vocab
    live: int = 4
    capacity: int = 1024
    policy: DraftPolicy = field(default_factory=DraftPolicy)

    def __post_init__(self) -> None:
        self.pool = SequencePool(self._new_sequence, self.live)
        self.decoder = Decoder(self.runtime, self.vocab, self.policy)
        self._index = NgramIndex()

    def answer(self, task: Task) -> Steps[Outcome]:
        """Compute what the prompt lacks and decode a continuation."""
        started = time.perf_counter()
        seq = self.pool.acquire(task.tokens)
        row, computed = yield from extend(self.runtime, seq, task.tokens)
        reuse = Reuse(exact=len(seq) - computed, computed=computed)
        self._index.sync(task.tokens, common_prefix(self._index.tokens, task.tokens))
        filled = time.perf_counter()
        decoded = yield from self.decoder.decode(
            seq, row, self._index, task.options, task.stop
        )
        ended = time.perf_counter()
        return Outcome(
            decoded,
            reuse,
            prefill_ms=(filled - started) * 1e3,
            decode_ms=(ended - filled) * 1e3,
            ttft_ms=(filled - started) * 1e3,
        )

    def clear(self) -> None:
        """Forget every live sequence."""
        self.pool.clear()

    def _new_sequence(self) -> LiveSequence:
        return LiveSequence(self.runtime.new_kv(self.capacity))
