"""One completion on the engine's thread: snapshot → prompt → tokens → item.

Generators that yield wherever the work may be dropped. Owns the documents and the
engine; nothing else touches them.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from dataclasses import replace
from itertools import count, groupby
from typing import TYPE_CHECKING

from codekv.completion.answers import accepted
from codekv.completion.api import Completion, Item, Request, Timing, TokenCounts
from codekv.completion.climbing import Climber
from codekv.completion.partial_answer import PartialAnswer
from codekv.completion.prompt.planner import PromptChoice, choose_prompt
from codekv.completion.prompt.stale_uses import Definitions
from codekv.completion.prompt.tasks import PlannedAnswer, Prepared, TaskMaker
from codekv.completion.recent_drafts import Drafts
from codekv.completion.shaping.offer import CursorOffer
from codekv.completion.shaping.reranking import Rivals
from codekv.completion.shaping.shape import Shape
from codekv.completion.warming import WarmLimit, blocks_of, far_chains, near_chain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from codekv.completion.deadline import Deadline
    from codekv.completion.document import CodeDocument, CodeDocuments
    from codekv.completion.prompt.other_files import OtherFiles
    from codekv.completion.prompt.window import Limits
    from codekv.completion.shaping.shape import ShapePlan
    from codekv.config import Config
    from codekv.cooperative import Cooperative
    from codekv.engine.decoding.candidate import Stop
    from codekv.engine.engine import Engine, Outcome
    from codekv.engine.reuse.prefill import Reuse
    from codekv.text.snapshot import Snapshot
    from codekv.tokens.tokenizer import Tokenizer

# One slice of writing blocks, short enough to be cut off by a keystroke.
FLUSH_MS = 20.0

BLOCK_BUDGETS = 2
"""A block may take this many latency budgets before it is cut at a line's end."""


class Pipeline:
    """Answers requests with one engine and one tokenizer."""

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        documents: CodeDocuments,
        config: Config,
    ) -> None:
        self.engine = engine
        self.documents = documents
        self.config = config
        self._token_bytes = tokenizer.token_bytes
        self._drafts = Drafts(tokenizer.token_bytes)
        # Where each document was asked about last: its window's token, the cursor.
        self._places: dict[str, tuple[int, int]] = {}
        self._definitions = Definitions()
        self.climber = Climber(engine, self._choice)
        self._ids = count()
        fim = tokenizer.fim
        stop_ids = {*engine.runtime.spec.eos_ids, *(fim.stop if fim else ())}
        self._maker = TaskMaker(tokenizer, config, frozenset(stop_ids))
        self._rivals = Rivals(engine, self._maker)

    def reconfigure(self, config: Config) -> None:
        """Take settings that need no new model or store."""
        self.config = config
        self._maker.config = config
        self.engine.configure(config.kvcache)
        if self._maker.others is not None:
            self._maker.others.index.configure(config.privacy)

    def complete(
        self, request: Request, submitted: float, deadline: Deadline | None = None
    ) -> Cooperative[Completion]:
        """Answer one request; `submitted` is its clock time in seconds."""
        planned = yield from self.plan(request, submitted)
        if isinstance(planned, Completion):
            return planned
        return (yield from self.answer(planned, deadline))

    def plan(
        self, request: Request, submitted: float, *, is_ahead: bool = False
    ) -> Cooperative[PlannedAnswer | Completion]:
        """Lay out the prompt of a request, or tell at once why nothing is offered.

        Args:
            request: The question.
            submitted: Its clock time in seconds.
            is_ahead: Whether nobody has asked it yet; then nothing climbs for it.
        """
        started = time.perf_counter()
        document = yield from self.documents.update_in_steps(request.snapshot)
        self._look_around(document, request, not self.config.kvcache.idle_work)
        yield
        plan = self._maker.plan(request, document)
        if plan.shape is Shape.NONE:
            return self._nothing(plan.reason, submitted)
        choice = self._affordable(request, document, plan)
        if not is_ahead:
            self.climber.note(request, choice)
        return PlannedAnswer(request, choice.prepared, submitted, started)

    def answer(
        self, planned: PlannedAnswer, deadline: Deadline | None = None
    ) -> Cooperative[Completion]:
        """Compute and decode the answer to a planned request.

        Args:
            planned: From `plan`.
            deadline: Is offered what stands by then.
        """
        request, prepared = planned.request, planned.prepared
        submitted, started = planned.submitted, planned.started
        self.engine.store.note_request()
        if request.max_items > 1:
            several = yield from self._several(request, prepared, submitted)
            self._note_topic(request, prepared.document)
            return several
        start = request.cursor_byte - len(prepared.prompt.need)
        snapshot = request.snapshot
        with self._drafts.recording(snapshot.uri, snapshot.data, start) as told:
            stop = self._in_time(request, prepared, submitted)
            task = replace(prepared.task, stop=stop, progress=told.progress)
            offer = self._offer(request, prepared)
            if deadline is None:
                outcome = yield from self._rivals.best(offer, task, submitted)
            else:
                look = PartialAnswer(self._token_bytes, self._completion, planned, told)
                task = replace(task, filled=look.filled)
                best = self._rivals.best(offer, task, submitted)
                step_s = self.engine.speed.ms_for(1) / 1e3
                outcome = yield from deadline.watch(best, step_s, look)
            told.progress(outcome.candidate.tokens)
        self._note_topic(request, prepared.document)
        completion = self._completion(request, prepared, outcome)
        ended = time.perf_counter()
        timing = Timing(
            total=(ended - submitted) * 1e3,
            prefill=outcome.prefill_ms,
            decode=outcome.decode_ms,
            ttft=(ended - submitted) * 1e3 - outcome.decode_ms,
            queue=(started - submitted) * 1e3,
        )
        return replace(completion, timing=timing)

    def _note_topic(self, request: Request, document: CodeDocument) -> None:
        """Tell what was worked on; afterwards, so that this answer's blocks count."""
        function = document.function_at(request.cursor_byte)
        self.engine.store.set_topic(request.snapshot.uri, function)

    def _in_time(self, request: Request, prepared: Prepared, submitted: float) -> Stop:
        """End an unasked-for block at a line's end once its time is up.

        The user sees the first lines instead of nothing; once they are accepted, the
        answer computed ahead has the next ones.
        """
        stop = prepared.task.stop
        if prepared.plan.shape is not Shape.BLOCK or request.trigger == "invoked":
            return stop
        budget = self.config.completion.latency_budget_ms / 1e3
        end = submitted + BLOCK_BUDGETS * budget

        def check(text: bytes) -> bool:
            at_line_end = text.rstrip(b" \t").endswith(b"\n") and bool(text.strip())
            return stop(text) or (at_line_end and time.perf_counter() > end)

        return check

    def _offer(self, request: Request, prepared: Prepared) -> CursorOffer:
        return CursorOffer(request, prepared, self.config.completion.max_lines)

    def _several(
        self, request: Request, prepared: Prepared, submitted: float
    ) -> Cooperative[Completion]:
        """Answer with several different items."""
        outcomes = yield from self._rivals.several(self._offer(request, prepared))
        found = [self._completion(request, prepared, outcome) for outcome in outcomes]
        different = {c.items[0].text: c.items[0] for c in reversed(found) if c.items}
        first = outcomes[0] if outcomes else None
        timing = Timing(
            total=(time.perf_counter() - submitted) * 1e3,
            prefill=first.prefill_ms if first else 0.0,
            decode=first.decode_ms if first else 0.0,
        )
        if not found:
            return self._nothing("dead-end", submitted)
        items = tuple(reversed(different.values()))[: request.max_items]
        reason = "" if items else found[0].reason
        return replace(found[0], items=items, reason=reason, timing=timing)

    @property
    def num_dropped(self) -> int:
        """Tokens that were decoded for answers which newer questions replaced."""
        return self._drafts.num_dropped

    def prepare(self, request: Request) -> Cooperative[int]:
        """Idle: make the full prompt of a request ready and exact."""
        document = yield from self.documents.update_in_steps(request.snapshot)
        self._look_around(document, request, is_pause=True)
        yield
        plan = self._maker.plan(request, document)
        prepared = self._maker.make(request, document, plan, self._maker.limits())
        place = prepared.prompt.window, request.cursor_byte
        self._places[request.snapshot.uri] = place
        computed = yield from self.engine.prepare(prepared.task)
        if self.config.kvcache.repair_names:
            self._definitions.settle(document)
        return computed

    def speculate(
        self, request: Request, item: Item
    ) -> Cooperative[tuple[Request, Completion]]:
        """Idle: make and answer the request that comes if `item` is accepted."""
        snapshot, cursor = accepted(request.snapshot, item)
        ahead = replace(request, snapshot=snapshot, cursor_byte=cursor)
        planned = yield from self.plan(ahead, time.perf_counter(), is_ahead=True)
        if isinstance(planned, Completion):
            return ahead, planned
        return ahead, (yield from self.answer(planned))

    def warm(self, snapshot: Snapshot, persist: bool) -> Cooperative[int]:
        """Idle: compute and store a document's blocks up to its cursor."""
        document = yield from self.documents.update_in_steps(snapshot)
        yield
        window, token = self._place(document)
        first = self._maker.first_tokens(snapshot)
        chain = near_chain(document, window, token, first, persist)
        computed = yield from self.engine.warm(chain)
        yield from self._flush()
        return computed

    def warm_far(self, snapshot: Snapshot, persist: bool) -> Cooperative[int]:
        """Idle: compute and store what no store knows of a document, nearest first."""
        document = yield from self.documents.update_in_steps(snapshot)
        yield
        store = self.engine.store
        ahead = WarmLimit(self.config.kvcache.warm_tokens, store.knows)
        first = self._maker.first_tokens(snapshot)
        _, token = self._place(document)
        computed = 0
        for chain in far_chains(document, token, first, persist, ahead):
            if not store.fits(computed + len(chain.tokens)):
                break
            computed += yield from self.engine.warm_far(chain)
        yield from self._flush()
        return computed

    def _place(self, document: CodeDocument) -> tuple[int, int]:
        """A document's window and the token at its cursor, as last seen."""
        window, cursor = self._places.get(document.snapshot.uri, (0, 0))
        return window, bisect_right(document.encoding.ends, cursor)

    def _flush(self) -> Cooperative[None]:
        while waiting := self.engine.store.flush(FLUSH_MS):
            yield
            if self.engine.store.flush(FLUSH_MS) >= waiting:
                break

    def scan(self) -> Cooperative[int]:
        """Idle: look what other files there are, and what they define."""
        others = self._maker.others
        return (yield from others.index.scan()) if others is not None else 0

    def disown(self, silence: Callable[[Snapshot], object | None]) -> None:
        """Forget all of the documents that must not be remembered, stored or not."""
        for document in self.documents.all():
            if silence(document.snapshot) is not None:
                self.forget(document.snapshot.uri)
                self.engine.store.forget_text(blocks_of(document))

    def forget(self, uri: str) -> None:
        """Drop a closed document."""
        self.documents.forget(uri)
        self.engine.forget(uri)
        self._drafts.forget(uri)
        if self._maker.others is not None:
            self._maker.others.forget(uri)
        self._definitions.forget(uri)
        self._places.pop(uri, None)
        self.climber.forget(uri)

    def _look_around(
        self, document: CodeDocument, request: Request, is_pause: bool
    ) -> None:
        """Note where a document is worked on; in a pause, what it asks of others."""
        others = self._maker.others
        if others is not None and self.config.completion.other_files:
            others.visited(document, request.cursor_byte)
            if is_pause:
                others.refresh(document)

    def work_in(self, workspace: Path) -> None:
        """Say in prompts which file of a workspace they are of."""
        self._maker.workspace = workspace

    def watch(self, others: OtherFiles) -> None:
        """Say in prompts what other files offer."""
        self._maker.others = others

    def _choice(self, request: Request) -> Cooperative[PromptChoice]:
        """The prompt of a question as it would be answered now."""
        document = yield from self.documents.update_in_steps(request.snapshot)
        return self._affordable(request, document, self._maker.plan(request, document))

    def _affordable(
        self, request: Request, document: CodeDocument, plan: ShapePlan
    ) -> PromptChoice:
        """The richest prompt that the latency budget allows at the measured speed."""
        budget = self.config.completion.latency_budget_ms
        return choose_prompt(
            lambda limits: self._make(request, document, plan, limits),
            self.engine.plan,
            self._maker.limits(),
            self.engine.speed.tokens_in(budget),
        )

    def _make(
        self, request: Request, document: CodeDocument, plan: ShapePlan, limits: Limits
    ) -> Prepared:
        made = self._maker.make(request, document, plan, limits)
        if self.config.kvcache.repair_names:
            made = self._maker.touch(made, self._definitions.changed(document))
        if not made.task.options.draft:
            return made
        start = request.cursor_byte - len(made.prompt.need)
        uri, data = request.snapshot.uri, request.snapshot.data
        guess = self._drafts.find(uri, data, start, request.cursor_byte)
        options = replace(made.task.options, previous=guess)
        return replace(made, task=replace(made.task, options=options))

    def _completion(
        self, request: Request, prepared: Prepared, outcome: Outcome
    ) -> Completion:
        candidate, reuse = outcome.candidate, outcome.reuse
        trimmed = self._offer(request, prepared).trimmed(candidate)
        items: tuple[Item, ...] = ()
        if trimmed.text:
            name = f"c{next(self._ids)}"
            span = trimmed.start_byte, trimmed.end_byte
            items = (Item(name, trimmed.text, *span, candidate.score),)
        reason = "" if items else "-".join(trimmed.filters[-1:]) or "nothing"
        return Completion(
            items=items,
            model=self.engine.runtime.spec.name,
            tokens=TokenCounts(
                context=reuse.context,
                exact=reuse.exact,
                restored=reuse.restored,
                moved=reuse.moved,
                computed=reuse.computed,
                generated=len(candidate.tokens),
                steps=candidate.num_steps,
            ),
            reason=reason,
            filters=trimmed.filters,
            reuse_stop=self._reuse_stop(request, prepared, reuse),
            longest_run=max(len(list(run)) for _, run in groupby(prepared.task.tokens)),
        )

    def _reuse_stop(self, request: Request, prepared: Prepared, reuse: Reuse) -> str:
        """Name the first part of the prompt that no live sequence held."""
        prompt, uri = prepared.prompt, request.snapshot.uri
        known = self._places.get(uri)
        self._places[uri] = prompt.window, request.cursor_byte
        if reuse.common >= prompt.head:
            return ""
        if reuse.common >= prompt.prefix:
            return "suffix"
        if known is None:
            return "cold"
        return "window" if known[0] != prompt.window else "prefix"

    def _nothing(self, reason: str, submitted: float) -> Completion:
        total = (time.perf_counter() - submitted) * 1e3
        model = self.engine.runtime.spec.name
        return Completion(model=model, timing=Timing(total=total), reason=reason)
