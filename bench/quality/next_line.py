"""Asks at cursors in real files and judges the answers.

One question per cursor, as a keystroke would ask it, without the time limit that
shortens prompts: what is judged is the text, not the machine.
"""

from __future__ import annotations

import ast
import difflib
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from bench.quality.calibrate import calibration, confidence
from bench.quality.faults import KINDS as FAULTS
from bench.quality.faults import faults, taken
from codekv.completion.api import Completion, Request, Trigger
from codekv.percentiles import percentile
from codekv.structure.errors import num_errors
from codekv.structure.parser import Parser
from codekv.text.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from bench.traces.cursors import Cursor


class Answering(Protocol):
    """The part of a completion service that is judged."""

    def document_changed(self, snapshot: Snapshot) -> None:
        """Take a document's text."""

    def document_closed(self, uri: str) -> None:
        """Forget a document."""

    async def complete(self, request: Request) -> Completion:
        """Answer."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One answer beside what the author wrote.

    Attributes:
        indented: The first line begins with the author's white space.
        parses: The document with the answer is no more broken than the author's.
        faults: See `bench.quality.faults`.
        filters: The trimming filters that changed the answer.
    """

    kind: str
    place: str
    wanted: str
    text: str
    exact: bool
    similarity: float
    indented: bool
    parses: bool
    faults: tuple[str, ...]
    filters: tuple[str, ...]
    confidence: float | None
    total_ms: float
    reason: str


async def judged(
    service: Answering, cursors: Iterable[Cursor]
) -> AsyncIterator[Judged]:
    """Ask at each cursor in turn; the service must be ready."""
    for version, cursor in enumerate(cursors):
        snapshot = Snapshot(cursor.uri, version, cursor.language, cursor.data)
        service.document_changed(snapshot)
        request = Request(snapshot, cursor.cursor_byte, Trigger.AUTOMATIC)
        yield judge(cursor, await service.complete(request))


def judge(cursor: Cursor, completion: Completion) -> Judged:
    """Hold one answer against what the author wrote."""
    item = completion.items[0] if completion.items else None
    wanted = cursor.wanted.decode(errors="replace")
    text = completion.text
    if item is not None:
        # Closers that the item takes the place of are no part of the answer.
        replaced = cursor.data[cursor.cursor_byte : item.end_byte].decode()
        text = text.removesuffix(replaced) if replaced else text
    is_similar = difflib.SequenceMatcher(None, text, wanted, autojunk=False)
    is_indented = bool(text.strip()) and _lead(text) == _lead(wanted)
    return Judged(
        cursor.kind,
        f"{cursor.uri.rsplit('/', 1)[-1]}:{cursor.cursor_byte}",
        wanted,
        text,
        exact=bool(text) and text.rstrip() == wanted.rstrip(),
        similarity=is_similar.ratio(),
        indented=is_indented,
        parses=item is None or _parses(cursor, taken(cursor, item)),
        faults=() if item is None else faults(cursor, item),
        filters=completion.filters,
        confidence=confidence(completion),
        total_ms=completion.timing.total,
        reason=completion.reason,
    )


def summary(outcomes: Sequence[Judged]) -> dict[str, Any]:
    """Rates over all cursors; latencies are those of this machine."""
    count = max(len(outcomes), 1)
    return {
        "rows": len(outcomes),
        "exact_match": sum(o.exact for o in outcomes) / count,
        "edit_similarity": sum(o.similarity for o in outcomes) / count,
        "indentation": sum(o.indented for o in outcomes) / count,
        "parses": sum(o.parses for o in outcomes) / count,
        "empty": sum(not o.text for o in outcomes) / count,
        "latency_ms_p50": percentile((o.total_ms for o in outcomes), 0.5) or 0.0,
        "calibration": calibration((o.confidence, o.exact) for o in outcomes),
        "outcomes": [asdict(outcome) for outcome in outcomes],
    }


def fault_summary(outcomes: Sequence[Judged]) -> dict[str, Any]:
    """How often each fault occurred and how often each filter changed something."""
    count = max(len(outcomes), 1)
    seen = Counter(name for outcome in outcomes for name in outcome.faults)
    changed = Counter(name for outcome in outcomes for name in outcome.filters)
    kinds = Counter(outcome.kind for outcome in outcomes)
    return {
        "rows": len(outcomes),
        "offered": sum(bool(outcome.text) for outcome in outcomes),
        "kinds": dict(kinds),
        "faults": {name: seen[name] for name in FAULTS},
        "changed": sum(bool(outcome.filters) for outcome in outcomes) / count,
        "filters": {name: number / count for name, number in changed.most_common()},
        "parses": sum(outcome.parses for outcome in outcomes) / count,
        "faulty": [asdict(outcome) for outcome in outcomes if outcome.faults],
        "outcomes": [asdict(outcome) for outcome in outcomes],
    }


def _lead(text: str) -> str:
    return text[: len(text) - len(text.lstrip(" \t"))]


def _parses(cursor: Cursor, after: bytes) -> bool:
    """Whether a document is no more broken than the author's.

    Python's own parser sees indentation that tree-sitter forgives.
    """
    if cursor.language == "python" and _is_python(cursor.whole):
        return _is_python(after)
    return _errors(cursor, after) <= _errors(cursor, cursor.whole)


def _is_python(data: bytes) -> bool:
    try:
        ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _errors(cursor: Cursor, data: bytes) -> int:
    snapshot = Snapshot(cursor.uri, 0, cursor.language, data)
    return num_errors(Parser().parse(snapshot, None))
