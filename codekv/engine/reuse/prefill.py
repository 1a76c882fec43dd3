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
    PrefillRequest,
    Repair,
    ReuseOptions,
    ReuseSpan,
    find_parts,
    slots_to_compute,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from codekv.cooperative import Cooperative
    from codekv.engine.reuse.kv_transfer import Planes
    from codekv.model.runtime.interface import Logits, Runtime
    from codekv.storage.blockstore import BlockStore


@dataclass(slots=True)
class Reuse:
    """How the slots of one answer came to be; `context` is their sum.

    `common` is how long the prompt agreed with what the sequence held before.
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
    """Prefill with whatever is at hand."""

    def __init__(
        self,
        runtime: Runtime,
        store: BlockStore,
        move: bool,
        repair: Repair,
        max_drift: int = 512,
    ) -> None:
        """Use a store.

        Args:
            runtime: Computes what is missing.
            store: Where blocks come from.
            move: Whether slots may be used after another text than their own.
            repair: What is recomputed where slots are moved.
            max_drift: How many tokens a moved slot may not have seen.
        """
        self._runtime = runtime
        self._store = store
        self.configure(move, repair, max_drift)

    def configure(self, move: bool, repair: Repair, max_drift: int) -> None:
        """Change what was given at the start."""
        self._move = move and all(self._runtime.spec.movable)
        self._repair = repair
        self._max_drift = max_drift

    def run(
        self,
        seq: LiveSequence,
        wanted: PrefillRequest,
        others: Sequence[LiveSequence] = (),
        guess: Sequence[int] = (),
    ) -> Cooperative[tuple[Tensor, Reuse, ComputedGuess]]:
        """Bring `seq` to a prompt.

        Args:
            seq: Changed.
            wanted: The prompt.
            others: Sequences whose slots may be moved here, the most trusted first.
            guess: Tokens that may follow.

        Returns:
            Logits [V] after the last token, where all slots came from, and the guess
            if it was computed.
        """
        tokens = wanted.tokens
        common = seq.common_prefix(tokens)
        parts = self.plan(seq, wanted, others)
        loaded = [(part, planes) for part in parts if (planes := self._load(part))]
        if loaded:
            row, done = yield from self._assemble(seq, wanted, loaded)
            ahead = NOTHING_AHEAD
        else:
            row, computed, ahead = yield from extend(
                self._runtime, seq, tokens, guess=guess
            )
            done = set(range(len(tokens) - computed, len(tokens)))
        reuse = _count(seq.grades, done)
        reuse.common = common
        return row, reuse, ahead

    def plan(
        self,
        seq: LiveSequence,
        wanted: PrefillRequest,
        others: Sequence[LiveSequence] = (),
    ) -> list[ReuseSpan]:
        """Choose parts for the slots that `seq` lacks; reads no bytes."""
        reach = ReuseOptions(self._store, others, self._move, self._max_drift)
        return find_parts(seq, wanted, reach)

    def missing(
        self, seq: LiveSequence, wanted: PrefillRequest, parts: Sequence[ReuseSpan]
    ) -> list[int]:
        """Slots that have to be computed if `parts` are used, ascending."""
        common = seq.common_prefix(wanted.tokens)
        return slots_to_compute(parts, common, wanted, self._repair)

    def _load(self, part: ReuseSpan) -> Planes | LiveSequence | None:
        if isinstance(part.source, LiveSequence):
            return part.source
        planes = self._store.load(part.source)
        if planes is None:
            return None
        return slice_planes(planes, part.origin, part.origin + part.stop - part.start)

    def _assemble(
        self,
        seq: LiveSequence,
        wanted: PrefillRequest,
        loaded: Sequence[tuple[ReuseSpan, Planes | LiveSequence]],
    ) -> Cooperative[tuple[Tensor, set[int]]]:
        """Put the parts in place and compute the gaps, up to the last slot.

        A slot counts as held only once everything before it is there, so the work
        may be dropped at any yield.

        Returns:
            Logits [V] after the last token, and the slots that were computed.
        """
        tokens = wanted.tokens
        parts = [part for part, _ in loaded]
        todo = self.missing(seq, wanted, parts)
        # At once: live sequences that slots come from may be others' after a yield.
        self._place(seq, tokens, loaded)
        yield
        grades = [(Grade.COMPUTED, 0)] * len(tokens)
        for part in parts:
            for slot in range(part.start, part.stop):
                grades[slot] = part.grade, part.drift
        for slot in todo:
            grades[slot] = Grade.COMPUTED, 0
        row: Tensor | None = None
        left = todo
        while left:
            size = next_chunk(len(left))
            group, left = left[:size], left[size:]
            row = self._compute(seq, tokens, group)
            _advance(seq, tokens, grades, group[-1] + 1)
            yield
        assert row is not None, "the last slot is always computed"
        seq.logits = {len(tokens) - 1: row}
        return row, set(todo)

    def _place(
        self,
        seq: LiveSequence,
        tokens: Sequence[int],
        loaded: Sequence[tuple[ReuseSpan, Planes | LiveSequence]],
    ) -> None:
        """Write all parts to their slots; sources are read before `seq` is changed."""
        live = [
            (part.start, part.stop, source, part.origin)
            for part, source in loaded
            if isinstance(source, LiveSequence)
        ]
        stored = [
            (part.start, planes)
            for part, planes in loaded
            if not isinstance(planes, LiveSequence)
        ]
        seq.reserve(len(tokens))
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


def _advance(
    seq: LiveSequence,
    tokens: Sequence[int],
    grades: Sequence[tuple[Grade, int]],
    stop: int,
) -> None:
    """Count slots up to `stop` as held; what was computed inherits inexactness."""
    for slot in range(len(seq), stop):
        seq.append(tokens[slot : slot + 1], *grades[slot])


def _count(grades: bytes | bytearray, computed: set[int]) -> Reuse:
    reuse = Reuse(computed=len(computed))
    for slot, grade in enumerate(grades):
        if slot in computed:
            continue
        if grade == Grade.COMPUTED:
            reuse.exact += 1
        elif grade == Grade.RESTORED:
            reuse.restored += 1
        else:
            reuse.moved += 1
    return reuse
