"""Counts what a reader of this program has to carry: code, names, reasons.

`python -m bench.micro.house [TREE…]` prints the figures of source trees, or of this
one. Lines are logical ones, so that longer lines save nothing.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from grammars.registry import language_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

PACKAGES = ("codekv", "lsp", "bench")
ROOT = Path(__file__).parents[2]

SHORTEST_WORD = 3
"""Language names shorter than this (`c`, `go`, `js`) are parts of other words too, so
they count as whole texts alone and not as parts of names."""

FORMATS = frozenset({"css", "html", "json", "markdown", "toml", "yaml"})
"""Languages that are file formats too: a report in JSON names no language."""


@dataclass(frozen=True, slots=True)
class SourceModule:
    """One file of the program, read and parsed."""

    path: str
    text: str
    tree: ast.Module


@dataclass(frozen=True, slots=True)
class HouseFigures:
    """What a source tree asks of its reader.

    Attributes:
        lines: Logical lines: statements, docstrings left out.
        twice: Class names that stand in more than one module, with the modules.
        languages: Places in `codekv` and `lsp` that name a programming language.
        numbers: Module-level numbers without a comment or a docstring.
    """

    lines: int
    modules: int
    twice: dict[str, list[str]]
    languages: list[str]
    numbers: list[str]


def figures(root: Path = ROOT) -> HouseFigures:
    """Count everything in a source tree."""
    modules = list(read_modules(root, PACKAGES))
    product = [each for each in modules if not each.path.startswith("bench")]
    return HouseFigures(
        sum(map(logical_lines, modules)),
        len(modules),
        names_in_use_twice(modules),
        [place for module in product for place in language_places(module)],
        [place for module in modules for place in bare_numbers(module)],
    )


def read_modules(root: Path, packages: Iterable[str]) -> Iterator[SourceModule]:
    """Parse the files of some packages; samples are data."""
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            relative = path.relative_to(root)
            if "samples" not in relative.parts:
                text = path.read_text("utf-8")
                yield SourceModule(relative.as_posix(), text, ast.parse(text))


def logical_lines(module: SourceModule) -> int:
    """Count statements, without docstrings."""
    return sum(
        isinstance(node, ast.stmt) and not _is_docstring(node)
        for node in ast.walk(module.tree)
    )


def names_in_use_twice(modules: Iterable[SourceModule]) -> dict[str, list[str]]:
    """Find class names that mean two things."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module.path)
    return {name: found for name, found in places.items() if len(found) > 1}


def language_places(module: SourceModule) -> Iterator[str]:
    """Find texts that are a language's name, and names of which one is a part."""
    known = frozenset(language_ids()) - FORMATS
    long = frozenset(name for name in known if len(name) >= SHORTEST_WORD)
    # The parts of an f-string are no names: f"c{number}" is not C.
    joined = (node for node in ast.walk(module.tree) if isinstance(node, ast.JoinedStr))
    parts = frozenset(id(part) for node in joined for part in node.values)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_named = node.value in known and id(node) not in parts
        elif isinstance(node, ast.Name | ast.FunctionDef | ast.ClassDef):
            name = node.id if isinstance(node, ast.Name) else node.name
            is_named = not long.isdisjoint(name.lower().split("_"))
        else:
            continue
        if is_named:
            yield f"{module.path}:{node.lineno}"


def bare_numbers(module: SourceModule) -> Iterator[str]:
    """Find module-level numbers for which no reason stands beside them."""
    commented = _commented_lines(module.text)
    body = module.tree.body
    for node, below in zip(body, [*body[1:], None], strict=True):
        value = getattr(node, "value", None)
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not _is_number(value):
            continue
        lines = range(node.lineno - 1, (node.end_lineno or node.lineno) + 1)
        has_text = below is not None and _is_docstring(below)
        if not has_text and commented.isdisjoint(lines):
            yield f"{module.path}:{node.lineno}"


def _is_number(value: ast.expr | None) -> bool:
    """Whether a value is a number other than 0 and 1, or made of numbers alone."""
    if isinstance(value, ast.Tuple | ast.List | ast.Set):
        return any(map(_is_number, value.elts))
    if isinstance(value, ast.BinOp):
        return _is_number(value.left) or _is_number(value.right)
    if isinstance(value, ast.UnaryOp):
        return _is_number(value.operand)
    if not isinstance(value, ast.Constant) or isinstance(value.value, bool):
        return False
    return isinstance(value.value, int | float) and value.value not in (0, 1)


def _is_docstring(node: ast.AST) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _commented_lines(text: str) -> frozenset[int]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return frozenset(t.start[0] for t in tokens if t.type == tokenize.COMMENT)


def main(arguments: Sequence[str]) -> int:
    """Print the figures of the trees named; 2 where there is none."""
    roots = [Path(word) for word in arguments] or [ROOT]
    for root in roots:
        if not (root / "codekv").is_dir():
            sys.stderr.write(f"codekv: {root}: no source tree of codekv\n")
            return 2
    every = [figures(root) for root in roots]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for root in roots:
        table.add_column(root.resolve().name, justify="right")
    rows = {
        "modules of codekv, lsp, bench": [each.modules for each in every],
        "logical lines": [each.lines for each in every],
        "class names in use twice": [len(each.twice) for each in every],
        "places that name a language": [len(each.languages) for each in every],
        "numbers without a reason": [len(each.numbers) for each in every],
    }
    for title, numbers in rows.items():
        table.add_row(title, *(f"{number:,}" for number in numbers))
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
