"""HumanEval-Infilling through the completion service, as a user would meet it.

Bavarian et al., Efficient Training of Language Models to Fill in the Middle, 2022.
`cached` types the text before the cursor in three bursts and asks at each, so that
the last answer stands on reused keys and values; `fresh` opens the document once and
asks once.
"""

from __future__ import annotations

import ast
import difflib
import gzip
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from bench.quality.calibrate import calibration, confidence
from bench.quality.sandbox import passes
from codekv.completion.api import Completion, Request, Trigger
from codekv.errors import UsageError
from codekv.percentiles import percentile
from codekv.text.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from bench.quality.next_line import Answering

Mode = Literal["cached", "fresh"]
BURSTS = 3
"""The text before the cursor comes in so many parts, so that the last stands on
reused slots."""


@dataclass(frozen=True, slots=True)
class Row:
    """One hole in a program."""

    task_id: str
    entry_point: str
    prompt: str
    suffix: str
    solution: str
    test: str

    @property
    def is_line(self) -> bool:
        """Whether the hole is whole lines, so that an editor shows an empty line."""
        return self.prompt.endswith("\n") and self.solution.endswith("\n")

    @property
    def below(self) -> str:
        """What stands after the cursor in the editor."""
        return "\n" + self.suffix if self.is_line else self.suffix


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """One answered row."""

    task_id: str
    text: str
    exact: bool
    similarity: float
    parses: bool
    passed: bool
    total_ms: float
    computed: int
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class InfilledText:
    """What was offered for a row, and what it took."""

    text: str
    total_ms: float = 0.0
    computed: int = 0
    confidence: float | None = None


def read_rows(path: Path, limit: int | None = None) -> list[Row]:
    """Read a dataset file.

    Raises:
        UsageError: It is not one.
    """
    rows: list[Row] = []
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                if limit is not None and len(rows) >= limit:
                    break
                rows.append(_row(json.loads(line)))
    except (OSError, EOFError, ValueError, KeyError) as error:
        line = f"{path} is not a HumanEval-Infilling .jsonl.gz file ({error})"
        raise UsageError(line) from error
    return rows


def _row(values: dict[str, Any]) -> Row:
    return Row(
        values["task_id"],
        values["entry_point"],
        values["prompt"],
        values["suffix"],
        values["canonical_solution"],
        values["test"],
    )


async def evaluate(
    service: Answering, rows: Sequence[Row], mode: Mode
) -> AsyncIterator[RowOutcome]:
    """Answer and score rows in order; the service must be ready."""
    for number, row in enumerate(rows):
        uri = f"eval:/row{number}.py"
        answer = await _answer(service, row, uri, mode)
        service.document_closed(uri)
        yield score(row, answer)


def score(row: Row, answer: InfilledText) -> RowOutcome:
    """Judge the text offered for a row."""
    text = answer.text
    wanted = row.solution.rstrip("\n") if row.is_line else row.solution
    program = row.prompt + text + row.below
    return RowOutcome(
        row.task_id,
        text,
        exact=text.rstrip() == wanted.rstrip(),
        similarity=difflib.SequenceMatcher(None, text, wanted, autojunk=False).ratio(),
        parses=_parses(program),
        passed=passes(f"{program}\n{row.test}\ncheck({row.entry_point})\n"),
        total_ms=answer.total_ms,
        computed=answer.computed,
        confidence=answer.confidence,
    )


def summary(outcomes: Sequence[RowOutcome], mode: Mode) -> dict[str, Any]:
    """The scores under the names that `eval infilling --json` promises."""
    count = max(len(outcomes), 1)
    return {
        "rows": len(outcomes),
        "mode": mode,
        "exact_match": sum(o.exact for o in outcomes) / count,
        "edit_similarity": sum(o.similarity for o in outcomes) / count,
        "pass_at_1": sum(o.passed for o in outcomes) / count,
        "does_not_parse": sum(not o.parses for o in outcomes) / count,
        "empty": sum(not o.text for o in outcomes) / count,
        "latency_ms_p50": percentile((o.total_ms for o in outcomes), 0.5) or 0.0,
        "calibration": calibration((o.confidence, o.exact) for o in outcomes),
        "outcomes": [asdict(outcome) for outcome in outcomes],
    }


async def _answer(service: Answering, row: Row, uri: str, mode: Mode) -> InfilledText:
    ends = [len(row.prompt)]
    if mode == "cached":
        ends = [len(row.prompt) * (i + 1) // BURSTS for i in range(BURSTS)]
    completion, replaced = Completion(), 0
    for version, end in enumerate(ends):
        before = row.prompt[:end]
        snapshot = Snapshot.from_text(uri, version, "python", before + row.below)
        service.document_changed(snapshot)
        # Invoked: the task asks for text, so silence inside a word is no answer.
        request = Request(snapshot, len(before.encode()), Trigger.INVOKED)
        completion = await service.complete(request)
        ends_at = completion.items[0].end_byte if completion.items else 0
        replaced = max(0, ends_at - request.cursor_byte)
    # Closers that the item takes the place of would stand twice in the program.
    rest = row.below.encode()[:replaced].decode()
    return InfilledText(
        completion.text.removesuffix(rest),
        completion.timing.total,
        completion.tokens.computed,
        confidence(completion),
    )


def _parses(program: str) -> bool:
    try:
        ast.parse(program)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
