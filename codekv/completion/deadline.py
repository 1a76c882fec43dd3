"""A deadline that holds: offer what stands at the budget, and go on computing.

`soft` offers a text that is cut at a sensible end, if there is one by then, else waits
for the whole answer. `hard` answers at the deadline in any case, with nothing if
nothing sensible stands. The rest is remembered like any answer: it is there when the
editor asks again, or once the cut text is taken.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING, TypeVar

from codekv.completion.api import AnswerSource, Completion

if TYPE_CHECKING:
    from collections.abc import Callable

    from codekv.cooperative import Cooperative

T = TypeVar("T")

LATE = "late"
"""Reason of an answer that has nothing because the deadline came first."""

MARGIN_S = 0.02
"""Time for the way back through threads, the protocol and the editor: p95 of what the
language server adds to the engine's own time is below 30 ms, both ways together."""


class Deadline:
    """The deadline of one request, shared by the event loop and the engine's thread."""

    def __init__(self, at: float, *, is_hard: bool) -> None:
        """Begin to watch; needs a running event loop.

        Args:
            at: Clock time in seconds (`time.perf_counter`).
            is_hard: Whether nothing is offered where nothing sensible stands.
        """
        self._at = at - MARGIN_S
        self._is_hard = is_hard
        self._loop = asyncio.get_running_loop()
        self._cut: asyncio.Future[Completion] = self._loop.create_future()
        self._is_told = False

    def watch(
        self,
        steps: Cooperative[T],
        step_s: float,
        look: Callable[[], Completion | None],
    ) -> Cooperative[T]:
        """Do work and offer what stands before the step that would come too late.

        Args:
            steps: The work; told nothing.
            step_s: Seconds that one of its steps takes.
            look: What may be offered of the work so far; None if nothing makes sense.
        """
        with closing(steps):
            while True:
                try:
                    next(steps)
                except StopIteration as stop:
                    return stop.value  # type: ignore[no-any-return]
                if not self._is_told and time.perf_counter() + step_s > self._at:
                    found = look()
                    if found is not None:
                        self._tell(found)
                yield

    async def first(self, work: asyncio.Task[Completion]) -> Completion:
        """Wait for the answer, or for what stands at the deadline; then work goes on.

        Raises:
            CancelledWorkError: As the work does.
        """
        left = self._at - time.perf_counter() if self._is_hard else None
        try:
            await asyncio.wait(
                {work, self._cut},
                timeout=None if left is None else max(left, 0.0),
                return_when=asyncio.FIRST_COMPLETED,
            )
        except asyncio.CancelledError:
            work.cancel()
            raise
        if work.done():
            return work.result()
        if self._cut.done():
            return self._cut.result()
        return Completion(source=AnswerSource.NONE, reason=LATE)

    def _tell(self, completion: Completion) -> None:
        self._is_told = True
        # The loop may be gone by the time that dropped work gets here.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._take, completion)

    def _take(self, completion: Completion) -> None:
        if not self._cut.done():
            self._cut.set_result(completion)


def deadline_for(setting: str, at: float) -> Deadline | None:
    """The deadline that `completion.deadline` asks for at a clock time in seconds."""
    return None if setting == "off" else Deadline(at, is_hard=setting == "hard")


def forget_outcome(task: asyncio.Task[Completion]) -> None:
    """Fetch the outcome of work whose asker has been answered, or it is reported."""
    if not task.cancelled():
        task.exception()
