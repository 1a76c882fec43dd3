"""Where the slots of a prompt come from: stored blocks, live sequences, computing.

A plan, made of integers and names; reads no bytes and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codekv.engine.live_sequence import Grade
from codekv.engine.reuse.prompt_blocks import PromptBlock, refs_of
from codekv.engine.reuse.shared_spans import NEAR, SharedSpan, find_runs

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from codekv.engine.live_sequence import LiveSequence
    from codekv.storage.blockstore import BlockStore, Hit

FAITHFUL = 128
"""Up to this drift, slots of a live sequence are better than stored ones: they need no
decoding and were never compressed."""

WORTH_RESTORING = 24
"""Below this many missing tokens a look around costs more than it saves."""

Gap = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class ReuseSpan:
    """Prompt slots [start, stop) that need not be computed.

    Attributes:
        source: A stored block, or a live sequence.
        origin: The first slot's index in the source.
        text: What the part was computed in; parts of one text saw each other.
        place: Index of the first slot in that text.
        drift: Tokens before it now that it never saw.
    """

    start: int
    stop: int
    source: Hit | LiveSequence
    origin: int
    grade: Grade
    text: Hashable
    place: int
    drift: int = 0

    def joins(self, last: ReuseSpan | None) -> bool:
        """Whether it stands behind `last` as it did where both come from."""
        return (
            last is not None
            and last.stop == self.start
            and last.text == self.text
            and last.place + last.stop - last.start == self.place
        )


@dataclass(frozen=True, slots=True)
class PrefillRequest:
    """A prompt as prefill sees it.

    Attributes:
        tokens: All of it.
        pieces: Which slots hold which document blocks.
        touched: Slots that use a name whose definition changed lately.
        haste: How many rungs of repair to leave out because time is short.
    """

    tokens: Sequence[int]
    pieces: Sequence[PromptBlock] = ()
    touched: Sequence[int] = ()
    haste: int = 0


@dataclass(frozen=True, slots=True)
class ReuseOptions:
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
        """Less of it: each of at most `MAX_HASTE` rungs down costs less.

        Never nothing: where the start of a part is not repaired, the text before it
        can seem to go on with it, as where it was computed, and the answer copies it.
        """
        if rungs == 0:
            return self
        first = self.first if rungs == 1 else self.first // 2
        return Repair(first, self.last // 4, names=False)


MAX_HASTE = 2

MAX_NAME_SLOTS = 32

SMALL_CHANGE = 4
"""Behind a small change, the start of a part needs this fraction of the repair."""


def find_parts(
    seq: LiveSequence, wanted: PrefillRequest, reach: ReuseOptions
) -> list[ReuseSpan]:
    """Choose parts for the slots that `seq` lacks, ascending; the last slot is none.

    Exact blocks come first, then runs of live sequences that saw nearly the same text,
    then blocks that were computed after another text, then all other runs.
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
    found = _fill(_blocks(exact, Grade.RESTORED), [(common, end)])
    if reach.move:
        runs = find_runs(tokens, _gaps(found, common, end), reach.sequences)
        live = [_of_run(run) for run in runs]
        trusted = min(FAITHFUL, reach.max_drift)
        found += [part for part in live if part.drift <= trusted]
        moved = _fill(_blocks(stored, Grade.MOVED), _gaps(found, common, end))
        known = [piece for piece in pieces if piece.stop <= common]
        known += [piece for piece, _ in stored]
        seen = [replace(part, drift=_unseen(part, known)) for part in moved]
        found += [part for part in seen if part.drift <= reach.max_drift]
        rest = [part for part in live if trusted < part.drift <= reach.max_drift]
        found += _fill(rest, _gaps(found, common, end))
    return sorted(found, key=lambda part: part.start)


def slots_to_compute(
    parts: Sequence[ReuseSpan], common: int, wanted: PrefillRequest, repair: Repair
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
    last: ReuseSpan | None = None
    for part in parts:
        joint = _joint(part, last, repair.first)
        todo.difference_update(range(part.start + joint, part.stop))
        last = part
    if any(part.grade is Grade.MOVED for part in parts):
        todo.update(range(max(common, length - repair.last), length))
        if repair.names:
            todo.update([s for s in wanted.touched if s >= common][-MAX_NAME_SLOTS:])
    return sorted(todo)


def _joint(part: ReuseSpan, last: ReuseSpan | None, first: int) -> int:
    """How many slots at the start of a part do not fit what stands before it."""
    if part.grade is not Grade.MOVED or part.joins(last):
        return 0
    if last is not None and last.text == part.text:
        lost = part.place - (last.place + last.stop - last.start)
        if 0 <= lost <= NEAR and part.start - last.stop <= NEAR:
            first = first // SMALL_CHANGE
    return min(first, part.stop - part.start)


def _gaps(parts: Iterable[ReuseSpan], start: int, stop: int) -> list[Gap]:
    """What `parts` leave free of [start, stop)."""
    found = []
    for part in sorted(parts, key=lambda part: part.start):
        if part.start > start:
            found.append((start, part.start))
        start = max(start, part.stop)
    return [*found, (start, stop)] if start < stop else found


def _blocks(stored: Iterable[tuple[PromptBlock, Hit]], grade: Grade) -> list[ReuseSpan]:
    """Stored blocks where the prompt has them."""
    return [
        ReuseSpan(p.start, p.stop, hit, p.lo, grade, "document", p.place)
        for p, hit in stored
    ]


def _fill(parts: Iterable[ReuseSpan], gaps: Sequence[Gap]) -> list[ReuseSpan]:
    """What of some parts lies in gaps."""
    return [cut for part in parts for gap in gaps if (cut := _clip(part, gap))]


def _clip(part: ReuseSpan, gap: Gap) -> ReuseSpan | None:
    """What of a part lies in a gap."""
    start, stop = max(part.start, gap[0]), min(part.stop, gap[1])
    if start >= stop:
        return None
    by = start - part.start
    origin, place = part.origin + by, part.place + by
    return replace(part, start=start, stop=stop, origin=origin, place=place)


def _unseen(part: ReuseSpan, known: Sequence[PromptBlock]) -> int:
    """How many tokens before a stored block did not stand before it in the document.

    `known` are the pieces that are held or stored: others are new.
    """
    seen = sum(
        min(piece.stop, part.start) - piece.start
        for piece in known
        if piece.start < part.start and piece.place < part.place
    )
    return part.start - seen


def _of_run(run: SharedSpan) -> ReuseSpan:
    source, origin, size = run.source, run.origin, run.stop - run.start
    # What its slots had not seen where they are now, they carry along.
    carried = max(source.drift[origin : origin + size], default=0)
    return ReuseSpan(
        run.start,
        run.stop,
        source,
        origin,
        Grade.MOVED,
        text=id(source),
        place=origin,
        drift=carried + run.start - run.seen,
    )
