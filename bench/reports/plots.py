"""The plots of a report, drawn from its JSON alone."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from bench.reports.svg import Canvas, Scale, short
from bench.reports.table import baselines_by_trace, num_timed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Pixels: as wide as the page, with room for names at the left and axes below.
WIDTH = 960
# Pixels: the longest name of a row.
LEFT = 190
# Pixels: half of the last tick's number.
RIGHT = 24
# Pixels: a line of text and a gap.
ROW = 30
# Pixels: half a line of text.
TOP = 14
# Pixels: ticks and the axis's title.
FOOT = 36

GRADES = ("exact", "restored", "moved", "computed")

Report = dict[str, Any]
Row = list[Any]


def latency(report: Mapping[str, Any]) -> str:
    """Every request as a dot, with the median and the 95th percentile, per trace."""
    series: dict[str, list[Row]] = report["series"]
    values = [row[1] for rows in series.values() for row in rows] or [1.0]
    canvas, bottom = _rows_canvas(len(series), "latency of every request by trace")
    low, high = max(min(values), 0.1), max(*values, 1.0)
    scale = Scale(low * 0.9, high * 1.1, LEFT, WIDTH - RIGHT, log=True)
    canvas.axis_x(scale, TOP, bottom, "ms, logarithmic")
    summaries = {row["name"]: row["latency_ms"] for row in report["traces"]}
    rng = Random(0)
    for index, (name, rows) in enumerate(series.items()):
        y = TOP + ROW * (index + 0.5)
        canvas.text((LEFT - 10, y + 4), name, "end")
        for row in rows:
            title = f"{row[8]}: {row[1]:.0f} ms, {row[6]} of {row[2]} tokens computed"
            canvas.dot(scale(row[1]), y + rng.uniform(-8, 8), "sample", title)
        for key in ("p50", "p95"):
            x = scale(summaries[name][key])
            canvas.line((x, y - 12, x, y + 12), key)
    return canvas.render()


def computed(report: Mapping[str, Any]) -> str:
    """Tokens computed per request, in the order of the run."""
    requests = _sequence(report)
    high = max([row[6] for _, row in requests] or [1])
    canvas, x, y = _time_canvas(
        report, max(float(high), 10.0), "tokens computed for each request", log=True
    )
    for index, (name, row) in enumerate(requests):
        title = f"{name}, {row[8]}: {row[6]} of {row[2]} tokens"
        canvas.dot(x(index), y(max(row[6], 0.8)), "sample", title)
    return canvas.render()


def memory(report: Mapping[str, Any]) -> str:
    """Resident memory at each request, in the order of the run."""
    requests = _sequence(report)
    high = max([row[7] for _, row in requests] or [1.0])
    canvas, x, y = _time_canvas(report, high * 1.1, "resident memory, MiB", log=False)
    canvas.path([(x(i), y(row[7])) for i, (_, row) in enumerate(requests)], "curve")
    return canvas.render()


def shares(report: Mapping[str, Any]) -> str:
    """How the tokens behind the answers came to be, per trace."""
    rows = report["traces"]
    canvas, bottom = _rows_canvas(len(rows), "share of reused and computed tokens")
    scale = Scale(0, 100, LEFT, WIDTH - RIGHT)
    canvas.axis_x(scale, TOP, bottom, "% of context tokens")
    for index, row in enumerate(rows):
        y = TOP + ROW * index + 6
        canvas.text((LEFT - 10, y + 13), row["name"], "end")
        total = sum(row["grades"].values()) or 1
        at = 0.0
        for grade in GRADES:
            share = 100 * row["grades"][grade] / total
            box = (scale(at), y, scale(at + share) - scale(at), ROW - 12)
            canvas.rect(box, grade, f"{grade}: {share:.2f} %")
            at += share
    return canvas.render()


def against(report: Mapping[str, Any]) -> str:
    """Median latency of every target, trace by trace."""
    return _bars(
        report,
        "median latency by trace and target",
        "ms, median",
        lambda row: row["latency_ms"]["p50"] if num_timed(row) else None,
    )


def cost(report: Mapping[str, Any]) -> str:
    """What share of the context every target computes, trace by trace."""
    return _bars(
        report,
        "computed share of the context by trace and target",
        "% of the context, 95th percentile",
        lambda row: 100 * row["computed_share"]["p95"],
    )


def _bars(
    report: Mapping[str, Any],
    title: str,
    unit: str,
    value_of: Callable[[Mapping[str, Any]], float | None],
) -> str:
    """A bar per trace and target; none where there is no value."""
    targets = {"codekv": {row["name"]: row for row in report["traces"]}}
    targets |= baselines_by_trace(report)
    names = [row["name"] for row in report["traces"]]
    values = {
        (name, target): value
        for target, rows in targets.items()
        for name in names
        if name in rows and (value := value_of(rows[name])) is not None
    }
    bar, gap = 11, 12
    group = bar * len(targets) + gap
    height = TOP + group * len(names) + FOOT
    canvas = Canvas(WIDTH, height, title)
    scale = Scale(0, max([*values.values(), 1.0]) * 1.12, LEFT, WIDTH - RIGHT)
    canvas.axis_x(scale, TOP, height - FOOT, unit)
    for index, name in enumerate(names):
        top = TOP + group * index + gap / 2
        canvas.text((LEFT - 10, top + bar * len(targets) / 2 + 4), name, "end")
        for place, target in enumerate(targets):
            value = values.get((name, target))
            if value is None:
                continue
            y = top + bar * place
            box = (LEFT, y, scale(value) - LEFT, bar - 2)
            canvas.rect(box, f"target{place}", f"{target}: {value:.3g}")
            shown = short(round(value) if value >= 1 else round(value, 2))
            canvas.text((scale(value) + 4, y + bar - 2), shown, "tick")
    return canvas.render()


def _sequence(report: Mapping[str, Any]) -> list[tuple[str, Row]]:
    return [(name, row) for name, rows in report["series"].items() for row in rows]


def _rows_canvas(count: int, label: str) -> tuple[Canvas, float]:
    bottom = TOP + ROW * count
    return Canvas(WIDTH, bottom + FOOT, label), bottom


def _time_canvas(
    report: Mapping[str, Any], high: float, unit: str, *, log: bool
) -> tuple[Canvas, Scale, Scale]:
    """A plot over all requests in order, with a band per trace."""
    height, left = 320, 64
    bottom = height - 92
    canvas = Canvas(WIDTH, height, unit)
    total = len(_sequence(report))
    x = Scale(0, max(total, 1), left, WIDTH - RIGHT)
    y = Scale(0.8 if log else 0, high, bottom, TOP + 14, log)
    at = 0
    for index, (name, rows) in enumerate(report["series"].items()):
        begin, end = x(at), x(at + len(rows))
        if index % 2:
            canvas.rect((begin, TOP + 8, end - begin, bottom - TOP - 8), "band")
        canvas.slanted(((begin + end) / 2, bottom + 12), name)
        at += len(rows)
    canvas.axis_y(y, left, WIDTH - RIGHT, unit)
    return canvas, x, y
