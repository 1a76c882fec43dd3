"""Progress of a run on a terminal; one line per trace where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from codekv.percentiles import percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from bench.traces.sample import Sample


class RichProgress:
    """A bar per trace with the median latency so far; a context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = Progress(
            TextColumn("{task.fields[target]:<14} {task.description:<24}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:>4.0f}/{task.total:<4.0f} {task.fields[note]}"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task: TaskID | None = None
        self._latencies: list[float] = []

    def __enter__(self) -> RichProgress:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def trace(self, target: str, name: str, episodes: int) -> None:
        """See `Progress`."""
        self._latencies = []
        if not self._console.is_terminal:
            self._console.print(f"{target}: {name}, {episodes} episodes")
        if self._task is not None:
            self._bars.stop_task(self._task)
        self._task = self._bars.add_task(name, total=episodes, target=target, note="")

    def episode(self, samples: Sequence[Sample]) -> None:
        """See `Progress`."""
        self._latencies += [sample.latency for sample in samples]
        median = percentile(self._latencies, 0.5) or 0.0
        if self._task is not None:
            self._bars.update(self._task, advance=1, note=f"p50 {median:.0f} ms")
