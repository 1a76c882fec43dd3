"""A report as a table for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

Rows = list[tuple[str, list[str]]]
"""Cells by trace."""


def show(console: Console, report: Mapping[str, Any]) -> None:
    """Print a report: caveats first, then one row per trace and target."""
    host, speed = report["host"], report.get("speed", {})
    model = report.get("model", {}).get("name", "")
    console.print(
        f"[bold]{model}[/] on {host['cpu']}, {host['threads']} threads, "
        f"seed {report.get('seed')}, pace {report.get('pace')}"
    )
    if report["partial"]:
        console.print(
            "interrupted: a partial report; run again to go on", style="yellow"
        )
    if host["load_1m"] > host["threads"]:
        console.print(
            f"the machine is busy (load {host['load_1m']}): times are too long",
            style="yellow",
        )
    for line in report.get("notes", []):
        console.print(line, style="yellow")
    console.print(_table(report))
    heading = "computed share of the context, p50 / p95"
    console.print(_by_trace(heading, *share_rows(report)))
    if (compared := divergence_rows(report))[1]:
        console.print(_by_trace("compared with fresh runs", *compared))
    if speed:
        console.print(speed_line(speed))
    if report["hit_rate"] is not None:
        console.print(f"tokens not computed, over all traces: {report['hit_rate']:.2%}")
    for line in report.get("monitor", {}).get("advice", []):
        console.print(line, style="yellow")


def speed_line(speed: Mapping[str, Any]) -> str:
    """Decode speed beside what memory bandwidth allows."""
    line = (
        f"prefill {speed['prefill_tok_s']:.0f} tok/s, "
        f"decoding {speed['decode_ms']:.1f} ms per step"
    )
    if speed.get("bound_ms"):
        size = speed["bytes_per_step"] / 1e6
        line += f"; {size:.0f} MB at {speed['bandwidth_gb_s']:.0f} GB/s"
        line += f" allow {speed['bound_ms']:.1f} ms"
    return line


def _table(report: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("trace")
    table.add_column("target")
    for name in ("n (timed)", "context", "computed p50", "p95", "ttft p50", "p95"):
        table.add_column(name, justify="right")
    for name in ("latency p50", "p95", "hits", "as fresh"):
        table.add_column(name, justify="right")
    others = baselines_by_trace(report)
    for row in report["traces"]:
        table.add_row(row["name"], "codekv", *_cells(row), style="bold")
        for name, rows in others.items():
            if row["name"] in rows:
                table.add_row("", Text(name), *_cells(rows[row["name"]]), style="dim")
    return table


def _by_trace(title: str, names: list[str], rows: Rows) -> Table:
    table = Table(title=title, box=None, pad_edge=False, header_style="bold")
    table.title_justify = "left"
    table.add_column("trace")
    for name in names:
        table.add_column(Text(name), justify="right")
    for trace, cells in rows:
        table.add_row(trace, *cells)
    return table


def baselines_by_trace(
    report: Mapping[str, Any],
) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Rows of baselines by the baseline's and the trace's name."""
    return {
        base["name"]: {row["name"]: row for row in base["traces"]}
        for base in report["baselines"]
    }


def share_rows(report: Mapping[str, Any]) -> tuple[list[str], Rows]:
    """Targets' names; per trace, what share of its context each one computed."""
    targets = {"codekv": {row["name"]: row for row in report["traces"]}}
    targets |= baselines_by_trace(report)
    lines = []
    for row in report["traces"]:
        found = [rows.get(row["name"], {}) for rows in targets.values()]
        shares = [_share(each.get("computed_share")) for each in found]
        lines.append((row["name"], shares))
    return list(targets), lines


def divergence_rows(report: Mapping[str, Any]) -> tuple[list[str], Rows]:
    """Headings; per trace, how far its answers were from fresh ones, if compared."""
    names = ["asks", "inexact", "KL", "KL max", "noise", "same top", "same text"]
    names += ["noise's", "KL after idle", "top after idle", "text after idle"]
    lines = []
    for row in report["traces"]:
        seen = row.get("divergence")
        if seen:
            cells = [str(seen["asks"]), str(seen["inexact"])]
            cells += [f"{seen[key]:.4f}" for key in ("kl_mean", "kl_max", "kl_noise")]
            now = ("same_top", "same_text", "noise_text")
            cells += [_percent(seen.get(key)) for key in now]
            cells += [f"{seen['after_idle_kl']:.4f}"]
            later = ("after_idle_same_top", "after_idle_same_text")
            cells += [_percent(seen.get(key)) for key in later]
            lines.append((row["name"], cells))
    return names, lines


def _percent(share: float | None) -> str:
    """A share; blank in reports from before it was measured."""
    return "" if share is None else f"{share:.0%}"


def _share(share: Mapping[str, float] | None) -> str:
    return "" if share is None else f"{share['p50']:.2%} / {share['p95']:.2%}"


def num_timed(row: Mapping[str, Any]) -> int:
    """How many requests were timed; older reports timed all they had."""
    return int(row.get("timed", row["requests"]))


def timed(row: Mapping[str, Any], key: str, *shares: str) -> list[str]:
    """Milliseconds by percentile; blank where tokens were counted but nothing timed."""
    known = num_timed(row)
    return [f"{row[key][share]:.0f}" if known else "" for share in shares]


def requests(row: Mapping[str, Any]) -> str:
    """How many requests there were, and how many of them were timed if not all."""
    total, known = row["requests"], num_timed(row)
    return str(total) if known == total else f"{total} ({known})"


def same(row: Mapping[str, Any]) -> str:
    """The share of answers equal to a fresh run's, and of how many."""
    share = row.get("same_as_fresh")
    return (
        "" if share is None else f"{share:.0%} of {row.get('compared_with_fresh', 0)}"
    )


def _cells(row: Mapping[str, Any]) -> list[str]:
    hits = row["hit_rate"]
    return [
        requests(row),
        f"{row['context_tokens']['p50']:.0f}",
        f"{row['tokens_computed']['p50']:.0f}",
        f"{row['tokens_computed']['p95']:.0f}",
        *timed(row, "ttft_ms", "p50", "p95"),
        *timed(row, "latency_ms", "p50", "p95"),
        "" if hits is None else f"{hits:.1%}",
        same(row),
    ]
