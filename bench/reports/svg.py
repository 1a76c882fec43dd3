"""Enough SVG to draw a plot: marks, axes, scales. Knows nothing of benchmarks.

The only module that writes SVG; why no library does: `docs/decisions`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values to pixels; logarithmic where values span decades."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value; values beyond the ends are drawn at the ends."""
        low, high = self._warp(self.low), self._warp(self.high)
        share = (self._warp(value) - low) / (high - low or 1.0)
        return self.start + min(max(share, 0.0), 1.0) * (self.stop - self.start)

    def ticks(self, count: int = 6) -> list[float]:
        """Round values within the scale."""
        if self.log:
            powers = range(
                math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1
            )
            found = [m * 10.0**p for p in powers for m in (1, 2, 5)]
            found = [v for v in found if self.low <= v <= self.high]
            return found if len(found) <= count * 2 else found[::3]
        step = _round_step((self.high - self.low) / max(count, 1))
        first = math.ceil(self.low / step)
        last = math.floor(self.high / step)
        return [index * step for index in range(first, last + 1)]

    def _warp(self, value: float) -> float:
        return math.log10(max(value, self.low, 1e-9)) if self.log else value


class Canvas:
    """Collects marks of one drawing."""

    def __init__(self, width: int, height: int, label: str) -> None:
        self.width, self.height = width, height
        self._label = label
        self._marks: list[str] = []

    def rect(self, box: Sequence[float], kind: str, title: str = "") -> None:
        """Draw a box (x, y, width, height) in the class `kind`."""
        x, y, width, height = box
        self._add(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" '
            f'height="{max(height, 0):.1f}" class="{kind}"',
            "rect",
            title,
        )

    def dot(self, x: float, y: float, kind: str, title: str = "") -> None:
        """Draw a small circle."""
        self._add(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2" class="{kind}"', "circle", title
        )

    def line(self, ends: Sequence[float], kind: str) -> None:
        """Draw a line (x1, y1, x2, y2)."""
        x1, y1, x2, y2 = ends
        self._add(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'class="{kind}"',
            "line",
        )

    def path(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        """Draw a line through points."""
        if points:
            steps = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
            self._add(f'<path d="M{steps}" class="{kind}"', "path")

    def text(self, at: tuple[float, float], words: str, kind: str = "") -> None:
        """Write words at a point; `kind` chooses anchor and weight."""
        x, y = at
        self._marks.append(
            f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(words)}</text>'
        )

    def slanted(self, at: tuple[float, float], words: str) -> None:
        """Write words that end at a point, rising from the lower left."""
        x, y = at
        self._marks.append(
            f'<text x="{x:.1f}" y="{y:.1f}" class="tick end" '
            f'transform="rotate(-35 {x:.1f} {y:.1f})">{escape(words)}</text>'
        )

    def axis_x(self, scale: Scale, top: float, bottom: float, unit: str) -> None:
        """Draw vertical grid lines with their values below."""
        for value in scale.ticks():
            x = scale(value)
            self.line((x, top, x, bottom), "grid")
            self.text((x, bottom + 14), short(value), "tick mid")
        self.text((scale.stop, bottom + 28), unit, "tick end")

    def axis_y(self, scale: Scale, left: float, right: float, unit: str) -> None:
        """Draw horizontal grid lines with their values at the left."""
        for value in scale.ticks(5):
            y = scale(value)
            self.line((left, y, right, y), "grid")
            self.text((left - 6, y + 4), short(value), "tick end")
        self.text((left, scale.stop - 8), unit, "tick")

    def render(self) -> str:
        """The drawing as an element."""
        return (
            f'<svg viewBox="0 0 {self.width} {self.height}" role="img" '
            f'aria-label="{escape(self._label)}">{"".join(self._marks)}</svg>'
        )

    def picture(self, style: str) -> str:
        """The drawing as a file of its own; `style` is CSS for its classes."""
        head, _, rest = self.render().partition(">")
        opened = head.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        return f"{opened}><style>{style}</style>{rest}\n"

    def _add(self, opening: str, name: str, title: str = "") -> None:
        if title:
            self._marks.append(f"{opening}><title>{escape(title)}</title></{name}>")
        else:
            self._marks.append(f"{opening}/>")


def short(value: float) -> str:
    """A number as people write it on an axis."""
    if abs(value) >= 10_000:
        return f"{value / 1000:.0f}k"
    if value == int(value):
        return f"{value:.0f}"
    return f"{value:.2g}"


def _round_step(raw: float) -> float:
    if raw <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(raw))
    for factor in (1, 2, 5, 10):
        if raw <= factor * power:
            return factor * power
    return 10 * power
