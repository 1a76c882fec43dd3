"""The engine: bring a sequence to the prompt, decode, remember; and the idle work.

Runs on the worker's thread only. Knows tokens and tensors; no text, no syntax.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from codekv.engine.background.idle import IDLE_CHUNK, Chain, Chains, repair
from codekv.engine.background.importance import weigh
from codekv.engine.decoding.branches import Brancher, Leader, Race, Start, most_likely
from codekv.engine.decoding.candidate import (
    NO_TEXT,
    Candidate,
    DecodeOptions,
    Progress,
    Stop,
)
from codekv.engine.decoding.drafts import DraftPolicy, NgramIndex
from codekv.engine.decoding.greedy import GreedyDecoder, Vocab
from codekv.engine.live_memory import LiveMemory
from codekv.engine.live_sequence import LiveSequence, common_prefix, holding
from codekv.engine.reuse.plan import PrefillRequest, Repair, ReusePlan
from codekv.engine.reuse.prefill import Prefill, Reuse
from codekv.engine.sequence_pool import SequencePool
from codekv.engine.speed import Speed

if TYPE_CHECKING:
    from torch import Tensor

    from codekv.config import KvCacheConfig
    from codekv.cooperative import Cooperative
    from codekv.engine.reuse.extend import ComputedGuess
    from codekv.engine.reuse.prompt_blocks import PromptBlock
    from codekv.engine.sequence_pool import Placement
    from codekv.model.runtime.interface import Runtime
    from codekv.storage.blockstore import BlockStore


T = TypeVar("T")

MAX_GUESS = 12
"""Tokens of the last answer that are computed with the end of a prompt: together they
stay within a step of sixteen, which costs little more than a step of one."""

Choose = Callable[[Sequence[Candidate]], int]
"""Is told several texts; the number of the best one."""


def ignore(_: object) -> None:
    """Follow no work."""


@dataclass(frozen=True, slots=True)
class Task:
    """One prompt to continue.

    Attributes:
        tokens: The prompt.
        blocks: Which of its slots hold which document blocks.
        options: How to decode.
        stop: Is told all bytes behind the forced prefix; True ends the text.
        progress: Is told the tokens decoded so far, wherever the work may be dropped.
        filled: Is told how the prompt's slots came to be, before decoding begins.
        stale_uses: Slots that use a name whose definition changed lately.
        repair_level: How much repair is left out because time is short.
        topic: Its document; slots are moved between prompts of one document only.
        reuse: The plan for its slots; a new one is made if it is missing or outdated.
    """

    tokens: tuple[int, ...]
    blocks: tuple[PromptBlock, ...]
    options: DecodeOptions
    stop: Stop
    progress: Progress = ignore
    filled: Callable[[Reuse], None] = ignore
    stale_uses: tuple[int, ...] = ()
    repair_level: int = 0
    topic: str = ""
    reuse: ReusePlan | None = None

    @property
    def request(self) -> PrefillRequest:
        """The prompt as prefill sees it."""
        return PrefillRequest(self.tokens, self.blocks, self.stale_uses)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a task; times in milliseconds."""

    candidate: Candidate
    reuse: Reuse
    prefill_ms: float = 0.0
    decode_ms: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _Filled:
    """A sequence that holds its prompt.

    Attributes:
        logits: After the last token, [V].
        ahead: What was computed behind it as a guess.
        started: Clock time in seconds at which prefill began.
        ended: The same at its end.
        cpu_ms: Processor time of this thread in between.
    """

    logits: Tensor
    reuse: Reuse
    ahead: ComputedGuess
    started: float
    ended: float
    cpu_ms: float


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
        self.memory = LiveMemory(store, self.pool, self.chains)
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

    def plan(self, task: Task) -> ReusePlan:
        """Choose where the slots of a task's prompt would come from now."""
        place = self._place(task)
        return self.prefill.plan(task.request, place, self._sources(task.topic, place))

    def answer(self, task: Task) -> Cooperative[Outcome]:
        """Compute what the prompt lacks and decode a continuation."""

        def use(seq: LiveSequence, plan: ReusePlan) -> Cooperative[Outcome]:
            guess = task.options.previous[:MAX_GUESS] if task.options.draft else ()
            filled = yield from self._fill(seq, task, plan, guess)
            self._follow(task)
            candidate = yield from self._decoder.decode(
                seq, filled.logits, self._index, task, ahead=filled.ahead
            )
            return self._outcome(candidate, filled)

        return (yield from self._work(lambda: self._take(task, use)))

    def race(
        self, task: Task, starts: Sequence[Start], choose: Choose
    ) -> Cooperative[Outcome]:
        """Answer with the best of several beginnings; plainly if none is likely.

        They are decoded side by side until one is far ahead, which costs a step as a
        rule; what is left then is for `choose`, and the chosen one goes on alone.
        """

        def use(seq: LiveSequence, plan: ReusePlan) -> Cooperative[Outcome]:
            filled = yield from self._fill(seq, task, plan)
            branches = yield from self._brancher.decode(
                seq, filled.logits, starts, task.options, task.stop, Race.among(starts)
            )
            self._follow(task)
            candidate: Candidate = NO_TEXT
            logits: Tensor | None = filled.logits
            if branches:
                texts = [branch.candidate for branch in branches]
                number = choose(texts) if texts[1:] else 0
                candidate, logits = texts[number], branches[number].logits
                self._brancher.keep(seq, branches[number])
                self._index.extend(candidate.tokens)
            if logits is not None:
                candidate = yield from self._decoder.decode(
                    seq, logits, self._index, task, candidate
                )
            return self._outcome(candidate, filled)

        return (yield from self._work(lambda: self._take(task, use)))

    def candidates(
        self, task: Task, count: int, more: Sequence[Start] = ()
    ) -> Cooperative[list[Outcome]]:
        """Decode up to `count` continuations that differ in their first token.

        They share the prompt's slots and grow side by side; the first one is what
        greedy decoding gives, unless the healed word needs several tokens. Those that
        take half as long again are left out; those that begin with `more` come first.
        """

        def use(seq: LiveSequence, plan: ReusePlan) -> Cooperative[list[Outcome]]:
            filled = yield from self._fill(seq, task, plan)
            need = task.options.forced_prefix
            allowed = self._vocab.starting_with(need) if need else None
            likely = most_likely(filled.logits, allowed, count)
            starts = [*more, *(Start((token,)) for token in likely)]
            leader = Leader(len(more)) if likely else None
            branches = yield from self._brancher.decode(
                seq, filled.logits, starts, task.options, task.stop, leader
            )
            if branches:
                self._brancher.keep(seq, branches[0])
            prefill_ms = (filled.ended - filled.started) * 1e3
            decode_ms = (time.perf_counter() - filled.ended) * 1e3
            return [
                Outcome(branch.candidate, filled.reuse, prefill_ms, decode_ms)
                for branch in branches
            ]

        return (yield from self._work(lambda: self._take(task, use)))

    def grow(self, task: Task) -> Cooperative[int]:
        """Idle: bring a live sequence to a prompt as an answer would, layer by layer.

        Returns:
            How many tokens were computed.
        """

        def use(seq: LiveSequence, plan: ReusePlan) -> Cooperative[int]:
            return self.prefill.grow(seq, plan)

        return (yield from holding(lambda: self._take(task, use)))

    def prepare(self, task: Task) -> Cooperative[int]:
        """Idle: bring a live sequence to a prompt, and all of it to exactness."""

        def use(seq: LiveSequence) -> Cooperative[int]:
            computed = yield from repair(
                self.runtime, seq, task.tokens, self.chains.chunk
            )
            if self._weighs:
                yield from weigh(self.runtime, self.store, seq, task.request)
            return computed

        def take() -> tuple[LiveSequence, Cooperative[int]]:
            seq = self._acquire(task, self._place(task))
            return seq, use(seq)

        return (yield from self._work(take))

    def warm(self, chain: Chain) -> Cooperative[int]:
        """Idle: compute and store the blocks of a document before its cursor."""
        warm = self.memory.relieved(lambda: self.chains.warm(chain, self.pool))
        computed = yield from warm
        self.memory.balance()
        return computed

    def warm_far(self, chain: Chain) -> Cooperative[int]:
        """Idle: compute and store blocks elsewhere in a document."""
        warm = self.memory.relieved(lambda: self.chains.warm_far(chain))
        computed = yield from warm
        self.memory.balance()
        return computed

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

    def _outcome(self, candidate: Candidate, filled: _Filled) -> Outcome:
        """Sum up an answer that ends now, and learn from its times."""
        prefill_ms = (filled.ended - filled.started) * 1e3
        self.speed.note_prefill(filled.reuse.computed, prefill_ms, filled.cpu_ms)
        self.chains.ms_per_token = self.speed.ms_for(IDLE_CHUNK) / IDLE_CHUNK
        decode_ms = (time.perf_counter() - filled.ended) * 1e3
        return Outcome(candidate, filled.reuse, prefill_ms, decode_ms)

    def _work(
        self, take: Callable[[], tuple[LiveSequence, Cooperative[T]]]
    ) -> Cooperative[T]:
        """Do work on a sequence, and keep the memory within its budget."""
        result = yield from self.memory.relieved(lambda: holding(take))
        self.memory.balance()
        return result

    def _take(
        self, task: Task, use: Callable[[LiveSequence, ReusePlan], Cooperative[T]]
    ) -> tuple[LiveSequence, Cooperative[T]]:
        """Take the sequence that a task's plan names, and make the work on it."""
        plan = task.reuse
        if plan is None or not plan.is_current or not self.pool.allows(plan.place):
            plan = self.plan(task)
        seq = self._acquire(task, plan.place)
        return seq, use(seq, plan)

    def _place(self, task: Task) -> Placement:
        return self.pool.place(task.tokens, self.chains.sequences())

    def _acquire(self, task: Task, place: Placement) -> LiveSequence:
        seq = self.pool.acquire(place)
        seq.topic = task.topic
        return seq

    def _fill(
        self,
        seq: LiveSequence,
        task: Task,
        plan: ReusePlan,
        guess: Sequence[int] = (),
    ) -> Cooperative[_Filled]:
        task.progress(())
        started, began = time.perf_counter(), time.thread_time()
        # Every kind of answer begins here, and no idle work does.
        self.chains.asked_at = started
        logits, reuse, ahead = yield from self.prefill.run(
            seq, plan, task.repair_level, guess
        )
        task.filled(reuse)
        cpu_ms = (time.thread_time() - began) * 1e3
        return _Filled(logits, reuse, ahead, started, time.perf_counter(), cpu_ms)

    def _follow(self, task: Task) -> None:
        """Bring the n-gram index to the prompt."""
        self._index.sync(task.tokens, common_prefix(self._index.tokens, task.tokens))

    def _sources(self, topic: str, place: Placement) -> list[LiveSequence]:
        """Sequences that slots may be moved from, the most trusted first.

        Only those of the same document: the same words elsewhere mean other things.
        One that is emptied to take the prompt is none.
        """
        chosen = place.sequence
        is_kept = chosen is not None and place.copied is None and place.common > 0
        held = [chosen] if chosen is not None and is_kept else []
        held += [seq for seq in reversed(list(self.pool)) if seq is not chosen]
        held += self.chains.sequences()
        return [seq for seq in held if seq.topic == topic]

    def _new_sequence(self) -> LiveSequence:
        return LiveSequence(self.runtime.new_kv(1024))


def _repair_of(kvcache: KvCacheConfig) -> Repair:
    return Repair(kvcache.repair_tokens, kvcache.repair_tail, kvcache.repair_names)
