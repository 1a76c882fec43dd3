"""A picture of bits against divergence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench.reports.svg import Canvas, Scale

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Pixels, as wide as a page's column; names of presets stand at the right of their dots.
_WIDTH, _HEIGHT = 860, 480
# Pixels of the plot's frame inside its canvas.
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 830, 50, 420

_DIVERGENCE = Scale(1e-5, 10.0, _BOTTOM, _TOP, log=True)
"""Nats: from what float32 rounding costs to a text that is ruined."""

_BITS = Scale(2, 18, _LEFT, _RIGHT)
"""From the fewest bits that are tried to 16 with their scales."""

_OURS = frozenset({"exact", "balanced", "small", "seed", "auto"})

# The room that a name takes, in pixels: names of neighbours must not overlap.
_LABEL_GAP, _LABEL_WIDTH = 13.0, 160.0

_STYLE = """
svg { background: white } circle { r: 4px } text { font: 12px sans-serif; fill: #333 }
.title { font-size: 16px } .mid { text-anchor: middle } .end { text-anchor: end }
.grid { stroke: #e5e5e5 } .ours { fill: #0b6e4f } .other { fill: #b23a48 }
"""


def draw(title: str, rows: Iterable[dict[str, Any]]) -> str:
    """Draw the rows of a report's presets; divergence on a logarithmic axis.

    Rows with more bits than the axis has are left out (`exact` has nothing to show);
    divergences beyond the axis stand at its ends.
    """
    canvas = Canvas(_WIDTH, _HEIGHT, title)
    canvas.text((_LEFT, 28), title, "title")
    canvas.axis_x(_BITS, _TOP, _BOTTOM, "bits per element, scales and padding included")
    canvas.axis_y(_DIVERGENCE, _LEFT, _RIGHT, "mean divergence (nats)")
    shown = [
        (_BITS(row["bits_per_element"]), _DIVERGENCE(row["kl_mean"]), row["name"])
        for row in rows
        if "kl_mean" in row and row["bits_per_element"] <= _BITS.high
    ]
    taken: list[tuple[float, float]] = []
    for x, y, name in sorted(shown, key=lambda point: (point[0], -point[1])):
        kind = "ours" if name in _OURS else "other"
        canvas.dot(x, y, kind, f"{name}")
        label = y + 4
        while _is_taken(x, label, taken):
            label += _LABEL_GAP
        taken.append((x, label))
        canvas.text((x + 9, label), name, kind)
    return canvas.picture(_STYLE)


def _is_taken(x: float, y: float, taken: Sequence[tuple[float, float]]) -> bool:
    return any(
        abs(y - other_y) < _LABEL_GAP and abs(x - other_x) < _LABEL_WIDTH
        for other_x, other_y in taken
    )
