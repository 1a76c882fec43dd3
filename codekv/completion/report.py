"""What the service tells the monitor, the status file and the metrics endpoint.

Numbers only; no text of the user's ever gets here.
"""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codekv.completion.api import AnswerSource, Feedback
from codekv.config import ServerConfig, cache_dir
from codekv.monitor.monitor import Monitor
from codekv.monitor.output import (
    JsonLinesLog,
    StatusFile,
    serve_prometheus,
    status_dir,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from codekv.completion.api import Completion, Status
    from codekv.config import Config
    from codekv.engine.worker import Effort
    from codekv.storage.blockstore import BlockStore
    from codekv.storage.stats import StoreStats

log = logging.getLogger(__name__)

FOLLOW_EVERY_S = 2.0
"""Between two looks at a service that is at work."""

_COUNTS = {
    Feedback.SHOWN: "shown",
    Feedback.ACCEPTED: "accepted",
    Feedback.PARTIALLY_ACCEPTED: "partially_accepted",
}


_EVICTIONS = {
    "evicted_ram": "guard",
    "evicted_disk": "disk",
    "purged": "purge",
    "reset": "topic",
}
"""Counters of the store that say a block went, and the reason in the monitor."""


_GUARD = ("guarded", "gave_way", "live_dropped", "out_of_memory")
"""Counters of the store that say what the memory guard did."""


class Reporter:
    """Feeds a `Monitor` and publishes what it knows."""

    def __init__(self, config: Config) -> None:
        self._log: JsonLinesLog | None = None
        self._counted: dict[str, int] = {}
        self._load_ms = 0.0
        self._monitor = Monitor(settings=config.model_dump(), sink=self._write)
        self._file = StatusFile(status_dir(cache_dir()))
        self._following: asyncio.Task[None] | None = None
        self._stop: Callable[[], None] | None = None
        self._server = ServerConfig()
        self._open(config.server)

    def completed(self, completion: Completion, store: BlockStore | None) -> None:
        """Note an answer."""
        tokens, timing = completion.tokens, completion.timing
        if completion.source is AnswerSource.NONE:
            return
        if completion.source is AnswerSource.TYPED_THROUGH:
            self._monitor.record(kind="typed-through", latency_ms=timing.total)
            return
        self._monitor.record(
            kind="model",
            latency_ms=timing.total,
            ttft_ms=timing.ttft,
            decode_ms=timing.decode,
            exact=tokens.exact,
            restored=tokens.restored,
            moved=tokens.moved,
            computed=tokens.computed,
            reuse_stop=completion.reuse_stop,
            longest_run=completion.longest_run,
            **(self._store_metrics(store.stats()) if store else {}),
        )

    def _store_metrics(self, stats: StoreStats) -> dict[str, float]:
        """What the store did since the last answer; evictions are recorded here."""
        counts, last = stats.counters, self._counted
        new = {name: count - last.get(name, 0) for name, count in counts.items()}
        self._counted = counts
        for name, reason in _EVICTIONS.items():
            if new.get(name, 0) > 0:
                self._monitor.record(evicted=new[name], eviction=reason)
        metrics = {
            "memory_mb": (stats.ram_bytes + stats.live_bytes) / 2**20,
            "live_mb": stats.live_bytes / 2**20,
            "live_shared_mb": stats.live_shared_bytes / 2**20,
            **{name: new.get(name, 0) for name in _GUARD},
        }
        total = stats.load_ms_mean * _num_loads(counts)
        loads = _num_loads(new)
        if loads > 0:
            metrics["load_ms"] = max(total - self._load_ms, 0.0) / loads
            metrics["disk_loads"] = new.get("loaded_disk", 0)
        self._load_ms = total
        return metrics

    def cancelled(self) -> None:
        """Note a request that was dropped."""
        self._monitor.record(cancelled=1)

    def feedback(self, kind: Feedback) -> None:
        """Note what became of an item."""
        self._monitor.record(kind="feedback", **{_COUNTS[kind]: 1})

    def metrics(self) -> dict[str, float]:
        """The present numbers."""
        return self._monitor.snapshot()

    def advice(self) -> tuple[str, ...]:
        """What to change, if anything."""
        return self._monitor.advice()

    def publish(self, status: Callable[[], Status]) -> bool:
        """Let `codekv top` see the state; at most once a second.

        Returns:
            Whether nothing is left to be done and to be told.
        """
        now = status()
        last = now.last
        told = {
            "state": now.state.value,
            "model": now.model,
            "message": now.message,
            "metrics": now.metrics,
            "advice": list(now.advice),
            "settled": now.settled,
            "last_ms": last.timing.total if last else None,
        }
        self._file.write(told)
        return now.settled and self._file.holds(told)

    def follow(self, status: Callable[[], Status]) -> None:
        """Publish now and then until everything has come to rest.

        Idle work goes on after an answer and may end long after it. Needs a running
        event loop; without one nothing is followed.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        if self._following is None or self._following.done():
            self._following = loop.create_task(self._follow(status))

    async def _follow(self, status: Callable[[], Status]) -> None:
        is_done = False
        while not is_done:
            await asyncio.sleep(FOLLOW_EVERY_S)
            is_done = self.publish(status)

    def reconfigure(self, config: Config) -> None:
        """Judge by new settings from now on, and publish where they say."""
        self._monitor.settings = config.model_dump()
        self._open(config.server)

    def close(self) -> None:
        """Remove the status file and end the endpoint."""
        if self._following is not None:
            self._following.cancel()
        self._file.__exit__(None, None, None)
        self._open(ServerConfig())

    def _write(self, record: Mapping[str, Any]) -> None:
        if self._log is not None:
            self._log(record)

    def _open(self, server: ServerConfig) -> None:
        """Begin and end the outputs that differ from what is open."""
        old, self._server = self._server, server
        if old.metrics_file != server.metrics_file:
            if self._log is not None:
                self._log.close()
            self._log = _opened(server.metrics_file)
        if old.metrics_port != server.metrics_port:
            if self._stop is not None:
                self._stop()
            self._stop = _served(self._monitor, server.metrics_port)


def _opened(path: str | None) -> JsonLinesLog | None:
    """A log of records, or None where none is wanted or possible."""
    if not path:
        return None
    try:
        return JsonLinesLog(Path(path).expanduser())
    except OSError as error:
        log.warning("metrics file %s: %s", path, os.strerror(error.errno or 0))
        return None


def _served(monitor: Monitor, port: int) -> Callable[[], None] | None:
    """Answer scrapes; a function that ends that, or None where it is not done."""
    if not port:
        return None
    try:
        return serve_prometheus(monitor.snapshot, port)
    except OSError as error:
        log.warning("metrics port %d: %s", port, os.strerror(error.errno or 0))
        return None


def _num_loads(counts: dict[str, int]) -> int:
    return counts.get("loaded_ram", 0) + counts.get("loaded_disk", 0)


def typing_costs(
    effort: Effort, num_changes: int, num_dropped: int
) -> dict[str, float]:
    """Tell what typing costs in processor time, and how much of it was in vain.

    Args:
        effort: What the worker has spent.
        num_changes: Changes of documents so far; nothing is told before the first.
        num_dropped: Tokens computed for questions that were given up.
    """
    if not num_changes:
        return {}
    total = max(effort.total_s, 1e-9)
    return {
        "processor_ms_per_change": effort.total_s * 1e3 / num_changes,
        "processor_share_dropped": effort.dropped_s / total,
        "processor_share_idle": effort.idle_s / total,
        "tokens_dropped": float(num_dropped),
    }
