import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("codekv", "lsp", "grammars", "bench")
OTHERS = ROOT / "bench" / "samples"  # a project of its own that nothing imports
FILES = [
    file
    for package in PACKAGES
    for file in sorted((ROOT / package).rglob("*.py"))
    if OTHERS not in file.parents
]

MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 6


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_module_keeps_the_caps(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.count("\n") <= MAX_MODULE_LINES, "a longer file means a missing noun"
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        assert lines <= MAX_FUNCTION_LINES, f"{node.name} has {lines} lines"
        arguments = node.args.args + node.args.kwonlyargs + node.args.posonlyargs
        names = [a.arg for a in arguments if a.arg not in {"self", "cls"}]
        if not any(ast.unparse(d).startswith("click") for d in node.decorator_list):
            assert len(names) <= MAX_PARAMETERS, f"{node.name} takes {len(names)}"


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_module_says_its_scope(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8")))

    assert docstring
    assert len(docstring) > 10
