"""Plays traces against a target and measures every question.

The clock stands around `Target.ask` alone. Knows nothing of models or statistics.
"""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import psutil

from bench.traces.generators import LIVE_TRACES
from bench.traces.live import LiveKeys
from bench.traces.load import BackgroundLoad
from bench.traces.sample import make_sample
from bench.traces.trace import (
    ARRIVE,
    Ask,
    Focus,
    Load,
    Open,
    Pause,
    Probe,
    Restart,
    Settle,
    Take,
    TypedEdit,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.targets.target import Target
    from bench.traces.sample import Divergence, Journal, Sample
    from bench.traces.trace import Episode, Step, Trace

Pace = Literal["human", "max", "live"]


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """How to replay against one target.

    Attributes:
        name: The target's name in the journal and in reports.
        pace: `max` does not wait between keystrokes; `human` waits after each answer;
            with `live`, keys come on time, whether or not there is an answer.
        max_asks: Replay only as many episodes, spread over the trace, as hold so
            many questions; None for all.
        settle: Upper limit of seconds for the reading steps of a trace.
    """

    name: str
    pace: Pace = "max"
    max_asks: int | None = None
    settle: float = 120.0


class ReplayProgress(Protocol):
    """Told how far a replay is; `rich` or nothing."""

    def trace(self, target: str, name: str, episodes: int) -> None:
        """A trace begins."""

    def episode(self, samples: Sequence[Sample]) -> None:
        """An episode is done."""


@runtime_checkable
class Probing(Protocol):
    """A target that can look behind its last answer."""

    async def probe(self) -> Divergence | None:
        """Compare the last answer with a fresh run; None if it has none."""


class Replay:
    """One target and one plan over many traces.

    Use it as an async context manager; the target is started at the first episode
    that is not in the journal, so a finished run costs nothing to take up again.

    Attributes:
        ready_s: Seconds until the target could answer, for every start and restart.
    """

    def __init__(
        self,
        target: Target,
        plan: ReplayPlan,
        journal: Journal,
        progress: ReplayProgress,
    ) -> None:
        self._target = target
        self._plan = plan
        self._journal = journal
        self._progress = progress
        self._started = False
        self._asks = 0
        self._is_live = False
        self.ready_s: list[float] = []
        self._begin = time.monotonic()
        self.load = BackgroundLoad()

    async def __aenter__(self) -> Replay:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.load.stop()
        if self._started:
            await self._target.close()

    async def play(self, trace: Trace, every: int = 1) -> list[Sample]:
        """Replay a trace's episodes, except those in the journal.

        With `every`, only every so many questions are asked, which is enough for
        targets that remember nothing.
        """
        plan = self._plan
        self._asks = 0
        self._is_live = plan.pace == "live" or trace.name in LIVE_TRACES
        episodes = spread(trace.episodes, plan.max_asks)
        self._progress.trace(plan.name, trace.name, len(episodes))
        samples: list[Sample] = []
        for episode in episodes:
            key = (plan.name, f"{trace.name} {trace.digest}", episode.name)
            done = self._journal.get(key)
            if done is None:
                done = await self._episode(episode, every)
                self._journal.add(key, done)
            self._asks += sum(
                isinstance(step, Ask) and step.label != ARRIVE for step in episode.steps
            )
            samples.extend(done)
            self._progress.episode(done)
        return samples

    async def _episode(self, episode: Episode, every: int) -> list[Sample]:
        if not self._started:
            began = time.perf_counter()
            await self._target.start()
            self.ready_s.append(time.perf_counter() - began)
            self._started = True
        if self._is_live and every == 1:
            return await self._live(episode)
        samples: list[Sample] = []
        index = counted = 0
        for step in episode.steps:
            if isinstance(step, Ask):
                # Counted over the whole trace, so that every phase gets its turn;
                # arrivals are told apart and need no sample.
                is_counted = step.label != ARRIVE
                turn = is_counted and (self._asks + counted) % every == 0
                if every == 1 or turn:
                    samples.append(await self._ask(step, episode, index))
                index += 1
                counted += is_counted
            elif isinstance(step, Probe):
                samples[-1] = await self._probe(samples[-1])
            else:
                await self._step(step)
        return samples

    async def _live(self, episode: Episode) -> list[Sample]:
        """Press keys on time; a question lives until the next key at most."""
        keys = LiveKeys(
            episode.name, self._target, lambda ask, n: self._ask(ask, episode, n)
        )
        for step in episode.steps:
            match step:
                case Ask():
                    await keys.ask(step)
                case Pause(seconds):
                    await keys.wait(seconds)
                case TypedEdit():
                    await keys.edit(step)
                case Take():
                    await keys.take(step)
                case _:
                    await keys.finish()
                    await self._step(step)
        await keys.finish()
        return keys.samples

    async def _probe(self, sample: Sample) -> Sample:
        target = self._target
        if not isinstance(target, Probing):
            return sample
        return replace(sample, divergence=await target.probe())

    async def _step(self, step: Step) -> None:
        target = self._target
        match step:
            case Open():
                await target.open(step)
            case TypedEdit():
                await target.edit(step)
            case Focus(uri):
                await target.focus(uri)
            case Pause(seconds):
                if self._plan.pace == "human":
                    await asyncio.sleep(seconds)
            case Take(uri, version, start, text):
                # Whether it is on offer is a question of time that only `live` asks.
                edit = TypedEdit(uri, version, start, start, text)
                await target.edit(edit)
            case Load(cores):
                self.load.set_cores(cores)
            case Settle(seconds):
                await target.settle(min(seconds, self._plan.settle))
            case Restart():
                began = time.perf_counter()
                await target.restart()
                self.ready_s.append(time.perf_counter() - began)

    async def _ask(self, step: Ask, episode: Episode, index: int) -> Sample:
        began = time.perf_counter()
        answer = await self._target.ask(step)
        latency = (time.perf_counter() - began) * 1000
        answer = await self._target.account(answer)
        at_s = time.monotonic() - self._begin
        pid = self._target.pid
        rss = psutil.Process(pid).memory_info().rss / 2**20 if pid else 0.0
        place = (episode.name, index, step.label)
        return make_sample(place, at_s, latency, answer, rss)


def spread(episodes: Sequence[Episode], asks: int | None) -> Sequence[Episode]:
    """Choose evenly from all episodes as many as hold about so many questions."""
    total = sum(episode.num_asks for episode in episodes)
    if asks is None or asks >= total:
        return episodes
    count = max(1, math.ceil(asks * len(episodes) / total))
    return [episodes[index * len(episodes) // count] for index in range(count)]
