"""Bring a live sequence to a prompt: keep, restore, move, compute the rest.

`extend` is the exact way and the slow twin. `Prefill` first fills slots from stored
blocks, then computes what is missing and what repairs the joints (the first tokens
of each moved run, after EPIC, Hu et al. 2024). Generators; they yield per chunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.engine.canonical import Planes, slice_planes, write_blocks
from codekv.engine.extend import CHUNK, Ahead, extend
from codekv.engine.sequence import Grade
from codekv.units import ChainKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from codekv.cache.key import BlockRef
    from codekv.engine.sequence import LiveSequence
    from codekv.engine.worker import Steps
    from codekv.model.runtime import Runtime
    from codekv.storage.blockstore import BlockStore, Hit

NO_PARENT = ChainKey(bytes(16))
"""Parent of whatever stands behind a gap, where nothing is exact."""

WORTH_RESTORING = 24
"""Below this many missing tokens a look into the store costs more than it saves."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Prompt slots [start, stop) that hold tokens of one document block.

    Attributes:
        block: All tokens of that block.
        lo: Index in `block` of the token at `start`.
        number: Place of the block in its document; consecutive pieces with
            consecutive numbers form one run.
    """

    start: int
    stop: int
    block: tuple[int, ...]
    lo: int
    number: int

    @property
    def is_whole(self) -> bool:
        """Whether the piece is its entire block."""
        return self.lo == 0 and self.stop - self.start == len(self.block)


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


@dataclass(frozen=True, slots=True)
class Fill:
    """A stored block chosen for a piece."""

    piece: Piece
    hit: Hit
    grade: Grade


class Prefill:
    """Prefill with stored blocks."""

    def __init__(
        self, runtime: Runtime, store: BlockStore, move: bool, repair: int
    ) -> None:
        """Use a store.

        Args:
            runtime: Computes what is missing.
            store: Where blocks come from.
            move: Whether blocks may be used after another text than their own.
            repair: How many tokens at the start of each moved run are recomputed.
        """
        self._runtime = runtime
        self._store = store
        self.configure(move, repair)

    def configure(self, move: bool, repair: int) -> None:
        """Change what was given at the start."""
        self._move = move and all(self._runtime.spec.movable)
        self._repair = repair

    def run(
        self,
        seq: LiveSequence,
        tokens: Sequence[int],
        pieces: Sequence[Piece],
        guess: Sequence[int] = (),
    ) -> Steps[tuple[Tensor, Reuse, Ahead]]:
        """Bring `seq` to `tokens`; `pieces` say which blocks they come from.

        Returns:
            Logits [V] after the last token, where all slots came from, and the guess
            if it was computed.
        """
        common = seq.common_prefix(tokens)
        fills = self.plan(seq, tokens, pieces)
        parts = [(fill, planes) for fill in fills if (planes := self._load(fill))]
        done: set[int] = set()
        if parts:
            yield
            done = yield from self._assemble(seq, tokens, parts)
        row, computed, ahead = yield from extend(
            self._runtime, seq, tokens, guess=guess
        )
        done.update(range(len(tokens) - computed, len(tokens)))
        reuse = _count(seq.grades, done)
        reuse.common = common
        return row, reuse, ahead

    def plan(
        self, seq: LiveSequence, tokens: Sequence[int], pieces: Sequence[Piece]
    ) -> list[Fill]:
        """Choose stored blocks for the slots that `seq` lacks; reads no bytes."""
        common = seq.common_prefix(tokens)
        if len(tokens) - common < WORTH_RESTORING:
            return []
        wanted = [piece for piece in pieces if piece.stop > common]
        refs = self._refs(tokens, pieces)
        hits = self._store.match([refs[piece.start] for piece in wanted])
        fills = []
        for piece, hit in zip(wanted, hits, strict=True):
            if hit is None:
                continue
            exact = hit.kind == "chain" and piece.is_whole
            if exact or self._move:
                fills.append(Fill(piece, hit, Grade.RESTORED if exact else Grade.MOVED))
        return fills

    def missing(
        self, seq: LiveSequence, tokens: Sequence[int], fills: Sequence[Fill]
    ) -> list[int]:
        """Slots that have to be computed if `fills` are loaded, ascending."""
        common = min(seq.common_prefix(tokens), len(tokens) - 1)
        todo = set(range(common, len(tokens)))
        for fill in fills:
            todo.difference_update(range(fill.piece.start, fill.piece.stop))
        for slot in self._joints(fills, common):
            todo.add(slot)
        todo.add(len(tokens) - 1)
        return sorted(todo)

    def _refs(
        self, tokens: Sequence[int], pieces: Sequence[Piece]
    ) -> dict[int, BlockRef]:
        """A reference per piece's start; the chain starts at the first token."""
        refs: dict[int, BlockRef] = {}
        # What stands before the first whole block is the chain's root, as it is in
        # the chains that idle work computes.
        reached = next((piece.start for piece in pieces if piece.is_whole), -1)
        parent: ChainKey | None = None
        if reached > 0:
            parent = self._store.ref(None, tokens[:reached]).chain
        for piece in pieces:
            if piece.start < reached:
                refs[piece.start] = self._store.ref(NO_PARENT, piece.block)
                continue
            ref = self._store.ref(parent, piece.block)
            refs[piece.start] = ref
            if piece.start == reached and piece.is_whole:
                parent, reached = ref.chain, piece.stop
            else:
                parent, reached = NO_PARENT, -1
        return refs

    def _joints(self, fills: Sequence[Fill], common: int) -> list[int]:
        slots: list[int] = []
        last: Piece | None = None
        for fill in fills:
            piece = fill.piece
            if fill.grade is Grade.MOVED:
                joined = (
                    last is not None
                    and last.stop == piece.start
                    and last.number + 1 == piece.number
                )
                if not joined:
                    start = max(piece.start, common)
                    slots.extend(range(start, min(start + self._repair, piece.stop)))
            last = piece
        return slots

    def _load(self, fill: Fill) -> Planes | None:
        planes = self._store.load(fill.hit)
        if planes is None:
            return None
        lo = fill.piece.lo
        return slice_planes(planes, lo, lo + fill.piece.stop - fill.piece.start)

    def _assemble(
        self,
        seq: LiveSequence,
        tokens: Sequence[int],
        parts: Sequence[tuple[Fill, Planes]],
    ) -> Steps[set[int]]:
        """Write stored planes and compute the gaps up to the last filled slot.

        A slot counts as held only once everything before it is there, so the work
        may be dropped at any yield.

        Returns:
            The slots that were computed.
        """
        fills = [fill for fill, _ in parts]
        todo = self.missing(seq, tokens, fills)
        common = min(seq.common_prefix(tokens), len(tokens) - 1)
        seq.crop(common)
        seq.reserve(len(tokens))
        write_blocks(self._runtime, seq, [_from(common, f, p) for f, p in parts])
        grades = [Grade.COMPUTED] * len(tokens)
        for fill in fills:
            for slot in range(fill.piece.start, fill.piece.stop):
                grades[slot] = fill.grade
        end = max(fill.piece.stop for fill in fills)
        todo = [slot for slot in todo if slot < end]
        for i in range(0, len(todo), CHUNK):
            group = todo[i : i + CHUNK]
            self._compute(seq, tokens, group)
            for slot in group:
                grades[slot] = Grade.COMPUTED
            _advance(seq, tokens, grades, group[-1] + 1)
            yield
        _advance(seq, tokens, grades, end)
        return set(todo)

    def _compute(
        self, seq: LiveSequence, tokens: Sequence[int], slots: Sequence[int]
    ) -> None:
        part = [tokens[slot] for slot in slots]
        if slots[-1] - slots[0] + 1 == len(slots):
            self._runtime.forward(seq.kv, part, slots[0], "none")
        else:
            self._runtime.forward_scattered(seq.kv, part, slots)


def _advance(
    seq: LiveSequence, tokens: Sequence[int], grades: Sequence[Grade], stop: int
) -> None:
    """Count slots up to `stop` as held; what was computed inherits inexactness."""
    for slot in range(len(seq), stop):
        seq.append(tokens[slot : slot + 1], grades[slot])


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


def _from(common: int, fill: Fill, planes: Planes) -> tuple[int, Planes]:
    """Leave out what the sequence already holds."""
    start = fill.piece.start
    if start >= common:
        return start, planes
    return common, slice_planes(planes, common - start, planes[0][0].shape[1])
