"""The loop: bring a sequence to the prompt, decode, remember; and the idle work.

Runs on the worker's thread only. Knows tokens and tensors; no text, no syntax.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from codekv.engine.background.idle import IDLE_CHUNK, Chain, Chains, repair
from codekv.engine.background.importance import weigh
from codekv.engine.decoding.branches import Brancher, Leader, Race, Start, most_likely
from codekv.engine.decoding.drafts import DraftPolicy, NgramIndex
from codekv.engine.decoding.greedy import (
    Decoded,
    DecodeOptions,
    GreedyDecoder,
    Stop,
    Vocab,
)
from codekv.engine.live_sequence import (
    LiveSequence,
    SequencePool,
    common_prefix,
    holding,
    most_common,
)
from codekv.engine.reuse.plan import MAX_HASTE, PrefillRequest, Repair
from codekv.engine.reuse.prefill import Prefill, Reuse
from codekv.engine.speed import Speed

if TYPE_CHECKING:
    from torch import Tensor

    from codekv.config import KvCacheConfig
    from codekv.cooperative import Cooperative
    from codekv.engine.reuse.extend import ComputedGuess
    from codekv.engine.reuse.prompt_blocks import PromptBlock
    from codekv.model.runtime.interface import Runtime
    from codekv.storage.blockstore import BlockStore


T = TypeVar("T")

MAX_GUESS = 12

Choose = Callable[[Sequence[Decoded]], int]
"""Told several texts; the number of the best one."""


@dataclass(frozen=True, slots=True)
class Task:
    """One prompt to continue.

    Attributes:
        tokens: The prompt.
        pieces: Which of its slots hold which document blocks.
        options: How to decode.
        stop: Told all bytes behind the healed word; True ends the text.
        touched: Slots that use a name whose definition changed lately.
        haste: How many rungs of repair to leave out because time is short.
        topic: Its document; slots are moved between prompts of one document only.
    """

    tokens: tuple[int, ...]
    pieces: tuple[PromptBlock, ...]
    options: DecodeOptions
    stop: Stop
    touched: tuple[int, ...] = ()
    haste: int = 0
    topic: str = ""

    @property
    def wanted(self) -> PrefillRequest:
        """The prompt as prefill sees it."""
        return PrefillRequest(self.tokens, self.pieces, self.touched, self.haste)


@dataclass(slots=True)
class Outcome:
    """What came of a task; times in milliseconds."""

    decoded: Decoded
    reuse: Reuse
    prefill_ms: float = 0.0
    decode_ms: float = 0.0


class Engine:
    """One model with its live sequences, chains and stored blocks."""

    def __init__(
        self,
        runtime: Runtime,
        vocab: Vocab,
        token_bytes: Callable[[int], bytes],
        store: BlockStore,
        kvcache: KvCacheConfig,
    ) -> None:
        """Put the parts together.

        Args:
            runtime: The model.
            vocab: Its vocabulary.
            token_bytes: The bytes of a token.
            store: Where blocks are kept.
            kvcache: Sizes and policies.
        """
        self.runtime = runtime
        self.store = store
        self.speed = Speed()
        self.chains = Chains(runtime, store)
        self.pool = SequencePool(self._new_sequence, kvcache.live_documents)
        self.prefill = Prefill(
            runtime,
            store,
            kvcache.reuse == "moved",
            _repair_of(kvcache),
            kvcache.max_drift,
        )
        self._decoder = GreedyDecoder(runtime, vocab, token_bytes, DraftPolicy())
        self._brancher = Brancher(runtime, token_bytes)
        self._vocab = vocab
        self._index = NgramIndex()
        self._weighs = kvcache.purge_strategy.importance == "attention"

    def num_missing(self, task: Task) -> tuple[int, ...]:
        """How many tokens an answer would have to compute, by haste."""
        held = [*self.pool, *self.chains.sequences()]
        best = most_common(held, task.tokens)[0]
        if best is None:
            best = LiveSequence(self.runtime.new_kv(0))
        parts = self.prefill.plan(best, task.wanted, self._others(task.topic))
        ways = [replace(task.wanted, haste=haste) for haste in range(MAX_HASTE + 1)]
        return tuple(len(self.prefill.missing(best, way, parts)) for way in ways)

    def answer(self, task: Task, out: Decoded) -> Cooperative[Outcome]:
        """Compute what the prompt lacks and decode a continuation into `out`."""
        return (yield from self._on(task, lambda seq: self._answer(seq, task, out)))

    def _answer(
        self, seq: LiveSequence, task: Task, out: Decoded
    ) -> Cooperative[Outcome]:
        out.become(Decoded())
        started = time.perf_counter()
        guess = task.options.previous[:MAX_GUESS] if task.options.draft else ()
        row, reuse, ahead = yield from self._fill(seq, task, guess)
        filled = time.perf_counter()
        self._index.sync(task.tokens, common_prefix(self._index.tokens, task.tokens))
        yield from self._decoder.decode(seq, row, self._index, task, out, ahead)
        return self._outcome(out, reuse, started, filled)

    def race(
        self, task: Task, starts: Sequence[Start], choose: Choose, out: Decoded
    ) -> Cooperative[Outcome]:
        """Answer with the best of several beginnings; plainly if none is likely.

        They are decoded side by side until one is far ahead, which costs a step as a
        rule; what is left then is for `choose`, and the chosen one goes on alone.
        """

        def use(seq: LiveSequence) -> Cooperative[Outcome]:
            return self._race(seq, task, starts, choose, out)

        return (yield from self._on(task, use))

    def _race(
        self,
        seq: LiveSequence,
        task: Task,
        starts: Sequence[Start],
        choose: Choose,
        out: Decoded,
    ) -> Cooperative[Outcome]:
        out.become(Decoded())
        started = time.perf_counter()
        row, reuse, _ = yield from self._fill(seq, task)
        filled = time.perf_counter()
        branches = yield from self._brancher.decode(
            seq, row, starts, task.options, task.stop, Race.among(starts)
        )
        self._index.sync(task.tokens, common_prefix(self._index.tokens, task.tokens))
        rest: Tensor | None = row
        if branches:
            number = choose([each.out for each in branches]) if branches[1:] else 0
            self._brancher.keep(seq, branches[number])
            out.become(branches[number].out)
            self._index.extend(out.tokens)
            rest = branches[number].row
        if rest is not None:
            yield from self._decoder.decode(seq, rest, self._index, task, out)
        return self._outcome(out, reuse, started, filled)

    def candidates(
        self, task: Task, count: int, more: Sequence[Start] = ()
    ) -> Cooperative[list[Outcome]]:
        """Decode up to `count` continuations that differ in their first token.

        They share the prompt's slots and grow side by side; the first one is what
        greedy decoding gives, unless the healed word needs several tokens. Those that
        take half as long again are left out; those that begin with `more` come first.
        """

        def use(seq: LiveSequence) -> Cooperative[list[Outcome]]:
            return self._candidates(seq, task, count, more)

        return (yield from self._on(task, use))

    def _candidates(
        self, seq: LiveSequence, task: Task, count: int, more: Sequence[Start]
    ) -> Cooperative[list[Outcome]]:
        started = time.perf_counter()
        row, reuse, _ = yield from self._fill(seq, task)
        filled = time.perf_counter()
        need = task.options.need
        allowed = self._vocab.starting_with(need) if need else None
        likely = most_likely(row, allowed, count)
        starts = [*more, *(Start((token,)) for token in likely)]
        leader = Leader(len(more)) if likely else None
        branches = yield from self._brancher.decode(
            seq, row, starts, task.options, task.stop, leader
        )
        if branches:
            self._brancher.keep(seq, branches[0])
        ended = time.perf_counter()
        return [
            Outcome(branch.out, reuse, (filled - started) * 1e3, (ended - filled) * 1e3)
            for branch in branches
        ]

    def prepare(self, task: Task) -> Cooperative[int]:
        """Idle: bring a live sequence to a prompt, and all of it to exactness."""
        return (yield from self._on(task, lambda seq: self._prepare(seq, task)))

    def _prepare(self, seq: LiveSequence, task: Task) -> Cooperative[int]:
        computed = yield from repair(self.runtime, seq, task.tokens, self.chains.chunk)
        if self._weighs:
            yield from weigh(self.runtime, self.store, seq, task.wanted)
        return computed

    def warm(self, chain: Chain) -> Cooperative[int]:
        """Idle: compute and store the blocks of a document before its cursor."""
        return (yield from self.chains.warm(chain, self.pool))

    def warm_far(self, chain: Chain) -> Cooperative[int]:
        """Idle: compute and store blocks elsewhere in a document."""
        return (yield from self.chains.warm_far(chain))

    def configure(self, kvcache: KvCacheConfig) -> None:
        """Take settings that need no new store."""
        self.prefill.configure(
            kvcache.reuse == "moved", _repair_of(kvcache), kvcache.max_drift
        )

    def forget(self, topic: str) -> None:
        """Free what a closed document holds."""
        self.chains.forget(topic)

    def clear(self) -> None:
        """Forget everything, stored blocks included."""
        self.pool.clear()
        self.chains.clear()
        self.store.clear()

    def _outcome(
        self, out: Decoded, reuse: Reuse, started: float, filled: float
    ) -> Outcome:
        """Sum up an answer that ends now, and learn from its times."""
        prefill_ms = (filled - started) * 1e3
        self.speed.note_prefill(reuse.computed, prefill_ms)
        self.chains.ms_per_token = self.speed.ms_for(IDLE_CHUNK) / IDLE_CHUNK
        return Outcome(out, reuse, prefill_ms, (time.perf_counter() - filled) * 1e3)

    def _on(
        self, task: Task, use: Callable[[LiveSequence], Cooperative[T]]
    ) -> Cooperative[T]:
        """Work on the sequence that has most in common with a task."""

        def take() -> LiveSequence:
            seq = self.pool.acquire(task.tokens, self.chains.sequences())
            seq.topic = task.topic
            return seq

        return holding(take, use)

    def _fill(
        self, seq: LiveSequence, task: Task, guess: Sequence[int] = ()
    ) -> Cooperative[tuple[Tensor, Reuse, ComputedGuess]]:
        # Every kind of answer begins here, and no idle work does.
        self.chains.asked_at = time.perf_counter()
        return self.prefill.run(seq, task.wanted, self._others(task.topic), guess)

    def _others(self, topic: str) -> list[LiveSequence]:
        """Sequences that slots may be moved from, the most trusted first.

        Only those of the same document: the same words elsewhere mean other things.
        """
        held = [*reversed(list(self.pool)), *self.chains.sequences()]
        return [seq for seq in held if seq.topic == topic]

    def _new_sequence(self) -> LiveSequence:
        return LiveSequence(self.runtime.new_kv(1024))


def _repair_of(kvcache: KvCacheConfig) -> Repair:
    return Repair(kvcache.repair_tokens, kvcache.repair_tail, kvcache.repair_names)
