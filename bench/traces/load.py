"""A background load: processes that keep cores busy, and how much of them they got."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress

import psutil

BUSY_LOOP = "while True: pass"


class BackgroundLoad:
    """Keeps some cores busy until told otherwise.

    Attributes:
        cpu_s: Processor seconds that ended load took.
        wall_s: Seconds that it lasted.
    """

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self.wall_s = 0.0
        self._since = 0.0
        self._running: list[subprocess.Popen[bytes]] = []

    def set_cores(self, count: int) -> None:
        """Keep this many cores busy from now on."""
        self.stop()
        self._since = time.monotonic()
        # Isolated, so that nothing of the measured folder is imported.
        command = [sys.executable, "-I", "-c", BUSY_LOOP]
        self._running = [subprocess.Popen(command) for _ in range(count)]

    def stop(self) -> None:
        """End all of it."""
        for process in self._running:
            with suppress(psutil.Error):
                times = psutil.Process(process.pid).cpu_times()
                self.cpu_s += times.user + times.system
            process.kill()
            process.wait()
        if self._running:
            self.wall_s += time.monotonic() - self._since
        self._running = []

    @property
    def cores(self) -> float:
        """Cores that ended load kept busy on average; 0 if there was none."""
        return self.cpu_s / self.wall_s if self.wall_s else 0.0
