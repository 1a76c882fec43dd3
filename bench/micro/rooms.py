"""Draws the rooms of this program and who imports whom, from the source itself.

`python -m bench.micro.rooms [PICTURE.svg]` reads the layers of the import contracts and
the imports of every module. A line from one room down to another is at least one
import; the two lowest rows may be imported by all, so they have no lines.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from bench.micro.house import ROOT, read_modules
from bench.reports.svg import Canvas

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PICTURE = ROOT / "docs" / "images" / "rooms.svg"
PACKAGES = ("codekv", "lsp", "bench", "grammars")

# Pixels: eleven rows of boxes fit a page's column and stay readable.
WIDTH, ROW, BOX_WIDTH, BOX_HEIGHT, MARGIN = 980, 74, 150, 36, 20

STYLE = """
svg { background: white }
text { font: 12px sans-serif; fill: #222; text-anchor: middle }
.room { fill: #eef3fb; stroke: #2463b0 } .few { stroke: #c9d3e0 }
.some { stroke: #8ea8c9; stroke-width: 1.5 }
.many { stroke: #2463b0; stroke-width: 2.5 }
"""

SOME, MANY = 3, 10
"""Imports from which a line is drawn stronger: one in three is at least that strong."""

SHARED_ROWS = 2
"""Rows at the bottom that may be imported by all: settings, errors, small values."""

Edge = tuple[str, str]


def layers(root: Path = ROOT) -> list[list[str]]:
    """Read the rooms, top to bottom, from the first import contract."""
    table = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    contracts = table["tool"]["importlinter"]["contracts"]
    rows = contracts[0]["layers"]
    return [[name.strip() for name in row.split("|")] for row in rows]


def imports(rooms: Sequence[str], root: Path = ROOT) -> Counter[Edge]:
    """Count the imports between rooms; those for types alone count as well."""
    found: Counter[Edge] = Counter()
    for module in read_modules(root, PACKAGES):
        name = module.path.removesuffix(".py").replace("/", ".")
        here = room_of(name, rooms)
        for there in (room_of(other, rooms) for other in _imported(module.tree)):
            if here and there and here != there:
                found[here, there] += 1
    return found


def room_of(module: str, rooms: Sequence[str]) -> str | None:
    """The room that a module lies in, if it is one of these."""
    inside = (room for room in rooms if f"{module}.".startswith(f"{room}."))
    return max(inside, key=len, default=None)


def draw(rows: Sequence[Sequence[str]], edges: Mapping[Edge, int]) -> str:
    """Draw the rooms in rows, with a line for each pair that imports."""
    height = MARGIN + ROW * len(rows)
    canvas = Canvas(WIDTH, height, "Rooms and imports, top to bottom")
    places = {
        room: (WIDTH * (column + 0.5) / len(row), MARGIN + ROW * number)
        for number, row in enumerate(rows)
        for column, room in enumerate(row)
    }
    shared = {room for row in rows[-SHARED_ROWS:] for room in row}
    drawn = {edge: count for edge, count in edges.items() if edge[1] not in shared}
    for (upper, lower), count in sorted(drawn.items(), key=lambda edge: edge[1]):
        (x1, y1), (x2, y2) = places[upper], places[lower]
        strength = "many" if count >= MANY else "some" if count >= SOME else "few"
        canvas.line((x1, y1 + BOX_HEIGHT, x2, y2), strength)
    for room, (x, y) in places.items():
        width = min(BOX_WIDTH, WIDTH / len(_row_of(room, rows)) - 8)
        canvas.rect((x - width / 2, y, width, BOX_HEIGHT), "room", room)
        canvas.text((x, y + BOX_HEIGHT / 2 + 4), room.removeprefix("codekv."))
    return canvas.picture(STYLE)


def _row_of(room: str, rows: Sequence[Sequence[str]]) -> Sequence[str]:
    return next(row for row in rows if room in row)


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def main(arguments: Sequence[str]) -> int:
    """Write the picture."""
    rows = layers()
    rooms = [room for row in rows for room in row]
    target = Path(arguments[0]) if arguments else PICTURE
    target.write_text(draw(rows, imports(rooms)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
