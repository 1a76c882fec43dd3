"""Where the slots of a prompt come from: stored blocks, live sequences, computing.

A plan, made of integers and names; reads no bytes and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codekv.engine.runs import NEAR, Run, find_runs
from codekv.engine.sequence import Grade
from codekv.units import ChainKey

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from codekv.cache.key import BlockRef
    from codekv.engine.sequence import LiveSequence
    from codekv.storage.blockstore import BlockStore, Hit

NO_PARENT = ChainKey(bytes(16))
"""Parent of whatever stands behind a gap, where nothing is exact."""

WORTH_RESTORING = 24
"""Below this many missing tokens a look around costs more than it saves."""

Gap = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Piece:
    """Prompt slots [start, stop) that hold tokens of one document block.

    Attributes:
        block: All tokens of that block.
        lo: Index in `block` of the token at `start`.
        place: Index in the document of the token at `start`.
    """

    start: int
    stop: int
    block: tuple[int, ...]
    lo: int
    place: int

    @property
    def is_whole(self) -> bool:
        """Whether the piece is its entire block."""
        return self.lo == 0 and self.stop - self.start == len(self.block)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Prompt slots [start, stop) that need not be computed.

    Attributes:
        source: A stored block, or a live sequence.
        origin: The first slot's index in the source.
        text: What the part was computed in; parts of one text saw each other.
        place: Index of the first slot in that text.
        seen: How many tokens of the kept prefix it saw.
        drift: Tokens before it now that it never saw; at first those which its
            source had not seen.
    """

    start: int
    stop: int
    source: Hit | LiveSequence
    origin: int
    grade: Grade
    text: Hashable
    place: int
    seen: int = 0
    drift: int = 0

    def joins(self, last: Part | None) -> bool:
        """Whether it stands behind `last` as it did where both come from."""
        return (
            last is not None
            and last.stop == self.start
            and last.text == self.text
            and last.place + last.stop - last.start == self.place
        )


@dataclass(frozen=True, slots=True)
class Wanted:
    """A prompt as prefill sees it.

    Attributes:
        tokens: All of it.
        pieces: Which slots hold which document blocks.
        touched: Slots that use a name whose definition changed lately.
        haste: How many rungs of repair to leave out because time is short.
    """

    tokens: Sequence[int]
    pieces: Sequence[Piece] = ()
    touched: Sequence[int] = ()
    haste: int = 0


@dataclass(frozen=True, slots=True)
class Reach:
    """What may be used for a prompt.

    Attributes:
        store: Stored blocks.
        sequences: Live sequences, the most trusted first.
        move: Whether slots may stand behind another text than their own.
        max_drift: How many tokens a moved slot may not have seen.
    """

    store: BlockStore
    sequences: Sequence[LiveSequence]
    move: bool
    max_drift: int


@dataclass(frozen=True, slots=True)
class Repair:
    """The ladder of what is computed anew where slots are moved.

    Attributes:
        first: Slots at the start of each moved part (EPIC, Hu et al. 2024).
        last: Slots at the end of the prompt, which the answer leans on most.
        names: Whether also uses of names whose definition changed.
    """

    first: int = 16
    last: int = 24
    names: bool = False

    def in_haste(self, rungs: int) -> Repair:
        """Less of it: each of at most `MAX_HASTE` rungs down costs less."""
        if rungs == 0:
            return self
        first = self.first // 4 if rungs == 1 else 0
        return Repair(first, self.last // 2**rungs, names=False)


MAX_HASTE = 2

MAX_NAME_SLOTS = 32

SMALL_CHANGE = 4
"""Behind a small change, the start of a part needs this fraction of the repair."""


def find_parts(seq: LiveSequence, wanted: Wanted, reach: Reach) -> list[Part]:
    """Choose parts for the slots that `seq` lacks, ascending; the last slot is none.

    Exact blocks come first, then whatever live sequences hold, then blocks that were
    computed after another text.
    """
    tokens, pieces = wanted.tokens, wanted.pieces
    common = seq.common_prefix(tokens)
    end = len(tokens) - 1
    if end - common < WORTH_RESTORING:
        return []
    lacking = [piece for piece in pieces if piece.stop > common]
    refs = refs_of(reach.store, tokens, pieces)
    hits = reach.store.match([refs[piece.start] for piece in lacking])
    stored = [(p, h) for p, h in zip(lacking, hits, strict=True) if h is not None]
    exact = [(p, h) for p, h in stored if h.kind == "chain" and p.is_whole]
    before = [(p.place, min(p.stop, common) - p.start) for p in pieces]
    found = _blocks(exact, [(common, end)], Grade.RESTORED, before)
    if reach.move:
        runs = find_runs(tokens, _gaps(found, common, end), reach.sequences)
        found += [_of_run(run, tokens, common) for run in runs]
        found += _blocks(stored, _gaps(found, common, end), Grade.MOVED, before)
    found.sort(key=lambda part: part.start)
    return _within(found, reach.max_drift)


def slots_to_compute(
    parts: Sequence[Part], common: int, wanted: Wanted, repair: Repair
) -> list[int]:
    """Slots to compute once `parts` are in place, ascending.

    Args:
        parts: From `find_parts`.
        common: Slots that the sequence holds already.
        wanted: The prompt.
        repair: What to compute besides the gaps.
    """
    length = len(wanted.tokens)
    repair = repair.in_haste(wanted.haste)
    todo = set(range(min(common, length - 1), length))
    last: Part | None = None
    for part in parts:
        joint = _joint(part, last, repair.first)
        todo.difference_update(range(part.start + joint, part.stop))
        last = part
    if any(part.grade is Grade.MOVED for part in parts):
        todo.update(range(max(common, length - repair.last), length))
        if repair.names:
            todo.update([s for s in wanted.touched if s >= common][-MAX_NAME_SLOTS:])
    return sorted(todo)


def _joint(part: Part, last: Part | None, first: int) -> int:
    """How many slots at the start of a part do not fit what stands before it."""
    if part.grade is not Grade.MOVED or part.joins(last):
        return 0
    if last is not None and last.text == part.text:
        lost = part.place - (last.place + last.stop - last.start)
        if 0 <= lost <= NEAR and part.start - last.stop <= NEAR:
            first = first // SMALL_CHANGE
    return min(first, part.stop - part.start)


def refs_of(
    store: BlockStore, tokens: Sequence[int], pieces: Sequence[Piece]
) -> dict[int, BlockRef]:
    """Name the block of each piece, by the piece's start.

    The chain starts at the first token and ends where a piece is not whole.
    """
    refs: dict[int, BlockRef] = {}
    # What stands before the first whole block is the chain's root, as it is in the
    # chains that idle work computes.
    reached = next((piece.start for piece in pieces if piece.is_whole), -1)
    parent: ChainKey | None = None
    if reached > 0:
        parent = store.ref(None, tokens[:reached]).chain
    for piece in pieces:
        if piece.start < reached:
            refs[piece.start] = store.ref(NO_PARENT, piece.block)
            continue
        # Behind a gap, a marker say, a block does not stand where it was computed.
        follows = piece.start == reached
        ref = store.ref(parent if follows else NO_PARENT, piece.block)
        refs[piece.start] = ref
        if follows and piece.is_whole:
            parent, reached = ref.chain, piece.stop
        else:
            parent, reached = NO_PARENT, -1
    return refs


def _gaps(parts: Iterable[Part], start: int, stop: int) -> list[Gap]:
    """What `parts` leave free of [start, stop)."""
    found = []
    for part in sorted(parts, key=lambda part: part.start):
        if part.start > start:
            found.append((start, part.start))
        start = max(start, part.stop)
    return [*found, (start, stop)] if start < stop else found


def _blocks(
    stored: Iterable[tuple[Piece, Hit]],
    gaps: Iterable[Gap],
    grade: Grade,
    before: Sequence[tuple[int, int]],
) -> list[Part]:
    """Stored blocks, cut to the gaps they can fill.

    `before` are the document's pieces in the kept prefix: places and sizes.
    """
    gaps = list(gaps)
    found = []
    for piece, hit in stored:
        seen = sum(size for place, size in before if size > 0 and place < piece.place)
        for start, stop in gaps:
            lo, hi = max(start, piece.start), min(stop, piece.stop)
            if lo < hi:
                by = lo - piece.start
                origin, place = piece.lo + by, piece.place + by
                part = Part(lo, hi, hit, origin, grade, "document", place, seen)
                found.append(part)
    return found


def _of_run(run: Run, tokens: Sequence[int], common: int) -> Part:
    source, origin, size = run.source, run.origin, run.stop - run.start
    return Part(
        run.start,
        run.stop,
        source,
        origin,
        Grade.MOVED,
        text=id(source),
        place=origin,
        seen=min(common, origin, source.common_prefix(tokens)),
        drift=max(source.drift[origin : origin + size], default=0),
    )


def _within(parts: Sequence[Part], max_drift: int) -> list[Part]:
    """Count what each part has not seen, and leave out what drifted too far."""
    kept: list[Part] = []
    for part in parts:
        if part.grade is Grade.MOVED:
            seen = part.seen + sum(
                other.stop - other.start
                for other in kept
                if other.text == part.text and other.place < part.place
            )
            drift = part.drift + max(part.start - seen, 0)
            if drift > max_drift:
                continue
            kept.append(replace(part, drift=drift))
        else:
            kept.append(part)
    return kept
