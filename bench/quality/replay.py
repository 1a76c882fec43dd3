"""Types real changes again, key by key, and counts what offers would have saved.

A proxy, not a study of people: the person here knows what to write, takes an offer
exactly if the text to come begins with the whole of it, and never tries and deletes
anything. Nobody's offers changed what the author wrote.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from itertools import groupby
from random import Random
from typing import TYPE_CHECKING, Any

from bench.quality.chrf import delta_chrf
from bench.traces.changes import language_of
from codekv.completion.api import Request, Trigger
from codekv.percentiles import percentile, spread
from codekv.text.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
    from pathlib import Path

    from bench.quality.next_line import Answering
    from bench.traces.changes import AuthoredChange, Hunk
    from codekv.completion.api import Completion

MAX_PLACES = 40
"""Questions per change, so that a large change does not weigh more than many small."""

READING_COST = 230 / 170
"""Keystrokes that a new offer costs its reader.

One eye fixation, 230 ms (Card, Moran and Newell 1983, the Model Human Processor), at
the pace of this benchmark's typist, 170 ms a key (`bench.traces.trace.rhythm`).
"""

LEAST_UNDONE = 4
"""Letters and digits of deleted text that an offer must bring back to count as undoing:
shorter ones recur by accident."""


@dataclass(frozen=True, slots=True)
class Typing:
    """A part of a hunk's new text: characters [start, end) are typed."""

    hunk: Hunk
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class KeyOutcome:
    """One question while typing, and what became of its answer.

    Attributes:
        offered: What the answer adds at the cursor; empty if there is none.
        is_new: Whether the person has to read it: it is not what stood there before.
        retained: Leading characters of it that the author wrote as well.
        chrf: See `delta_chrf`; None without an offer.
        score: Mean log probability of the offer's tokens.
    """

    language: str
    offered: str
    is_new: bool
    is_accepted: bool
    is_undoing: bool
    retained: int
    chrf: float | None
    score: float | None
    total_ms: float
    reason: str


@dataclass(frozen=True, slots=True)
class ReplayedChange:
    """One change: how many strokes it takes without offers, and with them.

    Attributes:
        strokes: Keys that type the text without any offer.
        keys: Keys that it took: those typed, and one for each offer accepted.
    """

    repository: str
    name: str
    strokes: int
    keys: int
    outcomes: tuple[KeyOutcome, ...]


async def replayed(
    service: Answering, root: Path, changes: Iterable[AuthoredChange], seed: int
) -> AsyncIterator[ReplayedChange]:
    """Type each change's sampled places in turn; the service must be ready."""
    for change in changes:
        yield await _Typist(service, root, change).play(sampled(change, seed))


def sampled(change: AuthoredChange, seed: int) -> list[Typing]:
    """Choose lines of a change, seeded, until they take about `MAX_PLACES` strokes."""
    lines = [line for hunk in change.hunks for line in _lines(hunk)]
    order = list(range(len(lines)))
    Random(f"{seed}/{change.repository}/{change.name}").shuffle(order)
    chosen, total = set(), 0
    for index in order:
        if total >= MAX_PLACES:
            break
        chosen.add(index)
        line = lines[index]
        total += len(strokes(line.hunk.new[line.start : line.end]))
    return [lines[index] for index in sorted(chosen)]


def strokes(text: str) -> list[str]:
    """Cut a text into keys; the editor indents what follows a line end by itself."""
    found, at = [], 0
    while at < len(text):
        stop = at + 1
        if text[at] == "\n":
            while stop < len(text) and text[stop] in " \t\n":
                stop += 1
        found.append(text[at:stop])
        at = stop
    return found


def _lines(hunk: Hunk) -> Iterator[Typing]:
    """The parts of a hunk that begin where a line's code does and end with it."""
    at = 0
    for line in hunk.new.splitlines(keepends=True):
        start, at = at + len(line) - len(line.lstrip()), at + len(line)
        if line.strip():
            yield Typing(
                hunk, start, at - (line.endswith("\n") and at == len(hunk.new))
            )


class _Typist:
    """Keeps one change's documents as they are while its hunks are typed in order."""

    def __init__(self, service: Answering, root: Path, change: AuthoredChange) -> None:
        self._service, self._root, self._change = service, root, change
        self._texts = dict(change.before)
        self._moved: dict[str, list[tuple[int, int]]] = {p: [] for p in change.before}
        self._version = 0
        self._outcomes: list[KeyOutcome] = []

    async def play(self, parts: Sequence[Typing]) -> ReplayedChange:
        """Type the parts; hunks between them are put in as a whole."""
        total = keys = 0
        by_hunk = {h: list(g) for h, g in groupby(parts, key=lambda part: part.hunk)}
        for hunk in self._change.hunks:
            at = self._place(hunk)
            text = self._texts[hunk.path]
            before, after = text[:at], text[at + len(hunk.old) :]
            reached = 0
            for part in by_hunk.get(hunk, ()):
                if part.start < reached or len(self._outcomes) >= MAX_PLACES:
                    continue
                reached, pressed = await self._type(part, before, after)
                total += len(strokes(hunk.new[part.start : reached]))
                keys += pressed
            self._texts[hunk.path] = before + hunk.new + after
            self._moved[hunk.path].append((hunk.start, len(hunk.new) - len(hunk.old)))
        for path in self._texts:
            self._service.document_closed(self._uri(path))
        return ReplayedChange(
            self._change.repository,
            self._change.name,
            total,
            keys,
            tuple(self._outcomes),
        )

    async def _type(self, part: Typing, before: str, after: str) -> tuple[int, int]:
        """Type one part: where it ended in the new text, and the keys it took."""
        new, at, keys, shown = part.hunk.new, part.start, 0, ""
        while at < part.end and len(self._outcomes) < MAX_PLACES:
            offer, outcome = await self._ask(part.hunk, at, before, after, shown)
            self._outcomes.append(outcome)
            keys += 1
            step = offer if outcome.is_accepted else strokes(new[at:])[0]
            shown = offer.removeprefix(step) if offer.startswith(step) else ""
            at += len(step)
        return at, keys

    async def _ask(
        self, hunk: Hunk, at: int, before: str, after: str, shown: str
    ) -> tuple[str, KeyOutcome]:
        language = language_of(hunk.path) or ""
        head = (before + hunk.new[:at]).encode()
        self._version += 1
        snapshot = Snapshot.from_bytes(
            self._uri(hunk.path), self._version, language, head + after.encode()
        )
        self._service.document_changed(snapshot)
        request = Request(snapshot, len(head), Trigger.AUTOMATIC)
        completion = await self._service.complete(request)
        offer, keeps = added_text(request, completion)
        wanted = hunk.new[at:]
        retained = _common(offer, wanted)
        line = before[before.rfind("\n") + 1 :] + hunk.new[:at]
        outcome = KeyOutcome(
            language,
            offer,
            is_new=bool(offer) and offer != shown,
            is_accepted=bool(offer) and keeps and retained == len(offer),
            is_undoing=_undoes(offer, hunk.old, wanted),
            retained=retained,
            chrf=_chrf(line.rpartition("\n")[2], after, offer, wanted),
            score=completion.items[0].score if offer else None,
            total_ms=completion.timing.total,
            reason=completion.reason,
        )
        return offer, outcome

    def _place(self, hunk: Hunk) -> int:
        """Where a hunk begins now that others have been typed."""
        earlier = (size for start, size in self._moved[hunk.path] if start < hunk.start)
        return hunk.start + sum(earlier)

    def _uri(self, path: str) -> str:
        return (self._root / path).as_uri()


def added_text(request: Request, completion: Completion) -> tuple[str, bool]:
    """What the first item adds at the cursor, and whether it keeps what is there.

    The text behind the cursor that an item takes the place of is no part of what it
    adds, if the item ends with it. An item that does not is read, and not taken.
    """
    if not completion.items:
        return "", True
    item, data = completion.items[0], request.snapshot.data
    typed = data[item.start_byte : request.cursor_byte].decode()
    replaced = data[request.cursor_byte : item.end_byte].decode()
    text = item.text.replace("\r\n", "\n")
    keeps = text.startswith(typed) and text.endswith(replaced)
    added = text.removeprefix(typed)
    return added.removesuffix(replaced) if keeps else added, keeps


def summary(
    found: Sequence[ReplayedChange], reading_cost: float = READING_COST
) -> dict[str, Any]:
    """The figures over all changes, by language too; see `bench/README.md`."""
    outcomes = [outcome for change in found for outcome in change.outcomes]
    total = sum(change.strokes for change in found)
    keys = sum(change.keys for change in found)
    read = reading_cost * sum(outcome.is_new for outcome in outcomes)
    languages = sorted({outcome.language for outcome in outcomes})
    return {
        "changes": len(found),
        "repositories": dict(Counter(change.repository for change in found)),
        "strokes": total,
        "keys": keys,
        "reading_cost": round(reading_cost, 3),
        "saved": round(1 - keys / max(total, 1), 4),
        "saved_net": round(1 - (keys + read) / max(total, 1), 4),
        **offers(outcomes),
        "latency_ms": spread((each.total_ms for each in outcomes), "p50", "p95", "p99"),
        "languages": {
            name: offers([each for each in outcomes if each.language == name])
            for name in languages
        },
        "reasons": dict(Counter(each.reason for each in outcomes if each.reason)),
        "outcomes": [asdict(outcome) for outcome in outcomes],
    }


def offers(outcomes: Sequence[KeyOutcome]) -> dict[str, Any]:
    """What became of the offers that somebody had to read."""
    shown = [outcome for outcome in outcomes if outcome.is_new]
    sizes = sum(len(outcome.offered) for outcome in shown)
    chrf = [outcome.chrf for outcome in shown if outcome.chrf is not None]
    count = max(len(shown), 1)
    return {
        "questions": len(outcomes),
        "shown": len(shown),
        "would_be_accepted": round(sum(o.is_accepted for o in shown) / count, 4),
        "retained": round(sum(o.retained for o in shown) / max(sizes, 1), 4),
        "undone": round(sum(o.is_undoing for o in shown) / count, 4),
        "delta_chrf": round(sum(chrf) / max(len(chrf), 1), 4),
        "offer_length_p50": percentile((len(o.offered) for o in shown), 0.5),
    }


def _common(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    most = min(len(one), len(other))
    return next((at for at, (a, b) in enumerate(pairs) if a != b), most)


def _undoes(offer: str, old: str, wanted: str) -> bool:
    """Whether an offer brings back what the author has just deleted."""
    text = offer.strip()
    is_long = sum(map(str.isalnum, text)) >= LEAST_UNDONE
    return is_long and text in old and not wanted.startswith(offer)


def _chrf(line: str, after: str, offer: str, wanted: str) -> float | None:
    """Compare the cursor's lines with the offer and with as many of the author's."""
    if not offer:
        return None
    num_lines = offer.count("\n") + 1
    rest = after.partition("\n")[0]
    expected = "\n".join(wanted.split("\n")[:num_lines])
    return delta_chrf(line + rest, line + expected + rest, line + offer + rest)
