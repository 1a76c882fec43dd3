"""A report as one HTML file: no network, no script, readable in light and dark.

The page is `report.html.j2` with `report.css`; this module gives them their values.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bench.reports import plots
from bench.reports.table import (
    baselines_by_trace,
    divergence_rows,
    num_timed,
    requests,
    same,
    speed_line,
    timed,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HEAD = ("trace", "target", "n (timed)", "context", "computed p50", "p95", "max") + (
    "ttft p50",
    "latency p50",
    "p95",
    "p99",
    "decode p50",
    "hits",
    "as fresh",
)


def render(report: Mapping[str, Any]) -> str:
    """Write the page; whatever a report says is escaped."""
    pages = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
    )
    names, rows = divergence_rows(report)
    return pages.get_template("report.html.j2").render(
        report=report,
        warnings=_warnings(report),
        tiles=_tiles(report),
        plots=list(_plots(report)),
        numbers={"head": _HEAD, "rows": list(_numbers(report))},
        divergence={
            "head": ["trace", *names],
            "rows": [[trace, *cells] for trace, cells in rows],
        },
        facts=_facts(report),
    )


def _warnings(report: Mapping[str, Any]) -> list[str]:
    lines = []
    if report["partial"]:
        lines.append("The run was interrupted; this is what was measured until then.")
    if report["host"]["load_1m"] > report["host"]["threads"]:
        load = report["host"]["load_1m"]
        lines.append(f"The machine was busy (load {load}): times are too long.")
    lines += report.get("notes", [])
    lines += report.get("monitor", {}).get("advice", [])
    return lines


def _tiles(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    first = report["traces"][0] if report["traces"] else None
    tiles = []
    if first is not None:
        computed, name = first["tokens_computed"], first["name"]
        tiles += [
            (f"{computed['p50']:.0f}", f"tokens computed per keystroke, {name}"),
            (f"{first['latency_ms']['p50']:.0f} ms", f"median latency, {name}"),
        ]
        for base in report["baselines"]:
            rows = {row["name"]: row for row in base["traces"]}
            is_shown = base["name"] == "plugin-layout" and name in rows
            if is_shown and num_timed(rows[name]):
                value = rows[name]["latency_ms"]["p50"]
                tiles.append((f"{value:.0f} ms", f"{base['name']}, {name}"))
    if report["hit_rate"] is not None:
        tiles.append((f"{report['hit_rate']:.1%}", "of context tokens not computed"))
    return tiles


def _plots(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    names = ["codekv", *(base["name"] for base in report["baselines"])]
    targets = [(f"target{index}", name) for index, name in enumerate(names)]
    grades = [(grade, grade) for grade in plots.GRADES]
    marks = [("p50", "median"), ("p95", "95th percentile")]
    drawn = [
        ("Latency", "One dot per request.", marks, plots.latency),
        ("Beside other ways", "Median latency.", targets, plots.against),
        ("Tokens computed", "In the order of the run.", [], plots.computed),
        ("Computed share", "Of the context, 95th percentile.", targets, plots.cost),
        ("Where the tokens came from", "Of all requests.", grades, plots.shares),
        ("Memory", "Resident, at each request.", [], plots.memory),
    ]
    for title, note, legend, draw in drawn:
        yield {
            "title": title,
            "note": note,
            "legend": legend,
            "drawing": draw(report),
        }


def _numbers(report: Mapping[str, Any]) -> Iterator[list[str]]:
    """A row per trace and target; the other targets' rows do not repeat the trace."""
    others = baselines_by_trace(report)
    for row in report["traces"]:
        yield _cells(row["name"], "codekv", row)
        for name, rows in others.items():
            if row["name"] in rows:
                yield _cells("", name, rows[row["name"]])


def _cells(name: str, target: str, row: Mapping[str, Any]) -> list[str]:
    computed, hits = row["tokens_computed"], row["hit_rate"]
    return [
        name,
        target,
        requests(row),
        f"{row['context_tokens']['p50']:.0f}",
        *(f"{computed[key]:.0f}" for key in ("p50", "p95", "max")),
        *timed(row, "ttft_ms", "p50"),
        *timed(row, "latency_ms", "p50", "p95", "p99"),
        *timed(row, "decode_ms", "p50"),
        "" if hits is None else f"{hits:.2%}",
        same(row),
    ]


def _facts(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    host, model = report["host"], report["model"]
    facts = [
        ("command", report["command"]),
        ("model", ", ".join(f"{key} {value}" for key, value in model.items())),
        ("processor", f"{host['cpu']} ({' '.join(host['features'])})"),
        ("system", f"{host['os']}, Python {host['python']}, load {host['load_1m']}"),
        ("versions", ", ".join(f"{k} {v}" for k, v in host["versions"].items())),
        ("traces", ", ".join(f"{k} {v}" for k, v in report["digests"].items())),
    ]
    start = report["start"]
    if start["starts"]:
        told = f"{start['ready_s']['p50']:.1f} s, median of {start['starts']} starts"
        facts.insert(2, ("ready after", told))
    if report.get("speed"):
        facts.insert(2, ("speed", speed_line(report["speed"])))
    return facts
