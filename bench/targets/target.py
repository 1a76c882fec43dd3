"""What a trace can be replayed against: one face for service, server and baselines.

A target keeps its documents' text itself. `ask` is what gets timed; everything else
is what happened before.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, Any, Protocol

from codekv.completion.api import Completion, Request, State
from codekv.text.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.traces.trace import Ask, Open, TypedEdit
    from codekv.completion.api import CompletionService

QUIET_S = 0.15
"""The service counts as idle after being idle for so long."""

_POLL_S = 0.03
"""A tenth of what a person notices."""


class Target(Protocol):
    """Something that follows documents and answers questions about them."""

    async def start(self) -> None:
        """Make ready to answer; loads the model."""

    async def open(self, step: Open) -> None:
        """Take a document's full text; replaces an open document's."""

    async def edit(self, step: TypedEdit) -> None:
        """Take one edit."""

    async def focus(self, uri: str) -> None:
        """Note that the user looks at an open document."""

    async def ask(self, step: Ask) -> Completion:
        """Answer; this is what the clock stands around."""

    async def account(self, answer: Completion) -> Completion:
        """Fill in what the target tells about the answer just given; not timed."""

    async def settle(self, seconds: float) -> None:
        """Return when idle work is done, or after `seconds`."""

    async def restart(self) -> None:
        """End and start anew, keeping only what is on disk."""

    async def close(self) -> None:
        """End and free everything."""

    @property
    def pid(self) -> int | None:
        """The process whose memory counts, if it can be seen."""

    @property
    def metrics(self) -> dict[str, Any]:
        """What the target told about itself when it was closed, if anything."""


class TargetDocuments:
    """The present text of every document a target was told of."""

    def __init__(self) -> None:
        self._snapshots: dict[str, Snapshot] = {}

    def open(self, step: Open) -> Snapshot:
        """Take a document's full text."""
        snapshot = Snapshot(step.uri, 1, step.language, step.text.encode())
        self._snapshots[step.uri] = snapshot
        return snapshot

    def edit(self, step: TypedEdit) -> Snapshot:
        """Apply one edit."""
        old = self._snapshots[step.uri]
        head, tail = old.data[: step.start_byte], old.data[step.end_byte :]
        data = head + step.text.encode() + tail
        snapshot = Snapshot(step.uri, step.version, old.language, data)
        self._snapshots[step.uri] = snapshot
        return snapshot

    def __getitem__(self, uri: str) -> Snapshot:
        return self._snapshots[uri]

    def clear(self) -> None:
        """Forget everything."""
        self._snapshots.clear()


class ServiceTarget:
    """The completion service in this process.

    With `anew`, every stored block and live sequence is dropped before each question,
    so that everything is computed: the slow twin of the same service.
    """

    def __init__(
        self, make: Callable[[], CompletionService], *, anew: bool = False
    ) -> None:
        self._make = make
        self._anew = anew
        self._documents = TargetDocuments()
        self._service: CompletionService | None = None
        self._metrics: dict[str, Any] = {}

    @property
    def service(self) -> CompletionService:
        """The running service."""
        assert self._service is not None, "start() comes first"
        return self._service

    def make(self) -> CompletionService:
        """Make a new service."""
        return self._make()

    async def start(self) -> None:
        """Make a service and wait for its model."""
        self._service = self.make()
        self._service.start()
        await self._service.ready()

    async def open(self, step: Open) -> None:
        """See `Target`."""
        self.service.document_changed(self._documents.open(step))
        self.service.document_focused(step.uri)

    async def edit(self, step: TypedEdit) -> None:
        """See `Target`."""
        self.service.document_changed(self._documents.edit(step))

    async def focus(self, uri: str) -> None:
        """See `Target`."""
        self.service.document_focused(uri)

    async def ask(self, step: Ask) -> Completion:
        """See `Target`."""
        if self._anew:
            self.service.clear_cache()
        snapshot = self._documents[step.uri]
        return await self.service.complete(Request(snapshot, step.cursor_byte))

    async def account(self, answer: Completion) -> Completion:
        """See `Target`."""
        return answer

    async def settle(self, seconds: float) -> None:
        """See `Target`."""
        if self._anew:
            return
        deadline = time.monotonic() + seconds
        idle_since = time.monotonic()
        while (now := time.monotonic()) < deadline:
            status = self.service.status()
            if status.state is State.WORKING or not status.settled:
                idle_since = now
            elif now - idle_since >= QUIET_S:
                return
            await asyncio.sleep(_POLL_S)

    async def restart(self) -> None:
        """See `Target`."""
        await self.close()
        self._documents.clear()
        await self.start()

    async def close(self) -> None:
        """See `Target`."""
        if self._service is not None:
            self._metrics = dict(self._service.status().metrics)
            await self._service.close()
            self._service = None

    @property
    def pid(self) -> int:
        """See `Target`."""
        return os.getpid()

    @property
    def metrics(self) -> dict[str, Any]:
        """See `Target`."""
        return self._metrics
