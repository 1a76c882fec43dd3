"""The prefix index's times as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench.reports.svg import Canvas, Scale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Pixels: wide enough to be read in a page's column, with room for names at the right.
WIDTH, HEIGHT = 560, 300
# Pixels of the plot's frame inside its canvas.
LEFT, RIGHT, TOP, BOTTOM = 50, 470, 30, 250

STYLE = """
text { font: 12px sans-serif; fill: #555 } .mid { text-anchor: middle }
.end { text-anchor: end } .grid { stroke: #ddd } path { fill: none; stroke-width: 2 }
.name { stroke: #888; fill: none } .match { stroke: #2463b0 }
.content { stroke: #1b8a5a } .insert { stroke: #c2570c }
"""

KINDS = ("name", "match", "content", "insert")


def draw(rows: Sequence[Mapping[str, Any]]) -> str:
    """Microseconds per block against stored functions, as a file's text."""
    sizes = [row["functions"] for row in rows]
    most = max(row[f"{kind}_us"] for row in rows for kind in KINDS)
    across = Scale(min(sizes), max(sizes), LEFT, RIGHT, log=True)
    up = Scale(0, most * 1.1, BOTTOM, TOP)
    canvas = Canvas(WIDTH, HEIGHT, "Time per block against stored functions")
    canvas.axis_x(across, TOP, BOTTOM, "functions stored")
    canvas.axis_y(up, LEFT, RIGHT, "µs per block")
    for kind in KINDS:
        points = [(across(row["functions"]), up(row[f"{kind}_us"])) for row in rows]
        canvas.path(points, kind)
        canvas.text((RIGHT + 8, points[-1][1] + 4), kind)
    return canvas.picture(STYLE)
