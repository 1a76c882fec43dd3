"""Where the slots of a prompt come from: stored blocks, live sequences, computing.

A plan, made of integers and names; making it reads no bytes and changes nothing. The
planner makes it to learn what an answer would cost, and prefill carries it out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codekv.engine.live_sequence import Grade, LiveSequence
from codekv.engine.reuse.prompt_blocks import PromptBlock, refs_of
from codekv.engine.reuse.shared_spans import NEAR, SharedSpan, find_shared_spans

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from codekv.engine.sequence_pool import Placement
    from codekv.storage.blockstore import BlockStore, Hit

FAITHFUL = 128
"""Up to so many unseen tokens, slots of a live sequence are better than stored ones:
they need no decoding and were never compressed."""

WORTH_RESTORING = 24
"""Below this many missing tokens a look around costs more than it saves."""

Gap = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class ReuseSpan:
    """Prompt slots [start, stop) that need not be computed.

    Attributes:
        source: A stored block, or a live sequence.
        origin: The first slot's index in the source.
        text: What the span was computed in; spans of one text saw each other.
        place: Index of the first slot in that text.
        unseen: Tokens that stand before it now and did not when it was computed.
    """

    start: int
    stop: int
    source: Hit | LiveSequence
    origin: int
    grade: Grade
    text: Hashable
    place: int
    unseen: int = 0

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
        blocks: Which slots hold which document blocks.
        stale_uses: Slots that use a name whose definition changed lately.
    """

    tokens: Sequence[int]
    blocks: Sequence[PromptBlock] = ()
    stale_uses: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class ReuseOptions:
    """What may be used for a prompt.

    Attributes:
        store: Stored blocks.
        sequences: Live sequences, the most trusted first.
        move: Whether slots may stand behind another text than their own.
        max_unseen: How many of the tokens before it a moved slot may not have seen.
    """

    store: BlockStore
    sequences: Sequence[LiveSequence]
    move: bool
    max_unseen: int


@dataclass(frozen=True, slots=True)
class Repair:
    """What is computed anew where slots are moved.

    Attributes:
        first: Slots at the start of each moved span (EPIC, Hu et al. 2024).
        last: Slots at the end of the prompt, which the answer leans on most.
        names: Whether also uses of names whose definition changed.
    """

    first: int = 16
    last: int = 24
    names: bool = False

    def at_level(self, level: int) -> Repair:
        """Less of it: each level up to `MAX_REPAIR_LEVEL` costs less than the last.

        Never nothing: where the start of a span is not repaired, the text before it
        can seem to go on with it, as where it was computed, and the answer copies it.
        """
        if level == 0:
            return self
        first = self.first if level == 1 else self.first // 2
        return Repair(first, self.last // 4, names=False)


# Full repair, half of it, none: the budget asks for no finer choice.
MAX_REPAIR_LEVEL = 2

REPAIR_LEVELS = range(MAX_REPAIR_LEVEL + 1)

MAX_NAME_SLOTS = 32
"""More uses than this cost about as much as a step of their own, which a user would
wait for; the nearest to the cursor count."""

SMALL_CHANGE = 4
"""Behind a small change, the start of a span needs this fraction of the repair."""


@dataclass(frozen=True, slots=True, eq=False)
class ReusePlan:
    """How a live sequence comes to hold a prompt.

    Attributes:
        request: The prompt.
        place: The sequence that is taken, and what it has in common with the prompt.
        spans: What is put behind the common part; ascending, without overlap.
        computed: By repair level, the slots that are computed; ascending.
        versions: What the plan rests on, as it was when the plan was made.
    """

    request: PrefillRequest
    place: Placement
    spans: tuple[ReuseSpan, ...]
    computed: tuple[tuple[int, ...], ...]
    versions: tuple[tuple[LiveSequence, int], ...] = ()

    @property
    def num_computed(self) -> tuple[int, ...]:
        """How many tokens an answer has to compute, by repair level."""
        return tuple(map(len, self.computed))

    @property
    def is_current(self) -> bool:
        """Whether no sequence that it names has changed since it was made.

        Stored blocks may vanish all the same: prefill computes what it cannot load.
        """
        return all(seq.version == version for seq, version in self.versions)


def plan_reuse(
    request: PrefillRequest, place: Placement, options: ReuseOptions, repair: Repair
) -> ReusePlan:
    """Plan a prompt for the sequence that is going to hold it.

    Args:
        request: The prompt.
        place: From `SequencePool.place`.
        options: Where slots may come from.
        repair: What is computed besides the gaps, where there is all the time needed.
    """
    spans = find_spans(request, place.common, options)
    computed = [
        slots_to_compute(request, place.common, spans, repair.at_level(level))
        for level in REPAIR_LEVELS
    ]
    sources = [span.source for span in spans if isinstance(span.source, LiveSequence)]
    named = [place.sequence, place.copied, *sources]
    versions = {id(seq): (seq, seq.version) for seq in named if seq is not None}
    return ReusePlan(
        request, place, tuple(spans), tuple(computed), tuple(versions.values())
    )


def find_spans(
    request: PrefillRequest, common: int, options: ReuseOptions
) -> list[ReuseSpan]:
    """Choose spans for the slots from `common` on, ascending; the last slot is in none.

    Exact blocks come first, then spans of live sequences that saw nearly the same
    text, then blocks that were computed after another text, then all other spans.
    """
    tokens, blocks = request.tokens, request.blocks
    end = len(tokens) - 1
    if end - common < WORTH_RESTORING:
        return []
    lacking = [block for block in blocks if block.stop > common]
    refs = refs_of(options.store, tokens, blocks)
    hits = options.store.match([refs[block.start] for block in lacking])
    stored = [(b, h) for b, h in zip(lacking, hits, strict=True) if h is not None]
    exact = [(b, h) for b, h in stored if h.kind == "chain" and b.is_whole]
    found = _fill(_of_blocks(exact, Grade.RESTORED), [(common, end)])
    if options.move:
        gaps = _gaps(found, common, end)
        shared = find_shared_spans(tokens, gaps, options.sequences)
        live = [_of_shared(span) for span in shared]
        trusted = min(FAITHFUL, options.max_unseen)
        found += [span for span in live if span.unseen <= trusted]
        moved = _fill(_of_blocks(stored, Grade.MOVED), _gaps(found, common, end))
        known = [block for block in blocks if block.stop <= common]
        known += [block for block, _ in stored]
        counted = [replace(span, unseen=_unseen(span, known)) for span in moved]
        found += [span for span in counted if span.unseen <= options.max_unseen]
        rest = [span for span in live if trusted < span.unseen <= options.max_unseen]
        found += _fill(rest, _gaps(found, common, end))
    return sorted(found, key=lambda span: span.start)


def slots_to_compute(
    request: PrefillRequest, common: int, spans: Sequence[ReuseSpan], repair: Repair
) -> tuple[int, ...]:
    """Slots to compute once `spans` are in place, ascending.

    Args:
        request: The prompt.
        common: Slots that the sequence holds already.
        spans: From `find_spans`.
        repair: What to compute besides the gaps.
    """
    length = len(request.tokens)
    todo = set(range(min(common, length - 1), length))
    last: ReuseSpan | None = None
    for span in spans:
        joint = _joint(span, last, repair.first)
        todo.difference_update(range(span.start + joint, span.stop))
        last = span
    if any(span.grade is Grade.MOVED for span in spans):
        todo.update(range(max(common, length - repair.last), length))
        if repair.names:
            uses = [slot for slot in request.stale_uses if slot >= common]
            todo.update(uses[-MAX_NAME_SLOTS:])
    return tuple(sorted(todo))


def _joint(span: ReuseSpan, last: ReuseSpan | None, first: int) -> int:
    """How many slots at the start of a span do not fit what stands before it."""
    if span.grade is not Grade.MOVED or span.joins(last):
        return 0
    if last is not None and last.text == span.text:
        lost = span.place - (last.place + last.stop - last.start)
        if 0 <= lost <= NEAR and span.start - last.stop <= NEAR:
            first = first // SMALL_CHANGE
    return min(first, span.stop - span.start)


def _gaps(spans: Iterable[ReuseSpan], start: int, stop: int) -> list[Gap]:
    """What `spans` leave free of [start, stop)."""
    found = []
    for span in sorted(spans, key=lambda span: span.start):
        if span.start > start:
            found.append((start, span.start))
        start = max(start, span.stop)
    return [*found, (start, stop)] if start < stop else found


def _of_blocks(
    stored: Iterable[tuple[PromptBlock, Hit]], grade: Grade
) -> list[ReuseSpan]:
    """Stored blocks where the prompt has them."""
    return [
        ReuseSpan(b.start, b.stop, hit, b.lo, grade, "document", b.place)
        for b, hit in stored
    ]


def _fill(spans: Iterable[ReuseSpan], gaps: Sequence[Gap]) -> list[ReuseSpan]:
    """Those stretches of some spans that lie in gaps."""
    return [cut for span in spans for gap in gaps if (cut := _clip(span, gap))]


def _clip(span: ReuseSpan, gap: Gap) -> ReuseSpan | None:
    """The stretch of a span that lies in a gap."""
    start, stop = max(span.start, gap[0]), min(span.stop, gap[1])
    if start >= stop:
        return None
    by = start - span.start
    origin, place = span.origin + by, span.place + by
    return replace(span, start=start, stop=stop, origin=origin, place=place)


def _unseen(span: ReuseSpan, known: Sequence[PromptBlock]) -> int:
    """How many tokens before a stored block did not stand before it in the document.

    Args:
        span: The stored block.
        known: Blocks that are held or stored; all others are new.
    """
    seen = sum(
        min(block.stop, span.start) - block.start
        for block in known
        if block.start < span.start and block.place < span.place
    )
    return span.start - seen


def _of_shared(shared: SharedSpan) -> ReuseSpan:
    source, origin = shared.source, shared.origin
    size = shared.stop - shared.start
    # Tokens that its slots did not see at their present place stay unseen at the next.
    before = max(source.unseen_tokens[origin : origin + size], default=0)
    return ReuseSpan(
        shared.start,
        shared.stop,
        source,
        origin,
        Grade.MOVED,
        text=id(source),
        place=origin,
        unseen=before + shared.start - shared.seen,
    )
