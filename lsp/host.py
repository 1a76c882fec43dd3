"""The one completion service of this process, shared by all its clients.

Imports and constructs it off the event loop after the first client has been answered,
tells listeners when its state may have changed, and ends it within a limited time.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from codekv.completion.api import State, Status
from codekv.errors import CodekvError
from lsp.daemon_thread import aside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from codekv.completion.api import CompletionService
    from codekv.config import Config

logger = logging.getLogger(__name__)

ServiceFactory: TypeAlias = "Callable[[Config, Path | None], CompletionService]"

# A step of the model takes 0.1 s; editors kill a server after 2 s or so.
CLOSE_SECONDS = 1.0


class ServiceHolder:
    """Owns the service: none before `start`, none after `close`.

    Attributes:
        failure: Why the model cannot answer, in one line for the user, or None.
    """

    def __init__(self, load: Callable[[], ServiceFactory]) -> None:
        self.service: CompletionService | None = None
        self.failure: str | None = None
        self._load = load
        self._config: Config | None = None
        self._listeners: list[Callable[[], None]] = []
        self._starting: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._closed = False
        self._paused = False
        self._num_waiting = 0
        self._ended = True

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever the state may have changed."""
        self._listeners.append(listener)

    def unsubscribe(self, listener: Callable[[], None]) -> None:
        """Stop calling `listener`."""
        self._listeners.remove(listener)

    def notify(self) -> None:
        """Tell all listeners that the state may have changed."""
        for listener in list(self._listeners):
            listener()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count somebody who waits for an answer of the service."""
        self._num_waiting += 1
        try:
            yield
        finally:
            self._num_waiting -= 1
            # Who asked may be gone: dropped work ends after its question.
            if not self._num_waiting:
                self.notify()

    async def start(self, config: Config, workspace: Path | None) -> None:
        """Create the service and begin to load; the first call counts."""
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start(config, workspace))
        await asyncio.shield(self._starting)

    def configure(self, config: Config) -> None:
        """Hand over a configuration if it is a new one."""
        if self.service is None or config == self._config:
            return
        self._config = config
        self.service.reconfigure(config)
        self._watch()

    def pause(self, *, paused: bool) -> None:
        """Stop or resume answering."""
        self._paused = paused
        if self.service is not None:
            self.service.pause(paused)
        self.notify()

    async def settled(self) -> None:
        """Wait until the model is loaded or cannot be."""
        await self._settled.wait()

    def status(self) -> Status:
        """Tell the present state."""
        if self.failure is not None:
            return Status(State.ERROR, message=self.failure)
        if self.service is None:
            return Status(State.PAUSED if self._paused else State.LOADING)
        status = self.service.status()
        if status.state not in (State.READY, State.WORKING):
            return status
        # Work that nobody waits for is nobody's business.
        state = State.WORKING if self._num_waiting else State.READY
        return replace(status, state=state)

    async def close(self) -> bool:
        """End the service and tell whether it ended in time."""
        self._closed = True
        for task in (self._watching, self._starting):
            if task is not None:
                task.cancel()
        service, self.service = self.service, None
        if service is None:
            return self._ended
        self._ended = False
        try:
            await asyncio.wait_for(service.close(), CLOSE_SECONDS)
            self._ended = True
        except TimeoutError:
            logger.warning("the service did not end within %s s", CLOSE_SECONDS)
        except Exception:
            logger.exception("the service did not end well")
        return self._ended

    async def _start(self, config: Config, workspace: Path | None) -> None:
        factory = await aside(self._load)
        if self._closed:
            return
        self._config = config
        self.service = factory(config, workspace)
        self.service.start()
        self.service.pause(self._paused)
        self._watch()

    def _watch(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        self._watching = asyncio.ensure_future(self._await_ready())

    async def _await_ready(self) -> None:
        assert self.service is not None
        self.failure = None
        self._settled.clear()
        self.notify()
        try:
            await self.service.ready()
        except CodekvError as error:
            self.failure = str(error)
        except Exception as error:
            logger.exception("the model cannot be loaded")
            self.failure = f"the model cannot be loaded: {type(error).__name__}"
        self._settled.set()
        self.notify()
