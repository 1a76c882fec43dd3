import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ALLOWED = ROOT / "codekv" / "processes.py"
MODULES = sorted(
    path
    for room in ("codekv", "lsp", "bench", "grammars")
    for path in (ROOT / room).rglob("*.py")
    if path != ALLOWED and "samples" not in path.parts
)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_is_only_run_away_from_the_working_folder(path):
    """`python -m` imports from the working folder; `module_command` does not."""
    text = path.read_text("utf-8")
    if "-m" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.List, ast.Tuple)):
            words = [e.value for e in node.elts if isinstance(e, ast.Constant)]
            assert "-m" not in words, f"{path}:{node.lineno}: use module_command"
