import ast
import re
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


TEXTS = sorted(
    path
    for pattern in (
        "*.md",
        "*.py",
        "*.ts",
        "*.lua",
        "*.el",
        "*.txt",
        "*.json",
        "*.toml",
    )
    for path in ROOT.rglob(pattern)
    if not {".venv", ".tools", "node_modules", "samples", "out", ".git"}
    & set(path.parts)
    and path != Path(__file__)
)


def test_no_text_tells_to_install_a_package_of_that_name():
    """Whoever takes the name `codekv` on an index would run code on users' machines."""
    install = re.compile(
        r"(?:pip|pipx|tool|add)[`'\"]? install [^\n]*?(?<![./\w-])codekv(?![\w./-])"
    )
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in TEXTS
        for match in install.finditer(path.read_text("utf-8", "replace"))
    ]
    assert found == []
