"""The rooms that documents speak of are those that are there."""

import ast
import re
from pathlib import Path

import pytest

from bench.micro.rooms import PICTURE, draw, imports, layers, main, room_of

ROOT = Path(__file__).parents[2]
PAGES = (
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "codekv/README.md",
    "bench/README.md",
)
ROWS = layers()
ROOMS = [room for row in ROWS for room in row]


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_are_there(page):
    text = (ROOT / page).read_text("utf-8")
    named = set(re.findall(r"`((?:[\w-]+/)+[\w.-]*)`", text))
    roots = (ROOT, ROOT / "codekv", (ROOT / page).parent)
    missing = [n for n in sorted(named) if not any((r / n).exists() for r in roots)]
    assert named
    assert missing == []


def test_every_room_is_in_the_picture():
    text = PICTURE.read_text("utf-8")
    for room in ROOMS:
        assert f"<title>{room}</title>" in text, "python -m bench.micro.rooms draws it"


def test_imports_go_downwards():
    number = {room: row for row, rooms in enumerate(ROWS) for room in rooms}
    edges = imports(ROOMS)
    assert edges["codekv.completion", "codekv.engine"] > 0
    for upper, lower in edges:
        assert number[upper] < number[lower]


@pytest.mark.parametrize(
    ("module", "room"),
    [
        ("codekv.engine.reuse.plan", "codekv.engine"),
        ("codekv.engineering", None),
        ("lsp", "lsp"),
    ],
)
def test_a_module_lies_in_its_innermost_room(module, room):
    assert room_of(module, ROOMS) == room


def test_a_line_is_drawn_for_imports_above_the_shared_rows(tmp_path):
    rows = [["a"], ["b"], ["c"], ["d"]]
    picture = draw(rows, {("a", "b"): 12, ("a", "d"): 40})
    assert picture.count("<line") == 1
    assert 'class="many"' in picture
    assert main([str(tmp_path / "rooms.svg")]) == 0
    assert (tmp_path / "rooms.svg").read_text().startswith("<svg")


GUIDES = sorted(
    path
    for package in ("codekv", "bench", "lsp", "grammars")
    for path in (ROOT / package).rglob("__init__.py")
    if "| module |" in path.read_text("utf-8")
)


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.parent.name)
def test_a_room_guide_names_its_modules(path):
    guide = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    rows = re.findall(r"^\| (`.+?) \|", guide, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    there = {file.stem for file in path.parent.glob("*.py")} - {"__init__", "__main__"}
    folders = {file.parent.name for file in path.parent.glob("*/*.py")}
    assert named <= there | folders, "a guide names what is not there"
    unsaid = {name for name in there - named if f"`{name}`" not in guide}
    assert unsaid == set(), "say in the guide what the new module holds"
