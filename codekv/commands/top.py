"""`codekv top`: what running servers do, live."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from codekv.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType
    from rich.table import Table

LINES = (
    ("hit rate", "hit_rate", "{:.1%}"),
    ("requests", "requests", "{:.0f}"),
    ("latency p50", "latency_ms_p50", "{:.0f} ms"),
    ("latency p95", "latency_ms_p95", "{:.0f} ms"),
    ("first token p95", "ttft_ms_p95", "{:.0f} ms"),
    ("context p50", "context_p50", "{:.0f} tokens"),
    ("computed", "tokens_computed", "{:.0f} tokens in the window"),
    ("restored", "tokens_restored", "{:.0f} tokens in the window"),
    ("moved", "tokens_moved", "{:.0f} tokens in the window"),
    ("block load p95", "load_ms_p95", "{:.2f} ms"),
    ("memory", "memory_mb", "{:.0f} MB"),
    ("live sequences", "live_mb", "{:.0f} MB of it"),
    ("shared by them", "live_shared_mb", "{:.0f} MB saved"),
    ("memory swing", "memory_swing", "{:.1%}"),
    ("evictions", "evictions", "{:.0f}"),
    ("cancelled", "cancelled", "{:.0f}"),
    ("per change", "processor_ms_per_change", "{:.0f} ms of processor time"),
    ("in vain", "processor_share_dropped", "{:.1%} of it for dropped answers"),
    ("ahead", "processor_share_idle", "{:.1%} of it for idle work"),
    ("tokens dropped", "tokens_dropped", "{:.0f} decoded for dropped answers"),
    ("shown", "shown", "{:.0f}"),
    ("accepted", "accepted", "{:.0f}"),
)
"""What is shown: words, name in the metrics, format."""

GUARD = (
    ("acted", "guarded"),
    ("documents gave way", "gave_way"),
    ("sequences freed", "live_dropped"),
    ("allocations failed", "out_of_memory"),
)
"""What the memory guard did: words, name in the metrics."""


@click.command("top")
@click.option("--once", is_flag=True, help="Print once and end.")
@click.option("--every", default=1.0, show_default=True, help="Seconds between looks.")
def top(once: bool, every: float) -> None:
    """Show the metrics of running servers, live; Ctrl-C ends."""
    from rich.live import Live

    from codekv.commands.console import out

    if every <= 0:
        raise UsageError(f"--every {every}: must be above zero")
    if once or not out.is_terminal:
        out.print(view(_statuses()))
        return
    with Live(view(_statuses()), console=out, screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(every)
            live.update(view(_statuses()), refresh=True)


def view(statuses: Mapping[int, Mapping[str, Any]]) -> RenderableType:
    """Draw one panel per server."""
    from rich.console import Group
    from rich.panel import Panel

    if not statuses:
        return "no server is running; editors start one, or: codekv serve"
    return Group(
        *(
            Panel(_table(status), title=f"codekv {pid}", title_align="left")
            for pid, status in statuses.items()
        )
    )


def _table(status: Mapping[str, Any]) -> Table:
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", min_width=16)
    table.add_column()
    model = status.get("model", "")
    work = "" if status.get("settled", True) else ", at work ahead"
    table.add_row("state", f"{status.get('state', '')}{work}  {model}".strip())
    if status.get("message"):
        table.add_row("message", str(status["message"]))
    metrics = status.get("metrics") or {}
    for words, name, form in LINES:
        if name in metrics:
            table.add_row(words, form.format(metrics[name]))
    reasons = [
        f"{name.partition('.')[2]} {count:.0f}"
        for name, count in metrics.items()
        if name.startswith(("reuse_stop.", "evictions."))
    ]
    if reasons:
        table.add_row("why", ", ".join(reasons))
    lengths = [
        f"under {name.partition('.')[2]}: {count:.0f}"
        for name, count in metrics.items()
        if name.startswith("lengths.")
    ]
    if lengths:
        table.add_row("lengths", ", ".join(lengths))
    acts = [(words, metrics.get(name, 0)) for words, name in GUARD]
    if any(count for _, count in acts):
        told = ", ".join(f"{words} {count:.0f}" for words, count in acts if count)
        table.add_row("memory guard", told)
    for sentence in status.get("advice") or ():
        table.add_row("advice", f"[yellow]{sentence}[/]")
    return table


def _statuses() -> dict[int, dict[str, Any]]:
    from codekv.config import cache_dir
    from codekv.monitor.output import read_statuses, status_dir

    return read_statuses(status_dir(cache_dir()))
