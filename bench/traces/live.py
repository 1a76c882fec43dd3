"""Keys that come on time, as a person's do: answers have to arrive between them."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.traces.sample import make_sample
from bench.traces.trace import Ask, TypedEdit
from codekv.completion.api import AnswerSource, Completion

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from bench.targets.target import Target
    from bench.traces.sample import Sample
    from bench.traces.trace import Take

READ_S = 0.5
"""How long a person who wants an offer waits for it and reads it."""

TAKEN = "taken"
"""Label of the question that follows a taken offer."""


class LiveKeys:
    """Presses keys against one target and keeps at most one question open.

    Attributes:
        samples: One per question, in order; those that were overtaken are marked.
    """

    def __init__(
        self,
        episode: str,
        target: Target,
        ask: Callable[[Ask, int], Coroutine[None, None, Sample]],
    ) -> None:
        """Press keys.

        Args:
            episode: Its name.
            target: Gets the edits.
            ask: Asks and measures the question of a number.
        """
        self._episode = episode
        self._target = target
        self._ask = ask
        self._open: tuple[Ask, asyncio.Task[Sample], float] | None = None
        self._last_key = time.perf_counter()
        self._asked = 0
        self.samples: list[Sample] = []

    async def ask(self, step: Ask) -> None:
        """Ask, and go on without waiting for the answer."""
        await self._close()
        task = asyncio.ensure_future(self._ask(step, self._asked))
        self._asked += 1
        self._open = (step, task, time.perf_counter())
        await asyncio.sleep(0)

    async def wait(self, seconds: float) -> None:
        """Wait until so long after the last key."""
        await asyncio.sleep(max(self._last_key + seconds - time.perf_counter(), 0.0))

    async def edit(self, step: TypedEdit) -> None:
        """Press a key; a question without an answer is overtaken by it."""
        await self._close()
        await self._target.edit(step)
        self._last_key = time.perf_counter()

    async def take(self, step: Take) -> None:
        """Take a text if it is on offer by now; else type it."""
        if self._open is not None:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._open[1]), READ_S)
        await self._close()
        uri, at, text = step.uri, step.start_byte, step.text
        offered = self.samples[-1].text if self.samples else ""
        if offered.startswith(text):
            self.samples[-1] = replace(self.samples[-1], taken=len(text))
            await self.edit(TypedEdit(uri, step.version, at, at, text))
            await self.ask(Ask(uri, at + len(text.encode()), TAKEN))
            return
        for number, (stroke, pause) in enumerate(zip(text, step.pauses, strict=True)):
            await self.wait(pause)
            version = step.version - len(text) + number + 1
            await self.edit(TypedEdit(uri, version, at, at, stroke))
            at += len(stroke.encode())
            await self.ask(Ask(uri, at, "type"))

    async def finish(self) -> None:
        """Wait for the answer that is still due."""
        if self._open is not None:
            self.samples.append(await self._open[1])
            self._open = None

    async def _close(self) -> None:
        """End the open question, answered or not."""
        if self._open is None:
            return
        step, task, began = self._open
        self._open = None
        if task.done():
            self.samples.append(task.result())
            return
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        latency = (time.perf_counter() - began) * 1e3
        place = (self._episode, self._asked - 1, step.label)
        nothing = Completion(source=AnswerSource.NONE, reason="overtaken")
        sample = make_sample(place, 0.0, latency, nothing, 0.0)
        self.samples.append(replace(sample, overtaken=True))
