"""The completion service: the one door for editors, benchmarks and the command line.

Lives on the caller's event loop; hands work to the engine's thread and never waits
for it there. Imports of torch happen on that thread.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from codekv.completion.api import (
    Completion,
    Feedback,
    Request,
    Source,
    State,
    Status,
)
from codekv.engine.worker import Worker
from codekv.errors import CancelledWorkError, CodekvError, ModelError

if TYPE_CHECKING:
    from concurrent.futures import Future
    from pathlib import Path

    from codekv.completion.pipeline import Pipeline
    from codekv.config import Config
    from codekv.engine.worker import Job, Steps
    from codekv.text.snapshot import Snapshot

log = logging.getLogger(__name__)


class Service:
    """A `CompletionService` over a model of this machine."""

    def __init__(self, config: Config, workspace: Path | None = None) -> None:
        self.config = config
        self.workspace = workspace
        self._worker = Worker()
        self._loading: Future[Pipeline] | None = None
        self._pipeline: Pipeline | None = None
        self._paused = False
        self._working = 0
        self._message = ""
        self._last: Completion | None = None

    def start(self) -> None:
        """Begin to load the model in the background."""
        if self._loading is None:
            self._loading = self._worker.submit("load", self._load()).future

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
        pipeline = self._pipeline
        if pipeline is not None and self.config.kvcache.idle_work:
            job = pipeline.warm_snapshot(snapshot, persist=True)
            self._worker.submit_idle(f"warm {snapshot.uri}", job)

    def document_closed(self, uri: str) -> None:
        """Forget a document's live state; stored blocks stay."""
        pipeline = self._pipeline
        if pipeline is not None:
            self._worker.call(lambda: pipeline.forget(uri))

    def document_focused(self, uri: str | None) -> None:
        """Note which document the user looks at."""

    async def complete(self, request: Request) -> Completion:
        """Answer one request; see `CompletionService.complete`."""
        pipeline = self._pipeline
        if self._paused:
            return _nothing("paused")
        if pipeline is None:
            self.start()
            return _nothing("loading")
        submitted = time.perf_counter()
        job = self._worker.submit(
            request.snapshot.uri, pipeline.complete(request, submitted)
        )
        completion = await self._await(job)
        self._last = completion
        self._plan_idle(pipeline, request)
        return completion

    def feedback(self, item_id: str, kind: Feedback, accepted_bytes: int = 0) -> None:
        """Note what became of an item; unknown ids are ignored."""

    def pause(self, paused: bool) -> None:
        """Stop or resume answering; paused requests get an empty answer."""
        self._paused = paused

    def status(self) -> Status:
        """Tell the present state; cheap."""
        model = self._pipeline.engine.runtime.spec.name if self._pipeline else ""
        return Status(self._state(), model, self._message, self._last)

    def clear_cache(self) -> None:
        """Drop every stored block of every tier."""
        if self._pipeline is not None:
            self._worker.call(self._pipeline.engine.clear)

    def reconfigure(self, config: Config) -> None:
        """Take a new configuration; reloads the model only if it must."""
        reload = config.model != self.config.model
        self.config = config
        if reload and self._loading is not None:
            self._pipeline = None
            self._loading = self._worker.submit("load", self._load()).future
        elif self._pipeline is not None:
            self._pipeline.config = config

    async def close(self) -> None:
        """Stop all work within one decoding step and free everything."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._worker.close)
        self._pipeline = None

    def _state(self) -> State:
        if self._paused:
            return State.PAUSED
        if self._pipeline is None:
            return State.ERROR if self._message else State.LOADING
        return State.WORKING if self._working else State.READY

    def _plan_idle(self, pipeline: Pipeline, request: Request) -> None:
        """Queue what makes the next keystrokes cheap; newer plans replace older."""
        if self.config.kvcache.idle_work:
            uri = request.snapshot.uri
            self._worker.submit_idle(f"prepare {uri}", pipeline.prepare(request))
            self._worker.submit_idle(f"warm {uri}", pipeline.warm(uri, persist=True))

    async def _await(self, job: Job[Completion]) -> Completion:
        self._working += 1
        try:
            return await asyncio.wrap_future(job.future)
        except asyncio.CancelledError:
            job.cancel()
            raise
        except CodekvError:
            raise
        except Exception as error:
            log.exception("completion failed")
            raise CancelledWorkError("the completion failed; see the log") from error
        finally:
            self._working -= 1

    def _load(self) -> Steps[Pipeline]:
        """Load on the worker's thread, where torch is imported for the first time."""
        from codekv.completion.load import load_pipeline

        try:
            pipeline = yield from load_pipeline(self.config)
        except ModelError as error:
            self._message = str(error)
            raise
        self._pipeline = pipeline
        return pipeline


def _nothing(reason: str) -> Completion:
    return Completion(source=Source.NONE, reason=reason)
