"""Bring a live sequence to a prompt: keep, restore, move, compute the rest.

`extend` is the exact way and the slow twin. `Prefill` first fills slots from stored
blocks and live sequences, then computes what is missing and what repairs the joints.
Generators; they yield per chunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.engine.live_sequence import Grade, LiveSequence
from codekv.engine.reuse.extend import NOTHING_AHEAD, ComputedGuess, extend, next_chunk
from codekv.engine.reuse.kv_transfer import move_slots, slice_planes, write_blocks
from codekv.engine.reuse.plan import (
    Gap,
    PrefillRequest,
    Repair,
    ReuseOptions,
    ReusePlan,
    ReuseSpan,
    plan_reuse,
    slots_to_compute,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from codekv.cooperative import Cooperative
    from codekv.engine.reuse.kv_transfer import Planes
    from codekv.engine.sequence_pool import Placement
    from codekv.model.runtime.interface import Logits, Runtime
    from codekv.storage.blockstore import BlockStore

BRIDGE = 16
"""Slots that are computed anew rather than left out between two runs: every run reads
all weights, which takes as long as about twenty tokens more in one run."""

Loaded = tuple["ReuseSpan", "Planes | LiveSequence"]
"""A span and where its keys and values are now."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """How the slots of one answer came to be; `context` is their sum.

    `common` is how long the prompt agreed with the sequence before.
    """

    exact: int = 0
    restored: int = 0
    moved: int = 0
    computed: int = 0
    common: int = 0

    @property
    def context(self) -> int:
        """Number of prompt tokens."""
        return self.exact + self.restored + self.moved + self.computed


class Prefill:
    """Plans and carries out prefills with one runtime and one store."""

    def __init__(
        self,
        runtime: Runtime,
        store: BlockStore,
        move: bool,
        repair: Repair,
        max_unseen: int = 512,
    ) -> None:
        """Use a store.

        Args:
            runtime: Computes what is missing.
            store: Where blocks come from.
            move: Whether slots may be used after another text than their own.
            repair: What is recomputed where slots are moved.
            max_unseen: How many of the tokens before it a moved slot may not have
                seen.
        """
        self._runtime = runtime
        self._store = store
        self.configure(move, repair, max_unseen)

    def configure(self, move: bool, repair: Repair, max_unseen: int) -> None:
        """Change what was given at the start."""
        self._move = move and all(self._runtime.spec.movable)
        self._repair = repair
        self._max_unseen = max_unseen

    def plan(
        self,
        request: PrefillRequest,
        place: Placement,
        sources: Sequence[LiveSequence] = (),
    ) -> ReusePlan:
        """Choose where the slots of a prompt come from; reads no bytes.

        Args:
            request: The prompt.
            place: The sequence that is going to hold it.
            sources: Sequences whose slots may be moved, the most trusted first.
        """
        options = ReuseOptions(self._store, sources, self._move, self._max_unseen)
        return plan_reuse(request, place, options, self._repair)

    def run(
        self,
        seq: LiveSequence,
        plan: ReusePlan,
        repair_level: int = 0,
        guess: Sequence[int] = (),
    ) -> Cooperative[tuple[Tensor, Reuse, ComputedGuess]]:
        """Bring a sequence to a prompt.

        Args:
            seq: Stands as `plan.place` says; changed.
            plan: Made for the sequences as they are now.
            repair_level: How much repair is left out because time is short.
            guess: Tokens that may follow.

        Returns:
            Logits [V] after the last token, where all slots came from, and the guess
            if it was computed.
        """
        tokens, common = plan.request.tokens, plan.place.common
        loaded = [(span, kv) for span in plan.spans if (kv := self._load(span))]
        if loaded:
            slots = plan.computed[repair_level]
            if len(loaded) < len(plan.spans):
                spans = [span for span, _ in loaded]
                repair = self._repair.at_level(repair_level)
                slots = slots_to_compute(plan.request, common, spans, repair)
            logits = yield from self._assemble(seq, tokens, loaded, slots)
            return logits, _count(seq.grades, set(slots), common), NOTHING_AHEAD
        logits, num_computed, ahead = yield from extend(
            self._runtime, seq, tokens, guess=guess
        )
        done = set(range(len(tokens) - num_computed, len(tokens)))
        return logits, _count(seq.grades, done, common), ahead

    def grow(self, seq: LiveSequence, plan: ReusePlan) -> Cooperative[int]:
        """Bring a sequence to a prompt in steps of one layer; for idle time.

        Whole chunks stay when the work is dropped, so that the next try goes on there.

        Returns:
            How many tokens were computed.
        """
        tokens = plan.request.tokens
        loaded = [(span, kv) for span in plan.spans if (kv := self._load(span))]
        spans = [span for span, _ in loaded]
        slots = slots_to_compute(plan.request, plan.place.common, spans, self._repair)
        yield from self._assemble(seq, tokens, loaded, slots, in_steps=True)
        return len(slots)

    def _load(self, span: ReuseSpan) -> Planes | LiveSequence | None:
        if isinstance(span.source, LiveSequence):
            return span.source
        planes = self._store.load(span.source)
        if planes is None:
            return None
        return slice_planes(planes, span.origin, span.origin + span.stop - span.start)

    def _assemble(
        self,
        seq: LiveSequence,
        tokens: Sequence[int],
        loaded: Sequence[Loaded],
        slots: Sequence[int],
        *,
        in_steps: bool = False,
    ) -> Cooperative[Tensor]:
        """Put the spans in place and compute the other slots, up to the last one.

        A slot counts as held only once everything before it is there, so the work
        may be dropped at any yield.

        Args:
            seq: Changed.
            tokens: The prompt.
            loaded: Each span with its keys and values.
            slots: What is computed, ascending; the last slot is among it.
            in_steps: Whether to yield after every layer instead of every chunk.

        Returns:
            Logits [V] after the last token.
        """
        # At once: live sequences that slots come from may be others' after a yield.
        self._place(seq, tokens, loaded)
        yield
        grades = [(Grade.COMPUTED, 0)] * len(tokens)
        for span, _ in loaded:
            for slot in range(span.start, span.stop):
                grades[slot] = span.grade, span.unseen
        for slot in slots:
            grades[slot] = Grade.COMPUTED, 0
        logits: Tensor | None = None
        left = slots
        while left:
            size = next_chunk(len(left))
            group, left = left[:size], left[size:]
            if in_steps:
                logits = yield from self._compute_in_steps(seq, tokens, group)
            else:
                logits = self._compute(seq, tokens, group)
            _advance(seq, tokens, grades, group[-1] + 1)
            yield
        assert logits is not None, "the last slot is always computed"
        seq.logits = {len(tokens) - 1: logits}
        return logits

    def _place(
        self,
        seq: LiveSequence,
        tokens: Sequence[int],
        loaded: Sequence[Loaded],
    ) -> None:
        """Write all spans to their slots; sources are read before `seq` is changed."""
        live = [
            (span.start, span.stop, source, span.origin)
            for span, source in loaded
            if isinstance(source, LiveSequence)
        ]
        stored = [
            (span.start, planes)
            for span, planes in loaded
            if not isinstance(planes, LiveSequence)
        ]
        seq.reserve(len(tokens))
        seq.protect(seq.common_prefix(tokens))
        move_slots(self._runtime, seq, live)
        seq.crop(min(seq.common_prefix(tokens), len(tokens) - 1))
        if stored:
            write_blocks(self._runtime, seq, stored)

    def _compute(
        self, seq: LiveSequence, tokens: Sequence[int], slots: Sequence[int]
    ) -> Tensor | None:
        """Compute some slots; logits [V] if the prompt's last one is among them."""
        part = [tokens[slot] for slot in slots]
        wanted: Logits = "last" if slots[-1] == len(tokens) - 1 else "none"
        if slots[-1] - slots[0] + 1 == len(slots):
            rows = self._runtime.forward(seq.kv, part, slots[0], wanted)
        else:
            rows = self._runtime.forward_scattered(seq.kv, part, slots, wanted)
        return None if rows is None else rows[-1]

    def _compute_in_steps(
        self, seq: LiveSequence, tokens: Sequence[int], slots: Sequence[int]
    ) -> Cooperative[Tensor | None]:
        """As `_compute`, one run of adjacent slots after the other, layer by layer."""
        rows: Tensor | None = None
        for start, stop in _runs(slots):
            wanted: Logits = "last" if stop == len(tokens) else "none"
            rows = yield from self._runtime.forward_in_steps(
                seq.kv, tokens[start:stop], start, wanted
            )
        return None if rows is None else rows[-1]


def _runs(slots: Sequence[int]) -> list[Gap]:
    """Adjacent slots as ranges; short ranges between them are computed as well."""
    runs: list[Gap] = []
    for slot in slots:
        if runs and slot - runs[-1][1] <= BRIDGE:
            runs[-1] = runs[-1][0], slot + 1
        else:
            runs.append((slot, slot + 1))
    return runs


def _advance(
    seq: LiveSequence,
    tokens: Sequence[int],
    grades: Sequence[tuple[Grade, int]],
    stop: int,
) -> None:
    """Count slots up to `stop` as held; what was computed inherits inexactness."""
    for slot in range(len(seq), stop):
        seq.append(tokens[slot : slot + 1], *grades[slot])


def _count(grades: bytes | bytearray, computed: set[int], common: int) -> Reuse:
    """Sort the slots of a prompt by where they came from."""
    kept = [grade for slot, grade in enumerate(grades) if slot not in computed]
    return Reuse(
        exact=kept.count(Grade.COMPUTED),
        restored=kept.count(Grade.RESTORED),
        moved=kept.count(Grade.MOVED),
        computed=len(computed),
        common=common,
    )
