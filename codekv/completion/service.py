"""The completion service: the one door for editors, benchmarks and the command line.

Lives on the caller's event loop; hands work to the engine's thread and never waits
for it there. Imports of torch happen on that thread.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from codekv.completion.answers import Answers, without_unlikely
from codekv.completion.api import (
    AnswerSource,
    Completion,
    Feedback,
    Request,
    State,
    Status,
    Timing,
    Trigger,
)
from codekv.completion.deadline import Deadline, deadline_for, forget_outcome
from codekv.completion.idle_plans import IdlePlans
from codekv.completion.load import needs_reload
from codekv.completion.popup import as_if_selected, with_selection
from codekv.completion.privacy.exclusion import Privacy
from codekv.completion.report import Reporter, typing_costs
from codekv.engine.worker import Worker
from codekv.errors import CancelledWorkError, CodekvError, ModelError

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from pathlib import Path

    from codekv.completion.pipeline import Pipeline
    from codekv.config import Config
    from codekv.cooperative import Cooperative
    from codekv.engine.engine import Engine
    from codekv.engine.worker import Job
    from codekv.text.snapshot import Snapshot

T = TypeVar("T")

log = logging.getLogger(__name__)

# Editors wait about a second for a server to end; the writing must fit in it.
LAST_FLUSH_MS = 300.0

_LOADING = "the model itself"
"""A topic that is no document's, since a URI has no spaces."""

CHEAP_TOKENS = 2
"""A question that lacks no more than this starts at once: it takes one step, which a
newer question has to wait for at most."""


class Service:
    """A `CompletionService` over a model of this machine."""

    def __init__(self, config: Config, workspace: Path | None = None) -> None:
        self.config = config
        self.workspace = workspace
        self._worker = Worker()
        self._idle_plans = IdlePlans(self._worker, config)
        self._privacy = Privacy(config.privacy, workspace)
        self._answers = Answers()
        self._reporter = Reporter(config)
        self._loading: Future[Pipeline] | None = None
        self._pipeline: Pipeline | None = None
        self._paused = False
        self._message = ""
        # Why `auto` stands for this model, and whether a larger one awaits consent.
        self._why, self._offer = "", False
        self._last: Completion | None = None
        # The newest question of each document, unless what it was asked under has
        # changed since: then its answer is not remembered and plans no pause.
        self._asked: dict[str, Request] = {}
        self._newest: dict[str, Request] = {}
        # Answers that go on after their deadline.
        self._unfinished: set[asyncio.Task[Completion]] = set()
        self._open: dict[str, Snapshot] = {}
        self._num_changes = 0

    def start(self) -> None:
        """Begin to load the model in the background."""
        if self._loading is None:
            self._message = ""
            self._loading = self._worker.submit(_LOADING, self._load()).future
            self._reporter.follow(self.status)

    async def ready(self) -> None:
        """Wait until the model can answer.

        Raises:
            ModelError: The model cannot be loaded.
        """
        self.start()
        assert self._loading is not None
        await asyncio.wrap_future(self._loading)

    def document_changed(self, snapshot: Snapshot) -> None:
        """Note a newly opened or changed document; may start idle work."""
        self._num_changes += snapshot.uri in self._open
        self._open[snapshot.uri] = snapshot
        self._look_ahead(snapshot)
        self._reporter.follow(self.status)

    def _disown(self) -> None:
        """Forget what must no longer be remembered."""
        pipeline, silence = self._pipeline, self._privacy.silence
        if pipeline is not None:
            self._worker.cancel_idle()
            self._worker.call(lambda: pipeline.disown(silence))

    def _look_ahead(self, snapshot: Snapshot) -> None:
        pipeline, is_silent = self._pipeline, self._privacy.silence(snapshot)
        if pipeline is not None and not is_silent and not self._paused:
            self._idle_plans.warm(pipeline, snapshot)

    def document_closed(self, uri: str) -> None:
        """Forget a document's live state; stored blocks stay."""
        self._open.pop(uri, None)
        self._asked.pop(uri, None)
        self._newest.pop(uri, None)
        self._answers.forget(uri)
        self._idle_plans.drop(uri)
        pipeline = self._pipeline
        if pipeline is not None:
            self._worker.call(lambda: pipeline.forget(uri))

    def document_focused(self, uri: str | None) -> None:
        """Note which document the user looks at."""
        pipeline, snapshot = self._pipeline, self._open.get(uri or "")
        if pipeline is None or uri is None:
            return
        if snapshot is not None:
            self._look_ahead(snapshot)
        self._idle_plans.scan(pipeline)
        self._reporter.follow(self.status)

    def peek(self, request: Request) -> Completion | None:
        """Answer at once if that needs no model; see `CompletionService.peek`."""
        started = time.perf_counter()
        if request.selected is not None:
            inner = self.peek(as_if_selected(request))
            return None if inner is None else with_selection(inner, request)
        known = self._without_model(request)
        return None if known is None else self._done(known, started)

    async def complete(self, request: Request) -> Completion:
        """Answer one request; see `CompletionService.complete`."""
        started = time.perf_counter()
        if request.selected is not None:
            inner = await self.complete(as_if_selected(request))
            return with_selection(inner, request)
        known = self.peek(request)
        if known is not None:
            return known
        assert self._pipeline is not None
        self._asked[request.snapshot.uri] = self._newest[request.snapshot.uri] = request
        settings = self.config.completion
        is_invoked = request.trigger == Trigger.INVOKED
        deadline = deadline_for(
            "off" if is_invoked else settings.deadline,
            started + settings.latency_budget_ms / 1e3,
        )
        if deadline is None:
            answered = self._answered(self._pipeline, request, started, None)
            return self._done(await answered, started)
        work = asyncio.ensure_future(
            self._answered(self._pipeline, request, started, deadline)
        )
        self._unfinished.add(work)
        work.add_done_callback(self._unfinished.discard)
        work.add_done_callback(forget_outcome)
        return self._done(await deadline.first(work), started)

    async def _answered(
        self,
        pipeline: Pipeline,
        request: Request,
        started: float,
        deadline: Deadline | None,
    ) -> Completion:
        """The whole answer of the model; it is remembered, and idle work planned."""
        uri = request.snapshot.uri
        try:
            found = await self._ask(pipeline, request, started, deadline)
            completion = self._confident(found)
            if self._asked.get(uri) is request:
                self._answers.note(request, completion)
                self._idle_plans.after_answer(
                    pipeline, request, completion, self._remember
                )
        finally:
            if self._asked.get(uri) is request:
                del self._asked[uri]
        return completion

    async def _ask(
        self,
        pipeline: Pipeline,
        request: Request,
        started: float,
        deadline: Deadline | None,
    ) -> Completion:
        """Let the model answer, after a wait if the work is likely to be in vain."""
        uri = request.snapshot.uri
        if not request.patience_s:
            steps = pipeline.complete(request, started, deadline)
            return await self._await(self._worker.submit(uri, steps))
        plan = self._worker.submit(uri, pipeline.plan(request, started))
        planned = await self._await(plan)
        if isinstance(planned, Completion):
            return planned
        if planned.num_missing > CHEAP_TOKENS:
            await asyncio.sleep(request.patience_s)
            if self._newest.get(uri, request) is not request:
                raise CancelledWorkError("replaced by newer work")
        steps = pipeline.answer(planned, deadline)
        return await self._await(self._worker.submit(uri, steps))

    def feedback(self, item_id: str, kind: Feedback, accepted_bytes: int = 0) -> None:
        """Note what became of an item; unknown ids are ignored."""
        self._reporter.feedback(kind)

    def pause(self, paused: bool) -> None:
        """Stop or resume answering; paused requests get an empty answer."""
        self._paused = paused
        if paused:
            self._asked.clear()
            self._worker.cancel_idle()
        self._reporter.follow(self.status)

    def status(self) -> Status:
        """Tell the present state; cheap."""
        pipeline = self._pipeline
        model = pipeline.engine.runtime.spec.name if pipeline else ""
        dropped = pipeline.num_dropped if pipeline else 0
        costs = typing_costs(self._worker.effort, self._num_changes, dropped)
        return Status(
            self._state(),
            model,
            self._message,
            self._last,
            {**self._reporter.metrics(), **costs},
            self._reporter.advice(),
            self._worker.is_idle,
            self._why,
            self._offer,
        )

    def clear_cache(self) -> None:
        """Drop every stored block of every tier."""
        self._asked.clear()
        self._answers.clear()
        self._worker.cancel_idle()
        if self._pipeline is not None:
            self._worker.call(self._pipeline.engine.clear)

    def reconfigure(self, config: Config) -> None:
        """Take a new configuration; reloads the model only if it must."""
        old, self.config = self.config, config
        self._idle_plans.config = config
        self._asked.clear()
        if old.privacy != config.privacy:
            self._privacy = Privacy(config.privacy, self.workspace)
            self._disown()
        self._reporter.reconfigure(config)
        self._answers.clear()
        if self._loading is None:
            return
        if needs_reload(old, config):
            self._pipeline = None
            self._loading = None
            self._worker.cancel_idle()
            self.start()
        elif self._pipeline is not None:
            pipeline = self._pipeline
            self._worker.call(lambda: pipeline.reconfigure(config))
            self._idle_plans.scan(pipeline)

    def reload(self) -> None:
        """Load the configured model anew; the present one answers until it is there."""
        if self._pipeline is None:
            self._loading = None
            self.start()
        else:
            self._loading = self._worker.submit(_LOADING, self._load()).future

    async def idle(self) -> None:
        """Wait until all idle work is done; for measurements and tests."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._worker.wait_idle)

    async def inspect(self, look: Callable[[Engine], T]) -> T:
        """Run a function on the engine's thread between two jobs; for measurements."""
        await self.ready()
        assert self._pipeline is not None
        engine = self._pipeline.engine
        return await asyncio.wrap_future(self._worker.call(lambda: look(engine)))

    async def close(self) -> None:
        """Stop all work within one decoding step and free everything."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._worker.close)
        if self._pipeline is not None:
            store = self._pipeline.engine.store
            await loop.run_in_executor(None, store.flush, LAST_FLUSH_MS)
        self._reporter.close()
        self._pipeline = None

    def _without_model(self, request: Request) -> Completion | None:
        """The answer, if it needs no model."""
        if self._paused:
            return _nothing("paused")
        silence = self._privacy.silence(request.snapshot)
        if silence is not None:
            return _nothing(silence)
        if self._pipeline is None:
            self.start()
            return _nothing("error" if self._message else "loading")
        if self.config.completion.typed_through and request.trigger != Trigger.INVOKED:
            return self._answers.find(request)
        return None

    def _confident(self, completion: Completion) -> Completion:
        """Withhold what the model itself finds unlikely, if so configured."""
        return without_unlikely(completion, self.config.completion.min_confidence)

    def _done(self, completion: Completion, started: float) -> Completion:
        total = (time.perf_counter() - started) * 1e3
        timing = replace(completion.timing, total=total)
        completion = replace(completion, timing=timing)
        self._last = completion
        store = self._pipeline.engine.store if self._pipeline else None
        self._reporter.completed(completion, store)
        self._reporter.publish(self.status)
        self._reporter.follow(self.status)
        return completion

    def _remember(self, ahead: Request, found: Completion) -> None:
        """Keep an answer that was computed ahead; on the engine's thread."""
        self._answers.note(ahead, self._confident(found))

    def _state(self) -> State:
        if self._paused:
            return State.PAUSED
        if self._pipeline is None:
            return State.ERROR if self._message else State.LOADING
        return State.WORKING if self._worker.is_busy else State.READY

    async def _await(self, job: Job[T]) -> T:
        try:
            return await asyncio.wrap_future(job.future)
        except asyncio.CancelledError:
            job.cancel()
            self._reporter.cancelled()
            raise
        except CancelledWorkError:
            self._reporter.cancelled()
            raise
        except CodekvError:
            raise
        except Exception as error:
            log.exception("completion failed")
            raise CancelledWorkError("the completion failed; see the log") from error

    def _load(self) -> Cooperative[Pipeline]:
        """Load on the worker's thread, where torch is imported for the first time."""
        from codekv.completion.load import load_pipeline

        try:
            pipeline, resolved = yield from load_pipeline(self.config, self.workspace)
        except ModelError as error:
            self._message = str(error)
            raise
        self._message = resolved.notice or ""
        if resolved.choice is not None:
            self._why, self._offer = resolved.choice.why, resolved.choice.offer
        if self._pipeline is not None:
            # Blocks of the model that leaves are for the next time it is used.
            self._worker.cancel_idle()
            self._pipeline.engine.store.flush(LAST_FLUSH_MS)
        pipeline.climber.on_goal = lambda uri: self._idle_plans.climb(pipeline, uri)
        self._pipeline = pipeline
        self._idle_plans.scan(pipeline)
        return pipeline


def _nothing(reason: str) -> Completion:
    return Completion(source=AnswerSource.NONE, reason=reason, timing=Timing())
