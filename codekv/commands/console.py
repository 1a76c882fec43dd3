"""What commands share: the console, and a progress bar for downloads.

Results go to standard output, everything else to standard error.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


class PullProgress:
    """Shows a pull: one bar per file on a terminal, plain lines elsewhere."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task: TaskID | None = None

    def start(self, label: str, total: int, done: int) -> None:
        """A file begins, `done` of its `total` bytes being here already."""
        if not self._bars.console.is_terminal:
            err.print(f"fetching {label} ({total / 1e6:.0f} MB)", markup=False)
        self._task = self._bars.add_task(label, total=total, completed=done)

    def advance(self, num_bytes: int) -> None:
        """Bytes of the current file arrived."""
        if self._task is not None:
            self._bars.advance(self._task, num_bytes)

    def say(self, line: str) -> None:
        """One line for the user."""
        self._bars.console.print(line, markup=False)


@contextmanager
def pull_progress() -> Iterator[PullProgress]:
    """Show bars on standard error while the block runs."""
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=err,
        disable=not err.is_terminal,
    )
    with bars:
        yield PullProgress(bars)
