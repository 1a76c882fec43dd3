"""Samples to the numbers of the report: percentiles, rates, spread.

Pure functions of samples; the JSON they give is documented in `README.md`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from bench.traces.trace import ARRIVE
from codekv.percentiles import percentile, spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bench.targets.counting import Counted
    from bench.traces.sample import Sample

Values = list[float]


def quartiles(values: Iterable[float]) -> dict[str, float]:
    """The middle half's borders, as a measure of spread."""
    ordered = list(values)
    low, high = percentile(ordered, 0.25) or 0.0, percentile(ordered, 0.75) or 0.0
    return {"q1": round(low, 2), "q3": round(high, 2)}


def trace_summary(
    name: str,
    samples: Sequence[Sample],
    twin: Sequence[Sample] = (),
    counted: Sequence[Counted] = (),
) -> dict[str, Any]:
    """One row of `traces`.

    Args:
        name: The trace's.
        samples: What was measured.
        twin: Fresh runs of some of the same questions.
        counted: The tokens of every question, where only some of them were asked.
    """
    everything, every_cost = samples, counted or samples
    asked = [sample for sample in samples if sample.label != ARRIVE]
    # Nobody waits for an answer that the next key has overtaken.
    samples = [sample for sample in asked if not sample.overtaken]
    model = [sample for sample in samples if sample.context]
    requests = sum(cost.label != ARRIVE for cost in every_cost)
    row: dict[str, Any] = {
        "name": name,
        "requests": requests,
        "counted": requests,
        "timed": len(samples),
        **_tokens([cost for cost in every_cost if cost.label != ARRIVE]),
        "latency_ms": spread((s.latency for s in samples), "p50", "p95", "p99", "max")
        | quartiles(s.latency for s in samples),
        "ttft_ms": spread((s.ttft for s in model), "p50", "p95"),
        "prefill_ms": spread((s.prefill for s in model), "p50", "p95"),
        "decode_ms": spread((s.decode for s in model), "p50", "p95"),
        "tokens_generated": spread((s.generated for s in model), "p50", "p95"),
        "decode_ms_per_step": round(_per_step(model), 2),
        "decode_ms_per_token": round(_per_token(model), 2),
        "offered": round(_mean(bool(s.text) for s in samples), 4),
        "overtaken": round(_mean(s.overtaken for s in asked), 4),
        "taken": sum(s.taken for s in samples),
        "sources": dict(Counter(map(_source, samples)).most_common()),
        "reuse_stops": dict(Counter(s.reuse_stop for s in model if s.reuse_stop)),
        "labels": {
            label: _label(
                [s for s in everything if s.label == label],
                [cost for cost in every_cost if cost.label == label],
            )
            for label in dict.fromkeys(cost.label for cost in every_cost)
        },
        "same_as_fresh": None,
        "compared_with_fresh": 0,
    }
    pairs = paired(samples, twin)
    if pairs:
        same = _mean(one.text == other.text for one, other in pairs)
        row["same_as_fresh"] = round(same, 4)
        row["compared_with_fresh"] = len(pairs)
    return row


def paired(
    samples: Sequence[Sample], twin: Sequence[Sample]
) -> list[tuple[Sample, Sample]]:
    """The same questions in two runs."""
    other = {(sample.episode, sample.index): sample for sample in twin}
    keys = [(sample.episode, sample.index) for sample in samples]
    return [
        (sample, other[key])
        for sample, key in zip(samples, keys, strict=True)
        if key in other
    ]


def overall_hit_rate(rows: Iterable[dict[str, Any]]) -> float | None:
    """Share of context tokens that were not computed, over all traces."""
    grades: Counter[str] = Counter()
    for row in rows:
        grades.update(row["grades"])
    total = grades.total()
    return round(1 - grades["computed"] / total, 5) if total else None


def _tokens(costs: Sequence[Sample | Counted]) -> dict[str, Any]:
    """What became of the prompts' tokens, of requests that needed the model."""
    costs = [cost for cost in costs if cost.context]
    context = sum(cost.context for cost in costs)
    computed = sum(cost.computed for cost in costs)
    shares = [cost.computed / cost.context for cost in costs]
    return {
        "context_tokens": spread((c.context for c in costs), "p50", "max"),
        "tokens_computed": spread((c.computed for c in costs), "p50", "p95", "max"),
        "computed_share": {
            "p50": round(percentile(shares, 0.5) or 0.0, 5),
            "p95": round(percentile(shares, 0.95) or 0.0, 5),
        },
        "hit_rate": round(1 - computed / context, 5) if context else None,
        "grades": {
            grade: sum(getattr(cost, grade) for cost in costs)
            for grade in ("exact", "restored", "moved", "computed")
        },
    }


def _label(
    samples: Sequence[Sample], costs: Sequence[Sample | Counted]
) -> dict[str, Any]:
    samples = [sample for sample in samples if not sample.overtaken]
    model = [sample for sample in samples if sample.context]
    computed = (cost.computed for cost in costs if cost.context)
    return {
        "requests": len(costs),
        "answered": len(samples),
        "context_tokens": spread((s.context for s in model), "p50", "max"),
        "latency_ms": spread((s.latency for s in samples), "p50", "p95"),
        "ttft_ms": spread((s.ttft for s in model), "p50", "p95"),
        "tokens_computed": spread(computed, "p50", "p95"),
    }


def _source(sample: Sample) -> str:
    """Where an answer came from; without the model, why."""
    if sample.source == "model" and not sample.context:
        return f"none: {sample.reason}"
    return sample.source


def _per_token(samples: Sequence[Sample]) -> float:
    """Mean over all generated tokens, drafted ones included."""
    tokens = sum(sample.generated for sample in samples)
    return sum(sample.decode for sample in samples) / tokens if tokens else 0.0


def _per_step(samples: Sequence[Sample]) -> float:
    steps = sum(sample.steps for sample in samples)
    return sum(sample.decode for sample in samples) / steps if steps else 0.0


def _mean(values: Iterable[bool]) -> float:
    held = list(values)
    return sum(held) / len(held) if held else 0.0
