import asyncio
import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

import codekv
from codekv.errors import UsageError
from codekv.testing.tiny import load_tiny

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(
    r"^```python\n(.*?)^```", (ROOT / "docs" / "api.md").read_text("utf-8"), re.M | re.S
)


@pytest.fixture(autouse=True)
def tiny(monkeypatch, tmp_path):
    monkeypatch.setattr("codekv.completion.load.load_pipeline", load_tiny)
    monkeypatch.setenv("CODEKV_CACHE_DIR", str(tmp_path))


def test_there_are_examples():
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs_as_it_stands(number):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(EXAMPLES[number], f"docs/api.md, example {number}", "exec"), {})
    assert out.getvalue()


def test_the_public_names_are_those_of_the_page():
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    for name in codekv.__all__:
        assert f"`{name}`" in page
        assert getattr(codekv, name).__doc__
    with pytest.raises(AttributeError):
        codekv.no_such_name  # noqa: B018


def test_types_come_with_the_package():
    assert (ROOT / "codekv" / "py.typed").is_file()


def test_importing_the_package_imports_nothing_heavy():
    code = (
        "import codekv, sys; print({'torch', 'pydantic', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("cursor", [-1, 5])
def test_a_cursor_outside_the_text_is_a_clear_error(cursor):
    with pytest.raises(UsageError, match=r"outside a text of 4 characters"):
        codekv.complete("x = ", cursor)


def test_a_closed_completer_says_so():
    with pytest.raises(UsageError, match="not open"):
        asyncio.run(codekv.Completer().complete("x"))


def test_a_cursor_counts_characters_whatever_the_line_ends():
    async def ask():
        async with codekv.Completer() as completer:
            return await completer.complete("é = 1\r\n🙂 = \r\ny = 2\r\n", 11)

    answer = asyncio.run(ask())
    for item in answer.items:
        assert item.start_byte <= len("é = 1\n🙂 = ".encode()) <= item.end_byte
