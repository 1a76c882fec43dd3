"""Where measurements go besides the status: a log file, a scraper, `codekv top`.

Paths and ports are given; nothing here decides whether it is wanted. A disk that is
full or read-only ends the output, never the work.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psutil
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily

from codekv.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

# One line takes 200 to 400 bytes: some 50,000 answers.
MAX_LOG_BYTES = 16 * 2**20
STATUS_EVERY_S = 1.0


class JsonLinesLog:
    """Writes every record as one JSON line; numbers and reasons only, never text.

    At `MAX_LOG_BYTES` the file is renamed to `.old`, so two such files exist at most.
    """

    def __init__(self, path: Path, limit: int = MAX_LOG_BYTES) -> None:
        self._path = path
        self._limit = limit
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def __call__(self, record: Mapping[str, Any]) -> None:
        """Write one record; after a failed write nothing more is written."""
        if self._file.closed:
            return
        line = json.dumps({"time": round(time.time(), 3), **record}, default=str)
        try:
            self._file.write(line + "\n")
            if self._file.tell() > self._limit:
                self._file.close()
                self._path.replace(self._path.with_name(self._path.name + ".old"))
                self._file = self._path.open("a", encoding="utf-8", buffering=1)
        except OSError:
            with suppress(OSError):
                self._file.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Scrape:
    """A collector for the official client library: every number as a gauge."""

    def __init__(self, numbers: Callable[[], Mapping[str, float]]) -> None:
        self._numbers = numbers

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Called for every scrape."""
        families: dict[str, GaugeMetricFamily] = {}
        for name, value in self._numbers().items():
            base, _, label = name.partition(".")
            key = f"codekv_{base}" + ("_by" if label else "")
            family = families.get(key)
            if family is None:
                words = base.replace("_", " ")
                family = families[key] = GaugeMetricFamily(
                    key, f"{words} of this server", labels=["name"] if label else []
                )
            family.add_metric([label] if label else [], value)
        return families.values()


def serve_prometheus(
    numbers: Callable[[], Mapping[str, float]], port: int
) -> Callable[[], None]:
    """Answer scrapes on the loopback address only.

    Returns:
        A function that stops answering.
    """
    registry = CollectorRegistry()
    registry.register(Scrape(numbers))
    server, thread = start_http_server(port, addr="127.0.0.1", registry=registry)

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return stop


class StatusFile:
    """One server's status as a file that `codekv top` reads; use it with `with`.

    Written whole or not at all, and at most once a second.
    """

    def __init__(self, folder: Path, pid: int | None = None) -> None:
        self._path = folder / f"{pid or os.getpid()}.json"
        self._written: Mapping[str, Any] | None = None
        self._next = 0.0

    def __enter__(self) -> StatusFile:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def write(self, status: Mapping[str, Any], now: float | None = None) -> bool:
        """Write if something changed and the last write is old enough."""
        now = time.monotonic() if now is None else now
        if status == self._written or now < self._next:
            return False
        self._written, self._next = dict(status), now + STATUS_EVERY_S
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._path, json.dumps({"time": time.time(), **status}))
        except OSError:
            return False
        return True

    def holds(self, status: Mapping[str, Any]) -> bool:
        """Whether this is what was written last."""
        return status == self._written


def read_statuses(folder: Path) -> dict[int, dict[str, Any]]:
    """Every running server's status by process id; removes what dead ones left."""
    found: dict[int, dict[str, Any]] = {}
    if not folder.is_dir():
        return found
    for path in sorted(folder.glob("*.json")):
        if not path.stem.isdigit():
            continue
        if not psutil.pid_exists(int(path.stem)):
            with suppress(OSError):
                path.unlink()
            continue
        with suppress(OSError, ValueError):
            status = json.loads(path.read_text("utf-8"))
            if isinstance(status, dict):
                found[int(path.stem)] = status
    return found


def status_dir(cache: Path) -> Path:
    """Where servers leave their status, given the cache folder."""
    return cache / "status"
