"""From a document and a cursor to a task for the engine: plan, prompt, options."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codekv.completion.prompt.file_header import (
    MAX_SHARE,
    NO_HEADER,
    FileHeader,
    file_header,
)
from codekv.completion.prompt.layout import Prompt, build, first_tokens, pieces
from codekv.completion.prompt.stale_uses import uses
from codekv.completion.prompt.window import Limits, Place, most_suffix
from codekv.completion.shaping.choice import again, begun
from codekv.completion.shaping.shape import ShapePlan, plan
from codekv.completion.shaping.stop import StopChecker
from codekv.engine.decoding.candidate import DecodeOptions
from codekv.engine.engine import Task
from codekv.structure.anchor import find_anchor

if TYPE_CHECKING:
    from pathlib import Path

    from codekv.completion.api import Request
    from codekv.completion.document import CodeDocument
    from codekv.completion.prompt.other_files import OtherFiles
    from codekv.completion.shaping.trim import TrimContext, Trimmed
    from codekv.config import Config
    from codekv.engine.decoding.branches import Start
    from codekv.text.snapshot import Snapshot
    from codekv.tokens.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Prepared:
    """A task, and what is needed to make an item of its outcome."""

    document: CodeDocument
    plan: ShapePlan
    prompt: Prompt
    task: Task
    anchor_byte: int


@dataclass(frozen=True, slots=True)
class PlannedAnswer:
    """A question whose prompt is laid out; times are clock times in seconds."""

    request: Request
    prepared: Prepared
    submitted: float
    started: float

    @property
    def num_missing(self) -> int:
        """Prompt tokens that have to be computed before the first one is decoded."""
        task = self.prepared.task
        assert task.reuse is not None
        return task.reuse.num_computed[task.repair_level]


class TaskMaker:
    """Makes tasks under one configuration for one tokenizer."""

    def __init__(
        self, tokenizer: Tokenizer, config: Config, stop_ids: frozenset[int]
    ) -> None:
        self.config = config
        self._tokenizer = tokenizer
        self._stop_ids = stop_ids
        self.others: OtherFiles | None = None
        self.workspace: Path | None = None

    def plan(self, request: Request, document: CodeDocument) -> ShapePlan:
        """Decide whether and how much to offer."""
        return plan(
            document.tree,
            request.cursor_byte,
            request.trigger == "invoked",
            self.config.completion.multiline,
        )

    def limits(self) -> Limits:
        """The full prompt's sizes."""
        completion, kvcache = self.config.completion, self.config.kvcache
        room = most_suffix(kvcache.max_length, completion.max_tokens)
        return Limits(
            kvcache.max_length,
            min(completion.suffix_tokens, room),
            completion.max_tokens,
            kvcache.sparse_interval,
            kvcache.newest_share,
            kvcache.dynamic_size,
        )

    def make(
        self, request: Request, document: CodeDocument, shape: ShapePlan, limits: Limits
    ) -> Prepared:
        """Lay out the prompt and say how to decode."""
        completion = self.config.completion
        place = Place(
            document.snapshot.data,
            document.encoding,
            find_anchor(document.tree, request.cursor_byte),
            request.cursor_byte,
            document.cuts,
            shape.end_byte,
        )
        # A prompt that has to be cut short says nothing of other files.
        lead = self._lead(document.snapshot.uri) if limits == self.limits() else ()
        header = self._header(document.snapshot)
        prompt = build(place, self._tokenizer, limits, completion.healing, lead, header)
        options = DecodeOptions(
            forced_prefix=prompt.need,
            max_tokens=request.max_tokens or completion.max_tokens,
            stop_ids=self._stop_ids,
            draft=completion.drafting,
        )
        checker = StopChecker(document.tree, shape, completion.max_lines)
        found = pieces(prompt, document.cuts, document.encoding.ids)
        task = Task(
            prompt.tokens,
            tuple(found),
            options,
            checker.feed,
            topic=document.snapshot.uri,
        )
        return Prepared(document, shape, prompt, task, place.anchor_byte)

    def touch(self, prepared: Prepared, names: frozenset[bytes]) -> Prepared:
        """Mark the uses of names whose definition changed."""
        tokens = prepared.task.tokens
        stale = uses(tokens, self._tokenizer.token_bytes, names)
        return replace(prepared, task=replace(prepared.task, stale_uses=stale))

    def starts(self, context: TrimContext, need: bytes) -> tuple[Start, ...]:
        """How a line may begin, as tokens; empty where there is no choice."""
        return begun(context, need, self._tokenizer)

    def again(
        self, context: TrimContext, need: bytes, first: Trimmed
    ) -> tuple[Start, ...]:
        """Other beginnings than that of a text, if it breaks something."""
        return again(context, need, self._tokenizer, first)

    def first_tokens(self, snapshot: Snapshot) -> tuple[int, ...]:
        """What stands before a document in its full prompts."""
        header = self._header(snapshot)
        return first_tokens(self._tokenizer, self._lead(snapshot.uri), header)

    def _header(self, snapshot: Snapshot) -> FileHeader:
        if not self.config.completion.file_name:
            return NO_HEADER
        found = file_header(self._tokenizer, snapshot, self.workspace)
        room = self.config.kvcache.max_length // MAX_SHARE
        return found if len(found) <= room else NO_HEADER

    def _lead(self, uri: str) -> tuple[int, ...]:
        if self.others is None or not self.config.completion.other_files:
            return ()
        lead = self.others.tokens(uri)
        return lead if len(lead) <= self.config.kvcache.max_length // 4 else ()
