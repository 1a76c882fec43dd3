"""A report as a table for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console


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
    for name in ("n", "context", "computed p50", "p95", "ttft p50", "p95"):
        table.add_column(name, justify="right")
    for name in ("latency p50", "p95", "hits", "as fresh"):
        table.add_column(name, justify="right")
    others = {
        base["name"]: {row["name"]: row for row in base["traces"]}
        for base in report["baselines"]
    }
    for row in report["traces"]:
        table.add_row(row["name"], "codekv", *_cells(row), style="bold")
        for name, rows in others.items():
            if row["name"] in rows:
                table.add_row("", Text(name), *_cells(rows[row["name"]]), style="dim")
    return table


def _cells(row: Mapping[str, Any]) -> list[str]:
    hits, same = row["hit_rate"], row["same_as_fresh"]
    return [
        str(row["requests"]),
        f"{row['context_tokens']['p50']:.0f}",
        f"{row['tokens_computed']['p50']:.0f}",
        f"{row['tokens_computed']['p95']:.0f}",
        f"{row['ttft_ms']['p50']:.0f}",
        f"{row['ttft_ms']['p95']:.0f}",
        f"{row['latency_ms']['p50']:.0f}",
        f"{row['latency_ms']['p95']:.0f}",
        "" if hits is None else f"{hits:.1%}",
        "" if same is None else f"{same:.0%}",
    ]
