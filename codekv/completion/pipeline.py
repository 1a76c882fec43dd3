"""One completion on the engine's thread: snapshot → prompt → tokens → item.

A generator that yields wherever the work may be dropped. Owns the documents and the
engine; nothing else touches them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from codekv.completion.api import Completion, Item, Request, Timing, TokenCounts
from codekv.completion.prompt import (
    Limits,
    Place,
    Prompt,
    build,
    pieces,
    suffix_start,
)
from codekv.engine.decode import DecodeOptions
from codekv.engine.engine import Engine, Outcome, Task
from codekv.engine.idle import Chain
from codekv.structure.anchor import find_anchor
from codekv.structure.classes import token_classes

if TYPE_CHECKING:
    from codekv.completion.document import Document, Documents
    from codekv.config import Config
    from codekv.engine.worker import Steps
    from codekv.text.snapshot import Snapshot
    from codekv.tokens.tokenizer import Tokenizer

WARM_TOKENS = 4096
LEAST_CONTEXT = 96


@dataclass(slots=True)
class Given:
    """The last model answer in a document: what the text was and became.

    Attributes:
        start_byte: Where the decoded bytes begin (before the healed word).
        before: The text up to there.
        tokens, ends: The decoded tokens and where each ends, from `start_byte`.
        data: The decoded bytes.
    """

    start_byte: int
    before: bytes
    tokens: tuple[int, ...]
    ends: tuple[int, ...]
    data: bytes


class Pipeline:
    """Answers requests with one engine and one tokenizer."""

    def __init__(
        self, engine: Engine, tokenizer: Tokenizer, documents: Documents, config: Config
    ) -> None:
        self.engine = engine
        self.documents = documents
        self.config = config
        self._tokenizer = tokenizer
        self._given: dict[str, Given] = {}
        self._windows: dict[str, int] = {}
        self._ids = count()
        fim = tokenizer.fim
        self._stop_ids = frozenset(engine.runtime.spec.eos_ids) | frozenset(
            fim.stop if fim else ()
        )

    def complete(self, request: Request, submitted: float) -> Steps[Completion]:
        """Answer one request; `submitted` is its clock time in seconds."""
        started = time.perf_counter()
        document = self.documents.update(request.snapshot)
        yield
        task, prompt = self._affordable(request, document)
        outcome = yield from self.engine.answer(task)
        self._remember(request, prompt, outcome)
        completion = self._completion(request, prompt, outcome)
        ended = time.perf_counter()
        timing = replace(
            completion.timing,
            total=(ended - submitted) * 1e3,
            queue=(started - submitted) * 1e3,
            ttft=(ended - submitted) * 1e3 - outcome.decode_ms,
        )
        return replace(completion, timing=timing)

    def prepare(self, request: Request) -> Steps[int]:
        """Idle: make the full prompt of a request ready and exact."""
        document = self.documents.update(request.snapshot)
        yield
        task, _ = self._task(request, document, self._limits())
        return (yield from self.engine.prepare(task))

    def warm(self, uri: str, persist: bool) -> Steps[int]:
        """Idle: compute the blocks of a document around its last cursor."""
        document = self.documents.get(uri)
        if document is None:
            return 0
        ids, cuts = document.encoding.ids, document.cuts
        window = self._windows.get(uri, 0)
        stop = min(len(ids), window + WARM_TOKENS)
        first = self._first_tokens()
        own = [cut for cut in cuts if window <= cut < stop]
        classes = token_classes(document.tree, document.encoding.ends)
        chain = Chain(
            uri,
            (*first, *ids[window:stop]),
            tuple(cut - window + len(first) for cut in (*own, stop)),
            bytes(len(first)) + classes[window:stop],
            persist,
        )
        return (yield from self.engine.warm(chain))

    def warm_snapshot(self, snapshot: Snapshot, persist: bool) -> Steps[int]:
        """Idle: take a new version of a document and warm it."""
        self.documents.update(snapshot)
        yield
        return (yield from self.warm(snapshot.uri, persist))

    def _affordable(self, request: Request, document: Document) -> tuple[Task, Prompt]:
        """The richest prompt that the latency budget allows now.

        What must be computed before the answer is held against the measured speed;
        if it is too much, the window shrinks to what lies nearest the cursor, and
        idle time completes the full prompt for the next keystroke.
        """
        limits = self._limits()
        task, prompt = self._task(request, document, limits)
        budget = self.engine.speed.tokens_in(self.config.completion.latency_budget_ms)
        budget = max(budget, LEAST_CONTEXT)
        if self.engine.num_missing(task) <= budget:
            return task, prompt
        suffix = min(limits.suffix, budget // 4)
        small = Limits(budget + limits.output, suffix, limits.output)
        return self._task(request, document, small)

    def _task(
        self, request: Request, document: Document, limits: Limits
    ) -> tuple[Task, Prompt]:
        place = Place(
            document.snapshot.data,
            document.encoding,
            document.cuts,
            find_anchor(document.tree, request.cursor_byte),
            request.cursor_byte,
        )
        heal = self.config.completion.healing
        prompt = build(place, self._tokenizer, limits, heal)
        self._windows[request.snapshot.uri] = prompt.window
        found = pieces(prompt, document.cuts, document.encoding.ids)
        options = self._options(request, prompt)
        return Task(prompt.tokens, tuple(found), options, _first_line), prompt

    def _limits(self) -> Limits:
        completion = self.config.completion
        return Limits(
            self.config.kvcache.max_length,
            completion.suffix_tokens,
            completion.max_tokens,
        )

    def _first_tokens(self) -> tuple[int, ...]:
        """What stands before the document in every full prompt."""
        if self._tokenizer.fim is not None:
            return (self._tokenizer.fim.prefix,)
        bos = self._tokenizer.bos_id
        return () if bos is None else (bos,)

    def forget(self, uri: str) -> None:
        """Drop a closed document."""
        self.documents.forget(uri)
        self.engine.forget(uri)
        self._given.pop(uri, None)
        self._windows.pop(uri, None)

    def _options(self, request: Request, prompt: Prompt) -> DecodeOptions:
        completion = self.config.completion
        return DecodeOptions(
            need=prompt.need,
            max_tokens=request.max_tokens or completion.max_tokens,
            stop_ids=self._stop_ids,
            previous=self._previous(request, prompt) if completion.drafting else (),
            draft=completion.drafting,
        )

    def _previous(self, request: Request, prompt: Prompt) -> tuple[int, ...]:
        """Tokens of the last answer that begin where decoding will begin now."""
        given = self._given.get(request.snapshot.uri)
        if given is None:
            return ()
        data = request.snapshot.data
        here = request.cursor_byte - len(prompt.need)
        offset = here - given.start_byte
        if not 0 <= offset < len(given.data):
            return ()
        typed = data[given.start_byte : request.cursor_byte]
        if not given.data.startswith(typed) or not data.startswith(given.before):
            return ()
        if offset == 0:
            return given.tokens
        if offset in given.ends:
            return given.tokens[given.ends.index(offset) + 1 :]
        return ()

    def _remember(self, request: Request, prompt: Prompt, outcome: Outcome) -> None:
        start = request.cursor_byte - len(prompt.need)
        decoded = outcome.decoded
        ends, total = [], 0
        for token in decoded.tokens:
            total += len(self._tokenizer.token_bytes(token))
            ends.append(total)
        before = request.snapshot.data[max(0, start - 4096) : start]
        self._given[request.snapshot.uri] = Given(
            start, before, tuple(decoded.tokens), tuple(ends), decoded.data
        )

    def _completion(
        self, request: Request, prompt: Prompt, outcome: Outcome
    ) -> Completion:
        decoded, reuse = outcome.decoded, outcome.reuse
        text = decoded.data[len(prompt.need) :].split(b"\n", 1)[0]
        cursor = request.cursor_byte
        end = max(cursor, suffix_start(request.snapshot.data, cursor))
        shown = text.decode("utf-8", errors="ignore").rstrip()
        items: tuple[Item, ...] = ()
        if shown.strip():
            name = f"c{next(self._ids)}"
            items = (Item(name, shown, cursor, end, decoded.score),)
        return Completion(
            items=items,
            model=self.engine.runtime.spec.name,
            timing=Timing(prefill=outcome.prefill_ms, decode=outcome.decode_ms),
            tokens=TokenCounts(
                context=reuse.context,
                exact=reuse.exact,
                restored=reuse.restored,
                moved=reuse.moved,
                computed=reuse.computed,
                generated=len(decoded.tokens),
                steps=decoded.num_steps,
            ),
            reason="" if items else "nothing-to-offer",
        )


def _first_line(text: bytes) -> bool:
    """Stop at the end of the first line that holds anything."""
    return b"\n" in text.lstrip(b"\n") or (b"\n" in text and bool(text.strip()))
