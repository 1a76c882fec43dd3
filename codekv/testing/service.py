"""A completion service that says what a script tells it, after the time it tells.

Speaks the whole of `CompletionService`, counts what happens to it, and knows no model.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codekv.completion.api import (
    AnswerSource,
    Completion,
    Feedback,
    Item,
    Request,
    State,
    Status,
    Timing,
    TokenCounts,
)
from codekv.errors import CodekvError, ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from codekv.config import Config
    from codekv.text.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """What one request is answered with.

    Attributes:
        text: Goes in at the cursor; nothing is offered if it is empty.
        delay_ms: How long the work takes; it can be cancelled at any time.
        span: Replace nothing (`cursor`), the line up to the cursor (`head`), the
            line's rest (`tail`), the popup's entry (`selected`), or break the
            contract with a range that leaves the line (`wild`).
        error: `model` or `bug`: fail like that instead.
        source: Where the answer is said to come from.
        reason: Why there is nothing.
        num_items: How many different items there are.
    """

    text: str = ""
    delay_ms: float = 0.0
    span: str = "cursor"
    error: str = ""
    source: str = "model"
    reason: str = ""
    num_items: int = 1


@dataclass(frozen=True, slots=True)
class ServiceScript:
    """How a service behaves.

    Attributes:
        answers: Given in this order; the last one is repeated.
        import_ms: How long importing the service keeps its thread busy.
        load_ms: How long the model loads after the start.
        load_error: Loading fails with this message instead.
        notice: What the status says once the model is loaded.
        close_ms: How long closing takes.
        types_through: Whether the rest of an offer is answered without work.
        journal: A file that gets one line of JSON for every call, or None.
        offer: Whether a larger model waits for consent.
    """

    answers: tuple[ScriptedAnswer, ...] = (ScriptedAnswer("pass"),)
    import_ms: float = 0.0
    load_ms: float = 0.0
    load_error: str = ""
    notice: str = ""
    close_ms: float = 0.0
    types_through: bool = False
    journal: str | None = None
    offer: bool = False

    @classmethod
    def from_json(cls, text: str) -> ServiceScript:
        """Read a script; keys are the attributes' names."""
        values: dict[str, Any] = json.loads(text)
        answers = tuple(ScriptedAnswer(**each) for each in values.pop("answers", [{}]))
        return cls(answers=answers, **values)

    def to_json(self) -> str:
        """Write the script for another process."""
        table = {f.name: getattr(self, f.name) for f in fields(self)}
        table["answers"] = [
            {f.name: getattr(a, f.name) for f in fields(a)} for a in self.answers
        ]
        return json.dumps(table)


class ScriptedService:
    """Follows a script.

    Attributes:
        counts: How often what happened; also the metrics of its status.
    """

    def __init__(
        self, script: ServiceScript, config: Config, workspace: Path | None = None
    ) -> None:
        self.script = script
        self.config = config
        self.workspace = workspace
        self.counts: dict[str, float] = {}
        self._answers = itertools.chain(
            script.answers[:-1], itertools.repeat(script.answers[-1])
        )
        self._loaded = asyncio.Event()
        self._started_at = 0.0
        self._paused = False
        self._working = 0
        self._last: Completion | None = None
        self._offered = b""
        self._ids = itertools.count(1)
        self._open: set[str] = set()

    def start(self) -> None:
        """Begin to load."""
        self._started_at = time.monotonic()
        self._count("started")

    async def ready(self) -> None:
        """Wait for the scripted time.

        Raises:
            ModelError: The script says so.
        """
        passed = time.monotonic() - self._started_at
        await asyncio.sleep(max(0.0, self.script.load_ms / 1000 - passed))
        if self.script.load_error:
            raise ModelError(self.script.load_error)
        self._loaded.set()

    def document_changed(self, snapshot: Snapshot) -> None:
        """Count and remember."""
        self._open.add(snapshot.uri)
        self._count("changed")
        self._note("changed", uri=snapshot.uri, text=_text(snapshot))

    def document_closed(self, uri: str) -> None:
        """Count and forget."""
        self._open.discard(uri)
        self._count("closed")

    def document_focused(self, uri: str | None) -> None:
        """Count."""
        self._count("focused" if uri else "unfocused")
        self._note("focused", uri=uri)

    def peek(self, request: Request) -> Completion | None:
        """Answer along the last offer, or that there will be none."""
        if self._paused:
            return Completion(source=AnswerSource.NONE, reason="paused")
        if not self._loaded.is_set():
            return Completion(source=AnswerSource.NONE, reason="loading")
        before = request.snapshot.data[: request.cursor_byte]
        if not self.script.types_through or not self._offered.startswith(before):
            return None
        rest = self._offered[len(before) :].decode()
        self._count("typed_through")
        cursor = request.cursor_byte
        item = Item(f"c-{next(self._ids)}", rest, cursor, cursor)
        return Completion((item,) if rest else (), source=AnswerSource.TYPED_THROUGH)

    async def complete(self, request: Request) -> Completion:
        """Give the next scripted answer."""
        self._note_request(request)
        known = self.peek(request)
        if known is not None:
            return known
        answer = next(self._answers)
        started = time.monotonic()
        await self._work(answer, request, started)
        total = (time.monotonic() - started) * 1000
        completion = Completion(
            items=tuple(self._items(answer, request)),
            model="scripted",
            timing=Timing(total=total, decode=total),
            tokens=TokenCounts(context=10, exact=8, computed=2, generated=3, steps=2),
            source=AnswerSource(answer.source) if answer.text else AnswerSource.NONE,
            reason=answer.reason,
        )
        self._last = completion
        data, cursor = request.snapshot.data, request.cursor_byte
        self._offered = data[:cursor] + answer.text.encode()
        return completion

    def feedback(self, item_id: str, kind: Feedback, accepted_bytes: int = 0) -> None:
        """Count by kind."""
        self._count(kind.value)
        self._count("accepted_bytes", accepted_bytes)
        self._note("feedback", item=item_id, kind=kind.value, bytes=accepted_bytes)

    def pause(self, paused: bool) -> None:  # noqa: FBT001 - the protocol's shape
        """Answer nothing, or answer again."""
        self._paused = paused

    def status(self) -> Status:
        """Tell the state and all counts."""
        state = State.READY if self._loaded.is_set() else State.LOADING
        if self._working:
            state = State.WORKING
        if self._paused:
            state = State.PAUSED
        metrics = {**self.counts, "open": float(len(self._open))}
        notice = self.script.notice if self._loaded.is_set() else ""
        status = Status(state, "scripted", notice, self._last, metrics)
        return replace(status, offer=self.script.offer)

    def clear_cache(self) -> None:
        """Count."""
        self._count("cleared")

    def reload(self) -> None:
        """Count."""
        self._count("reloaded")
        self._note("reloaded")

    def reconfigure(self, config: Config) -> None:
        """Take the configuration."""
        self.config = config
        self._count("reconfigured")
        self._note("reconfigured", config=config.model_dump(mode="json"))

    async def close(self) -> None:
        """Take the scripted time."""
        self._count("closing")
        await asyncio.sleep(self.script.close_ms / 1000)

    async def _work(
        self, answer: ScriptedAnswer, request: Request, started: float
    ) -> None:
        if answer.source == AnswerSource.MODEL:
            self._count("generations")
        self._working += 1
        try:
            await asyncio.sleep(answer.delay_ms / 1000)
        except asyncio.CancelledError:
            self._count("cancelled")
            self._note("cancelled", uri=request.snapshot.uri)
            raise
        finally:
            self._working -= 1
        if answer.error == "model":
            raise CodekvError("scripted failure")
        if answer.error:
            raise RuntimeError(f"scripted bug near {_text(request.snapshot)}")

    def _items(self, answer: ScriptedAnswer, request: Request) -> Iterable[Item]:
        if not answer.text:
            return
        start, end = _span(answer.span, request)
        data, cursor = request.snapshot.data, request.cursor_byte
        head = data[start:cursor].decode("utf-8", "replace")
        if answer.span == "selected" and request.selected:
            head = request.selected.text
        text = answer.text.replace("\n", request.snapshot.eol)
        for number in range(min(answer.num_items, request.max_items)):
            mark = f"_{number}" if number else ""
            yield Item(f"c-{next(self._ids)}", head + text + mark, start, end)

    def _note_request(self, request: Request) -> None:
        self._count("requests")
        self._count(f"trigger_{request.trigger.value}")
        data, cursor = request.snapshot.data, request.cursor_byte
        selected = request.selected
        self._note(
            "complete",
            uri=request.snapshot.uri,
            language=request.snapshot.language,
            before=data[:cursor].decode("utf-8", "replace"),
            after=data[cursor:].decode("utf-8", "replace"),
            trigger=request.trigger.value,
            max_items=request.max_items,
            selected=selected.text if selected else None,
        )

    def _count(self, name: str, amount: float = 1.0) -> None:
        self.counts[name] = self.counts.get(name, 0.0) + amount

    def _note(self, event: str, **values: Any) -> None:
        if self.script.journal is not None:
            line = json.dumps({"event": event, **values})
            with Path(self.script.journal).open("a", encoding="utf-8") as file:
                file.write(line + "\n")


def read_journal(path: Path) -> list[Mapping[str, Any]]:
    """Read back what a service has noted."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def _span(kind: str, request: Request) -> tuple[int, int]:
    data, cursor = request.snapshot.data, request.cursor_byte
    if kind == "head":
        return data.rfind(b"\n", 0, cursor) + 1, cursor
    if kind == "tail":
        end = data.find(b"\n", cursor)
        return cursor, len(data) if end < 0 else end
    if kind == "selected" and request.selected is not None:
        return request.selected.start_byte, request.selected.end_byte
    if kind == "wild":
        return 0, len(data)
    return cursor, cursor


def _text(snapshot: Snapshot) -> str:
    return snapshot.data.decode("utf-8", "replace")
