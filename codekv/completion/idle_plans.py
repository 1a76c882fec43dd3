"""What to do for a document while nobody waits: hand it to the worker, newest first.

In this order: climb to the full prompt (between keystrokes too), then in a pause make
that prompt exact, answer ahead for the offer being taken, compute and store the
document's blocks near the cursor and elsewhere, look what other files there are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from codekv.completion.api import Trigger
from codekv.completion.power import on_battery

if TYPE_CHECKING:
    from collections.abc import Callable

    from codekv.completion.api import Completion, Request
    from codekv.completion.pipeline import Pipeline
    from codekv.config import Config
    from codekv.cooperative import Cooperative
    from codekv.engine.worker import Job, Worker
    from codekv.text.snapshot import Snapshot

KINDS = ("climb", "prepare", "prefetch", "warm", "far", "scan")
"""Idle work in its order."""


class IdleTopic(NamedTuple):
    """Newer idle work of one kind for one document replaces older one."""

    uri: str
    kind: str


class IdlePlans:
    """Plans idle work of one service as far as its configuration allows."""

    def __init__(self, worker: Worker, config: Config) -> None:
        self._worker = worker
        self._climbing: dict[str, Job[int]] = {}
        self.config = config

    @property
    def is_sparing(self) -> bool:
        """Whether nothing is done that nobody has asked for."""
        eco = self.config.completion.eco
        return eco == "always" or (eco == "auto" and on_battery())

    def after_answer(
        self,
        pipeline: Pipeline,
        request: Request,
        completion: Completion,
        remember: Callable[[Request, Completion], None],
    ) -> None:
        """Plan what makes the next keystrokes cheap.

        Args:
            pipeline: Does the work.
            request: The question that was answered.
            completion: Its answer.
            remember: Is told of a question that was answered ahead, on the engine's
                thread.
        """
        if not self._allowed:
            return
        uri = request.snapshot.uri
        self._submit(uri, "prepare", pipeline.prepare(request))
        if self.config.completion.speculate and completion.items:
            steps = _prefetch(pipeline, request, completion, remember)
            self._submit(uri, "prefetch", steps)
        self.warm(pipeline, request.snapshot)

    def warm(self, pipeline: Pipeline, snapshot: Snapshot) -> None:
        """Plan to compute and store a document's blocks."""
        if self._allowed:
            uri = snapshot.uri
            self._submit(uri, "warm", pipeline.warm(snapshot, persist=True))
            self._submit(uri, "far", pipeline.warm_far(snapshot, persist=True))

    def climb(self, pipeline: Pipeline, uri: str) -> None:
        """Make richer prompts ready between keystrokes; on the engine's thread.

        Also on battery: it ends within seconds, and answers are poor without it.
        """
        job = self._climbing.get(uri)
        is_done = job is None or job.cancelled or job.future.done()
        if self.config.kvcache.idle_work and is_done:
            steps = pipeline.climber.climb(uri)
            topic = IdleTopic(uri, "climb")
            self._climbing[uri] = self._worker.submit_idle(topic, steps, in_gaps=True)

    def scan(self, pipeline: Pipeline) -> None:
        """Plan to look what other files there are, once nothing else is to be done."""
        if self.config.completion.other_files:
            self._submit("", "scan", pipeline.scan())

    def drop(self, uri: str) -> None:
        """Give up all plans for a document."""
        self._climbing.pop(uri, None)
        self._worker.cancel_idle([IdleTopic(uri, kind) for kind in KINDS])

    @property
    def _allowed(self) -> bool:
        return self.config.kvcache.idle_work and not self.is_sparing

    def _submit(self, uri: str, kind: str, steps: Cooperative[Any]) -> None:
        self._worker.submit_idle(IdleTopic(uri, kind), steps, KINDS.index(kind))


def _prefetch(
    pipeline: Pipeline,
    request: Request,
    completion: Completion,
    remember: Callable[[Request, Completion], None],
) -> Cooperative[None]:
    """Answer ahead for the text as it will be once the offer is accepted."""
    item = completion.items[0]
    request = replace(request, trigger=Trigger.AUTOMATIC)
    ahead, found = yield from pipeline.speculate(request, item)
    remember(ahead, found)
