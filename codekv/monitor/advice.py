"""Rules: is a number healthy, and which setting should an operator change?

Each rule is a pure function of a history and the settings in force (nested mappings,
as `Config.model_dump` gives them). Thresholds are named; settings are named in full.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from codekv.percentiles import percentile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from codekv.monitor.history import History

# The share of reused prompt tokens that typing in one file reaches and exceeds.
HEALTHY_HIT_RATE = 0.85
# Milliseconds for a stored block: a tenth of a decoding step.
HEALTHY_LOAD_MS = 2.0
# The share by which memory may move between two looks without evictions.
HEALTHY_SWING = 0.10
# Tokens: blocks cut smaller than this are mostly seams.
SMALL_CHUNK = 64
# Holds about 5,000 tokens of the default model: two or three files.
SMALL_BUDGET_MB = 64
# Equal tokens in a row: a ruled line or padding, and never code.
LONG_RUN = 64
# The upper end of what the product promises.
LATENCY_BUDGET_MS = 300
# A 95th percentile of fewer values is its maximum.
MIN_SAMPLES = 20


class Verdict(StrEnum):
    """How a number stands against its threshold."""

    OK = "OK"
    WARN = "WARN"
    UNKNOWN = "not enough data"


@dataclass(frozen=True, slots=True)
class Finding:
    """One judged number.

    Attributes:
        value: The number, or None where there are too few samples.
        healthy: The threshold in words.
        advice: One sentence per remedy, naming the setting; empty if all is well.
    """

    name: str
    verdict: Verdict
    value: float | None
    healthy: str
    advice: tuple[str, ...] = ()


class AdviceSettings:
    """Reads one setting by its full name; None where it is not known."""

    def __init__(self, values: Mapping[str, Any] | None) -> None:
        self._values = values or {}

    def __getitem__(self, name: str) -> Any:
        node: Any = self._values
        for part in name.split("."):
            if not hasattr(node, "get"):
                return None
            node = node.get(part)
        return node


def judge(history: History, values: Mapping[str, Any] | None) -> tuple[Finding, ...]:
    """Apply every rule."""
    settings = AdviceSettings(values)
    return tuple(rule(history, settings) for rule in RULES)


def _finding(
    name: str,
    value: float | None,
    healthy: str,
    is_healthy: bool,  # noqa: FBT001 - the outcome of a comparison
    advice: Callable[[], list[str]],
) -> Finding:
    if value is None:
        return Finding(name, Verdict.UNKNOWN, None, healthy)
    if is_healthy:
        return Finding(name, Verdict.OK, value, healthy)
    return Finding(name, Verdict.WARN, value, healthy, tuple(advice()))


def _hit_rate(history: History, settings: AdviceSettings) -> Finding:
    rate = history.hit_rate() if len(history.tokens) >= MIN_SAMPLES else None
    return _finding(
        "hit rate",
        rate,
        "over 85 % of tokens reused",
        (rate or 0.0) > HEALTHY_HIT_RATE,
        lambda: _reuse_advice(history, settings),
    )


def _reuse_advice(history: History, settings: AdviceSettings) -> list[str]:
    """The likeliest causes of poor reuse, most certain first; at least one."""
    found = []
    evicted, budget = history.totals["evictions"], settings["kvcache.memory_mb"]
    if evicted > history.totals["requests"]:
        reason = max(history.eviction_reasons, key=history.eviction_reasons.__getitem__)
        remedy = EVICTIONS.get(reason, EVICTIONS["guard"])
        found.append(f"{evicted} blocks went, most for {reason}: {remedy}.")
    is_tiny = budget is not None and budget < SMALL_BUDGET_MB
    if is_tiny and not any("kvcache.memory_mb" in sentence for sentence in found):
        found.append(f"The pool is tiny: raise kvcache.memory_mb{_now(budget)}.")
    if settings["kvcache.reuse"] == "exact":
        found.append('Edited files recompute what follows: set kvcache.reuse "moved".')
    chunk = settings["kvcache.chunk_size"]
    if chunk is not None and chunk < SMALL_CHUNK:
        found.append(
            f"Blocks of {chunk} tokens cut functions apart: set kvcache.chunk_size 256."
        )
    if settings["kvcache.idle_work"] is False:
        found.append("Pauses go unused: set kvcache.idle_work true to warm the file.")
    if settings["kvcache.reset_on_topic_switch"]:
        found.append(
            "Jumps drop the live cache: set kvcache.reset_on_topic_switch false."
        )
    stop = STOPS.get(_commonest(history))
    if stop is not None:
        found.append(stop)
    return found or [
        "Context is recomputed often: raise kvcache.memory_mb, and see what "
        "`reuse_stop` counts."
    ]


EVICTIONS = {
    "guard": "raise kvcache.memory_mb",
    "disk": "raise kvcache.disk_mb",
    "purge": "raise kvcache.purge_strategy.keep_ratio",
    "topic": "set kvcache.reset_on_topic_switch false",
}
"""Advice by the commonest reason why blocks were evicted."""

STOPS = {
    "window": "The window moves often: raise kvcache.max_length.",
    "suffix": "The suffix changes often: lower completion.suffix_tokens.",
    "prefix": "Edits above the cursor stop reuse: check kvcache.reuse and "
    "kvcache.max_drift.",
    "cold": "Files are new to the cache: raise kvcache.disk_mb to keep more of them.",
}
"""Advice by the commonest reason why reuse ended."""


def _commonest(history: History) -> str:
    counts: dict[str, int] = {}
    for stop in history.stops:
        counts[stop] = counts.get(stop, 0) + 1
    return max(counts, key=lambda stop: counts[stop]) if counts else ""


def _block_load(history: History, settings: AdviceSettings) -> Finding:
    held = history.series("load_ms")
    value = percentile(held, 0.95) if len(held) >= MIN_SAMPLES else None

    def advice() -> list[str]:
        chunk = settings["kvcache.chunk_size"]
        if chunk is not None and chunk < SMALL_CHUNK:
            return [
                f"Blocks of {chunk} tokens load slowly: set kvcache.chunk_size 256."
            ]
        if sum(history.series("disk_loads")) > len(held) / 2:
            return ["Blocks come from disk: raise kvcache.memory_mb to hold them."]
        return ['Decoding stored blocks is slow here: set kvcache.precision "fp16".']

    return _finding(
        "block load",
        value,
        "95 % of batches under 2 ms",
        (value or 0.0) < HEALTHY_LOAD_MS,
        advice,
    )


def _memory_swing(history: History, settings: AdviceSettings) -> Finding:
    held = history.series("memory_mb")
    value = history.memory_swing() if len(held) >= MIN_SAMPLES else None

    def advice() -> list[str]:
        if history.eviction_reasons["guard"] or history.totals["evictions"]:
            now = _now(settings["kvcache.memory_mb"])
            return [f"The memory guard empties the pool: raise kvcache.memory_mb{now}."]
        return ["Memory follows the open files: lower kvcache.live_documents."]

    return _finding(
        "memory swing",
        value,
        "deviation under 10 % of the mean, growing apart",
        (value or 0.0) < HEALTHY_SWING or not history.memory_fell(),
        advice,
    )


def _first_token(history: History, settings: AdviceSettings) -> Finding:
    held = history.series("ttft_ms")
    budget = settings["completion.latency_budget_ms"] or LATENCY_BUDGET_MS
    value = percentile(held, 0.95) if len(held) >= MIN_SAMPLES else None

    def advice() -> list[str]:
        if (history.hit_rate() or 0.0) <= HEALTHY_HIT_RATE:
            return ["Context is recomputed: see hit rate, or lower kvcache.max_length."]
        return ["First tokens are late: lower kvcache.max_length, or a smaller model."]

    return _finding(
        "first token",
        value,
        f"95 % within {budget} ms (completion.latency_budget_ms)",
        (value or 0.0) <= budget,
        advice,
    )


def _cancellations(history: History, settings: AdviceSettings) -> Finding:
    held = history.outcomes
    share = held.count("cancelled") / len(held) if len(held) >= MIN_SAMPLES else None
    return _finding(
        "cancelled",
        share,
        "under half of the requests",
        (share or 0.0) < 0.5,
        lambda: [
            "Most answers come too late to be shown: raise completion.debounce_ms"
            f"{_now(settings['completion.debounce_ms'])}, or lower "
            "completion.max_tokens."
        ],
    )


def _acceptance(history: History, settings: AdviceSettings) -> Finding:
    shown = history.totals["shown"]
    taken = history.totals["accepted"] + history.totals["partially_accepted"]
    share = taken / shown if shown >= 2 * MIN_SAMPLES else None
    return _finding(
        "accepted",
        share,
        "over 5 % of what was shown",
        (share or 0.0) > 0.05,
        lambda: [
            "Few offers are taken: raise completion.min_confidence"
            f"{_now(settings['completion.min_confidence'])} to show fewer and better."
        ],
    )


def _approximate(history: History, settings: AdviceSettings) -> Finding:
    totals = history.grade_totals()
    context = sum(totals.values())
    enough = context and len(history.tokens) >= MIN_SAMPLES
    share = totals["moved"] / context if enough else None

    def advice() -> list[str]:
        if settings["kvcache.idle_work"] is False:
            return ["Moved blocks stay approximate: set kvcache.idle_work true."]
        return ["Much context is moved: lower kvcache.max_drift for exact answers."]

    return _finding(
        "moved",
        share,
        "under half of the tokens approximate",
        (share or 0.0) < 0.5,
        advice,
    )


def _long_runs(history: History, _: AdviceSettings) -> Finding:
    held = history.series("longest_run")
    many = sum(1 for run in held if run > LONG_RUN)
    share = many / len(held) if len(held) >= MIN_SAMPLES else None
    return _finding(
        "repeated characters",
        share,
        f"runs of over {LONG_RUN} equal tokens in under 20 % of prompts",
        (share or 0.0) < 0.2,
        lambda: [
            "Long runs of one character fill the context: lower privacy.max_line_kb, "
            "or name such files in privacy.exclude."
        ],
    )


def _now(value: Any) -> str:
    return "" if value is None else f" (now {value})"


RULES = (
    _hit_rate,
    _block_load,
    _memory_swing,
    _first_token,
    _cancellations,
    _acceptance,
    _approximate,
    _long_runs,
)
