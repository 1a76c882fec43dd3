"""`Monitor`: the one object the engine reports to and status displays read from."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from codekv.monitor.advice import Finding, Verdict, judge
from codekv.monitor.history import GRADES, History
from codekv.percentiles import percentile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Requests: a few minutes of typing.
DEFAULT_WINDOW = 256

_COUNTERS = frozenset({"cancelled", "shown", "accepted", "partially_accepted"})

_GUARD = frozenset({"guarded", "gave_way", "live_dropped", "out_of_memory"})
"""What the memory guard did; see `codekv.cache.events.Event`."""


class Monitor:
    """Keeps the last `window` measurements of each kind; safe from any thread.

    `settings` are the ones in force, as nested mappings; they sharpen the advice and
    may be replaced at any time. `sink` is told every record, for a log.
    """

    def __init__(
        self,
        window: int = DEFAULT_WINDOW,
        settings: Mapping[str, Any] | None = None,
        sink: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        self.settings = settings
        self._history = History(window)
        self._sink = sink
        self._lock = threading.Lock()

    def record(self, *, kind: str = "request", **metrics: Any) -> None:
        """Note measurements of one event; any subset of the names below.

        - `latency_ms` (counts a request of this `kind`), `ttft_ms`, `decode_ms`;
        - `exact`, `restored`, `moved`, `computed`: context tokens by grade;
        - `reuse_stop`: why reuse ended, `""` if it did not;
        - `load_ms` per batch of restored blocks, `disk_loads` blocks from disk;
        - `memory_mb` held by stored blocks and live sequences, `live_mb` by the latter,
          and `live_shared_mb` more if these shared nothing;
        - `guarded`, `gave_way`, `live_dropped`, `out_of_memory`: how often the memory
          guard acted, and upon what;
        - `evicted` blocks with `eviction` as the reason;
        - `cancelled`, `shown`, `accepted`, `partially_accepted`: how many;
        - `longest_run`: most equal tokens in a row in a prompt.

        Other numbers are kept as series of their own. Costs a few microseconds.
        """
        with self._lock:
            self._take(kind, metrics)
            if self._sink is not None:
                self._sink({"kind": kind, **metrics})

    def analyze(self) -> tuple[Finding, ...]:
        """Judge the window against the healthy thresholds."""
        with self._lock:
            return judge(self._history, self.settings)

    def advice(self) -> tuple[str, ...]:
        """All sentences of advice; empty when everything is healthy."""
        return tuple(
            sentence
            for finding in self.analyze()
            if finding.verdict is Verdict.WARN
            for sentence in finding.advice
        )

    def snapshot(self) -> dict[str, float]:
        """The present numbers under flat names, for status displays."""
        with self._lock:
            return _numbers(self._history)

    def _take(self, kind: str, metrics: dict[str, Any]) -> None:
        history = self._history
        if "computed" in metrics:
            history.add_tokens(tuple(int(metrics.get(g, 0)) for g in GRADES))
        stop = metrics.get("reuse_stop")
        if stop:
            history.add_stop(str(stop))
        evicted = metrics.get("evicted")
        if evicted:
            history.add_evictions(str(metrics.get("eviction", "size")), int(evicted))
        for name, value in metrics.items():
            if name == "latency_ms":
                history.add_latency(kind, value)
                history.totals["requests"] += 1
                history.outcomes.append("answered")
            elif name in _COUNTERS or name in _GUARD:
                history.totals[name] += int(value)
                if name == "cancelled" and value:
                    history.outcomes.append("cancelled")
            elif name not in _TAKEN and isinstance(value, int | float):
                history.add_value(name, value)


_TAKEN = frozenset({*GRADES, "reuse_stop", "evicted", "eviction"})


def _numbers(history: History) -> dict[str, float]:
    numbers: dict[str, float] = {
        name: history.totals[name]
        for name in ("requests", *sorted(_COUNTERS | _GUARD), "evictions")
    }
    for grade, count in history.grade_totals().items():
        numbers[f"tokens_{grade}"] = count
    put(numbers, "hit_rate", history.hit_rate())
    put(numbers, "memory_swing", history.memory_swing())
    lengths = [float(sum(row)) for row in history.tokens]
    for name, share in (("p50", 0.5), ("p95", 0.95)):
        put(numbers, f"context_{name}", percentile(lengths, share))
        everything = [ms for held in history.latency.values() for ms in held]
        put(numbers, f"latency_ms_{name}", percentile(everything, share))
        for kind, held in history.latency.items():
            put(numbers, f"latency_ms_{name}.{kind}", percentile(held, share))
        for series, held in history.values.items():
            put(numbers, f"{series}_{name}", percentile(held, share))
    for held_by in ("memory_mb", "live_mb", "live_shared_mb"):
        size = history.series(held_by)
        put(numbers, held_by, size[-1] if size else None)
    for bound, count in history.lengths().items():
        numbers[f"lengths.{bound}"] = count
    for reason, count in history.eviction_reasons.items():
        numbers[f"evictions.{reason}"] = count
    for reason, count in history.stop_reasons.items():
        numbers[f"reuse_stop.{reason}"] = count
    return numbers


def put(numbers: dict[str, float], name: str, value: float | None) -> None:
    """Set a number unless there is none."""
    if value is not None:
        numbers[name] = round(float(value), 4)
