"""One benchmark run: plan the traces, replay them against every target, sum up.

The targets run one after another, so that one model at a time is in memory and no
measurement disturbs another.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from dataclasses import asdict, dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from bench.traces import corpus
from bench.traces import generators as traces
from bench.traces.replay import Replay, ReplayPlan
from bench.traces.trace import cut
from codekv.config import cache_dir, cache_dir_at
from codekv.errors import CodekvError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from bench.targets.counting import Counted
    from bench.targets.target import Target
    from bench.traces.replay import Pace, ReplayProgress
    from bench.traces.sample import Journal, Sample
    from bench.traces.trace import Trace

MAIN = "codekv"
FRESH = "fresh"
DIVERGENCE = "divergence"
QUICK_TRACES = ("type-line", "jump")
"""What baselines and the fresh run replay in a quick run."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure.

    Attributes:
        root: The folder whose files are edited.
        names: Traces, in order; all where empty.
        files: At most so many files are edited.
        episodes: Episodes per trace; None takes the defaults.
        divergence: Requests per trace that are compared with a fresh run's logits.
        requests: As many episodes per trace as it takes for so many questions.
        pace: See `ReplayPlan`; live traces have their own.
        quick: A look instead of a measurement.
        baseline_asks: Questions per trace for baselines with memory.
        fresh_asks: Questions per trace for the fresh run.
    """

    root: Path
    names: tuple[str, ...] = ()
    files: int = 12
    episodes: int | None = None
    seed: int = 1
    pace: Pace = "max"
    quick: bool = False
    baseline_asks: int = 5
    fresh_asks: int = 6
    requests: int | None = None
    divergence: int = 0

    def num_episodes(self, name: str) -> int:
        """How many episodes a trace gets; `type-line` carries the main claim."""
        if self.episodes is not None:
            return self.episodes
        if self.requests is not None:
            return 0
        if self.quick:
            return 2 if name == "type-line" else 1
        return 12 if name == "type-line" else 3


@dataclass(frozen=True, slots=True)
class Entrant:
    """A target by name; made when its turn comes."""

    name: str
    make: Callable[[], Target]


@dataclass(slots=True)
class Result:
    """Samples by target and trace, as far as the run came.

    Attributes:
        partial: The run did not come to its end.
        error: Why, if it was not interrupted.
        counted: Tokens of every question, by baseline and trace.
        metrics: What the service told about itself at its end.
        ready_s: Seconds of every start of the service.
        background_cores: Processor cores that a background load took while it lasted.
    """

    traces: tuple[Trace, ...]
    samples: dict[str, dict[str, list[Sample]]] = field(default_factory=dict)
    counted: Mapping[str, Mapping[str, Sequence[Counted]]] = field(default_factory=dict)
    partial: bool = False
    error: str = ""
    metrics: dict[str, Any] = field(default_factory=dict)
    ready_s: list[float] = field(default_factory=list)
    background_cores: float = 0.0


def plan(options: Options) -> tuple[Trace, ...]:
    """Write the traces of a run; one without a place in the sample looks in all files.

    Raises:
        UsageError: Unknown trace, no source files, or no place for any trace.
    """
    rng = Random(options.seed)
    all_files = corpus.load(options.root)
    files = corpus.sample(all_files, options.files, rng)

    def build(name: str) -> Trace:
        counts = (options.num_episodes(name), options.seed, options.requests or 0)
        found = traces.build(name, files, *counts)
        if not found.episodes and len(files) < len(all_files):
            found = traces.build(name, all_files, *counts)
        return found

    names = options.names or traces.BY_DEFAULT
    built = tuple(trace for trace in map(build, names) if trace.episodes)
    if not built:
        raise UsageError(f"{options.root}: {'; '.join(absent(options, built))}")
    return built


def absent(options: Options, built: Sequence[Trace]) -> tuple[str, ...]:
    """Say which traces were left out, and what the files would need for them."""
    names = options.names or traces.BY_DEFAULT
    known = {trace.name for trace in built}
    return tuple(traces.why_absent(name) for name in names if name not in known)


def run_id(options: Options, config: Any, built: Sequence[Trace]) -> str:
    """Name a run by everything that its samples depend on."""
    chosen = {key: str(value) for key, value in asdict(options).items()}
    digests = [trace.digest for trace in built]
    text = json.dumps([chosen, config, digests], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def scratch(run: str) -> Path:
    """The folder of one run's journal and block store."""
    return cache_dir() / "bench" / run


def private_store(run: str) -> AbstractContextManager[None]:
    """Give services in this process a block store of the run's own.

    A store that outlives the run would make the next one warm.
    """
    return cache_dir_at(scratch(run) / "store")


async def execute(
    options: Options,
    built: tuple[Trace, ...],
    entrants: Sequence[Entrant],
    journal: Journal,
    progress: ReplayProgress,
) -> Result:
    """Replay all traces against all entrants; a run that is cut gives what it has."""
    result = Result(built)
    try:
        for entrant in entrants:
            held = result.samples.setdefault(entrant.name, {})
            target = entrant.make()
            how = plan_for(entrant.name, options)
            async with Replay(target, how, journal, progress) as replay:
                for trace in _chosen(entrant.name, built, options):
                    every = _every(entrant.name, trace, options)
                    held[trace.name] = await replay.play(trace, every)
            if entrant.name == MAIN:
                result.metrics, result.ready_s = target.metrics, replay.ready_s
                result.background_cores = replay.load.cores
    except asyncio.CancelledError:
        result.partial = True
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()
        _collect(result, entrants, journal, options)
    except CodekvError as error:
        result.partial, result.error = True, str(error)
        _collect(result, entrants, journal, options)
    return result


def plan_for(name: str, options: Options) -> ReplayPlan:
    """How one entrant is replayed."""
    settle = 1.2 if options.quick else 120.0
    if name == MAIN:
        return ReplayPlan(name, options.pace, settle=settle)
    if name == DIVERGENCE:
        return ReplayPlan(name, options.pace)
    if name == FRESH:
        return ReplayPlan(name)
    return ReplayPlan(name, max_asks=options.baseline_asks)


def remove(run: str) -> None:
    """Delete a finished run's scratch folder."""
    shutil.rmtree(scratch(run), ignore_errors=True)


def _chosen(name: str, built: Sequence[Trace], options: Options) -> tuple[Trace, ...]:
    if name == DIVERGENCE:
        return tuple(cut(trace, options.divergence) for trace in built)
    if name == MAIN or not options.quick:
        return tuple(built)
    return tuple(trace for trace in built if trace.name in QUICK_TRACES)


def _every(name: str, trace: Trace, options: Options) -> int:
    if name != FRESH:
        return 1
    return max(1, round(trace.num_asks / options.fresh_asks))


def _collect(
    result: Result, entrants: Sequence[Entrant], journal: Journal, options: Options
) -> None:
    """Fill in what the journal has of the interrupted trace."""
    for entrant in entrants:
        held = result.samples.setdefault(entrant.name, {})
        for trace in _chosen(entrant.name, result.traces, options):
            samples = [
                sample
                for episode in trace.episodes
                for sample in journal.get(
                    (entrant.name, f"{trace.name} {trace.digest}", episode.name)
                )
                or ()
            ]
            if samples:
                held[trace.name] = samples
