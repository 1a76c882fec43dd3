"""A run's result as the JSON that every output is made from; see `README.md`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from bench.quality.divergence import summary as divergence
from bench.reports.summary import overall_hit_rate, trace_summary
from bench.run import DIVERGENCE, FRESH, MAIN
from codekv.monitor import Monitor
from codekv.percentiles import spread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.run import Result
    from bench.traces.sample import Sample

OUR_LAYOUT = (FRESH, "common-prefix")
"""Baselines that send the service's own prompts, without a latency budget."""

SHORT = 0.8
"""Contexts shorter than this share of a baseline's are noted."""

SCHEMA = 1
"""Grows when a name changes its meaning or goes; not when one is added."""


def report(result: Result, about: Mapping[str, Any]) -> dict[str, Any]:
    """Write the report.

    Args:
        result: What was measured.
        about: Host, model, speed, seed, pace, command and configuration.
    """
    compared = result.samples.get(DIVERGENCE, {})
    twin = result.samples.get(FRESH, {})
    rows = [
        trace_summary(name, samples, twin.get(name, ()))
        | {
            "repositories": _repositories(result, name),
            "divergence": divergence(compared.get(name, ())),
        }
        for name, samples in result.samples.get(MAIN, {}).items()
        if samples
    ]
    names = [row["name"] for row in rows]
    baselines = [
        {"name": name, "traces": _baseline(result, name, names)}
        for name in dict.fromkeys((*result.samples, *result.counted))
        if name not in {MAIN, DIVERGENCE}
    ]
    return {
        "schema": SCHEMA,
        "partial": result.partial,
        "error": result.error,
        **about,
        "start": {
            "starts": len(result.ready_s),
            "ready_s": spread(result.ready_s, "p50", "max"),
            "background_cores": round(result.background_cores, 2),
            "rss_mb": spread(_memory(result), "p50", "max"),
        },
        "digests": {trace.name: trace.digest for trace in result.traces},
        "hit_rate": overall_hit_rate(rows),
        "traces": rows,
        "baselines": baselines,
        "notes": notes(rows, baselines),
        "monitor": _monitor(result, about.get("config")),
        "series": _series(result),
    }


def notes(
    rows: Sequence[Mapping[str, Any]], baselines: Sequence[Mapping[str, Any]]
) -> list[str]:
    """What a reader must know before comparing the numbers."""
    others: dict[str, float] = {}
    for base in baselines:
        if base["name"] not in OUR_LAYOUT:
            continue
        for row in base["traces"]:
            context = row["context_tokens"]["p50"]
            others[row["name"]] = max(others.get(row["name"], 0.0), context)
    short = [
        row["name"]
        for row in rows
        if row["context_tokens"]["p50"] < SHORT * others.get(row["name"], 0.0)
    ]
    if not short:
        return []
    return [
        "The latency budget cut codekv's context below that of the baselines in "
        f"{', '.join(short)}: compare with --budget 60000, or on an idle machine."
    ]


def _baseline(result: Result, name: str, traces: Sequence[str]) -> list[dict[str, Any]]:
    """A baseline's rows: timings of what it was asked, tokens of everything."""
    played, counted = result.samples.get(name, {}), result.counted.get(name, {})
    return [
        trace_summary(trace, played.get(trace, ()), counted=counted.get(trace, ()))
        for trace in traces
        if played.get(trace) or counted.get(trace)
    ]


def _repositories(result: Result, name: str) -> dict[str, int]:
    """How many requests each repository has in a trace."""
    counts: Counter[str] = Counter()
    for trace in result.traces:
        for episode in trace.episodes if trace.name == name else ():
            counts[episode.repository] += episode.num_counted
    return dict(counts.most_common())


def _memory(result: Result) -> list[float]:
    played = result.samples.get(MAIN, {})
    return [sample.rss_mb for samples in played.values() for sample in samples]


def _monitor(result: Result, settings: Any) -> dict[str, Any]:
    """Judge the run as a running server would be judged."""
    played = result.samples.get(MAIN, {})
    monitor = Monitor(sum(map(len, played.values())) or 1, settings)
    for name, samples in played.items():
        for sample in samples:
            monitor.record(kind=name, **_metrics(sample))
    return {
        "hit_rate": monitor.snapshot().get("hit_rate"),
        "findings": [
            {
                "name": finding.name,
                "verdict": str(finding.verdict),
                "value": finding.value,
                "healthy": finding.healthy,
            }
            for finding in monitor.analyze()
        ],
        "advice": list(monitor.advice()),
        "service": result.metrics,
    }


def _metrics(sample: Sample) -> dict[str, Any]:
    metrics: dict[str, Any] = {"latency_ms": sample.latency}
    if sample.context:
        metrics |= {
            "ttft_ms": sample.ttft,
            "exact": sample.exact,
            "restored": sample.restored,
            "moved": sample.moved,
            "computed": sample.computed,
            "reuse_stop": sample.reuse_stop,
            "memory_mb": sample.rss_mb,
        }
    return metrics


def _series(result: Result) -> dict[str, list[list[Any]]]:
    """Per trace, one short row per request: what the plots are drawn from."""
    return {
        name: [
            [s.at_s, s.latency, s.context, s.exact, s.restored, s.moved]
            + [s.computed, s.rss_mb, s.label]
            for s in samples
        ]
        for name, samples in result.samples.get(MAIN, {}).items()
    }
