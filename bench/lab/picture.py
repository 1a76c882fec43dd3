"""A picture of bits against divergence, as SVG text; no drawing library needed."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_WIDTH, _HEIGHT = 860, 480
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 30, 50, 60
_LEAST, _MOST = 1e-5, 10.0
_MAX_BITS = 18.0
_OURS = frozenset({"exact", "balanced", "small", "seed", "auto"})
_LABEL_GAP = 13.0
_LABEL_WIDTH = 160.0


def draw(title: str, rows: Iterable[dict[str, Any]]) -> str:
    """Draw the rows of a report's presets; divergence on a logarithmic axis.

    Rows above the axis are left out (`exact` has nothing to show); divergences below
    it stand on its floor.
    """
    points = [
        (row["name"], row["bits_per_element"], min(max(row["kl_mean"], _LEAST), _MOST))
        for row in rows
        if "kl_mean" in row and row["bits_per_element"] <= _MAX_BITS
    ]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="28" font-size="16">{escape(title)}</text>',
        *_axes(),
        *_points(points),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _axes() -> list[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    parts = []
    for bits in range(2, int(_MAX_BITS) + 1, 2):
        x = _x(bits)
        parts.append(f'<path d="M{x:.0f} {_TOP}V{bottom}" stroke="#e5e5e5"/>')
        parts.append(
            f'<text x="{x:.0f}" y="{bottom + 18}" text-anchor="middle">{bits}</text>'
        )
    for power in range(round(math.log10(_LEAST)), round(math.log10(_MOST)) + 1):
        y = _y(10.0**power)
        parts.append(f'<path d="M{_LEFT} {y:.0f}H{right}" stroke="#e5e5e5"/>')
        parts.append(
            f'<text x="{_LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">'
            f"{10.0**power:g}</text>"
        )
    middle = (_LEFT + right) / 2
    parts.append(
        f'<text x="{middle:.0f}" y="{_HEIGHT - 16}" text-anchor="middle">'
        "bits per element, scales and padding included</text>"
    )
    parts.append(
        f'<text transform="translate(20 {_HEIGHT / 2:.0f}) rotate(-90)"'
        ' text-anchor="middle">mean divergence (nats)</text>'
    )
    return parts


def _points(points: Sequence[tuple[str, float, float]]) -> list[str]:
    parts = []
    taken: list[tuple[float, float]] = []
    for name, bits, divergence in sorted(points, key=lambda p: (p[1], p[2])):
        x, y = _x(bits), _y(divergence)
        color = "#0b6e4f" if name in _OURS else "#b23a48"
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{color}"/>')
        # Labels of neighbours must not lie on one another.
        label = y + 4
        while _is_taken(x, label, taken):
            label += _LABEL_GAP
        taken.append((x, label))
        place = f'x="{x + 9:.1f}" y="{label:.1f}"'
        parts.append(f'<text {place} fill="{color}">{escape(name)}</text>')
    return parts


def _is_taken(x: float, y: float, taken: Sequence[tuple[float, float]]) -> bool:
    return any(
        abs(y - other_y) < _LABEL_GAP and abs(x - other_x) < _LABEL_WIDTH
        for other_x, other_y in taken
    )


def _x(bits: float) -> float:
    return _LEFT + (bits - 2) / (_MAX_BITS - 2) * (_WIDTH - _LEFT - _RIGHT)


def _y(divergence: float) -> float:
    span = math.log(_MOST / _LEAST)
    share = math.log(_MOST / divergence) / span
    return _TOP + share * (_HEIGHT - _TOP - _BOTTOM)
