import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from pygls.protocol import LanguageServerProtocol

import codekv

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_one_version_everywhere():
    extension = json.loads((ROOT / "editors/vscode/package.json").read_text("utf-8"))
    assert PROJECT["version"] == codekv.__version__ == extension["version"]


def test_privates_of_pygls_come_with_a_cap():
    """A new version may change what has no promise; docs/decisions/0004-pygls.md."""
    (pygls,) = [line for line in PROJECT["dependencies"] if line.startswith("pygls")]
    assert re.fullmatch(r"pygls>=[\d.]+,<[\d.]+", pygls)
    page = (ROOT / "docs/decisions/0004-pygls.md").read_text("utf-8")
    privates = set(re.findall(r"`(_\w+)`", page))
    known = set(dir(LanguageServerProtocol)) | set(
        re.findall(r"self\.(_\w+)", Path(codekv_protocol()).read_text("utf-8"))
    )
    assert privates
    assert privates <= known
    used = "".join(p.read_text("utf-8") for p in (ROOT / "lsp").rglob("*.py"))
    assert all(f"{name}" in used for name in privates)


def codekv_protocol():
    import pygls.protocol.json_rpc as module

    return module.__file__


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda p: p.name
)
def test_a_file_for_the_host_can_be_read(path):
    assert yaml.safe_load(path.read_text("utf-8"))


def test_the_workflows_run_what_the_makefile_has():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    targets |= set(
        re.findall(r"^([a-z-]+):", (ROOT / "editors/editors.mk").read_text(), re.M)
    )
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        for target in re.findall(r"run: make ([a-z-]+)", path.read_text("utf-8")):
            assert target in targets


def test_the_matrix_has_every_python_and_system_that_is_promised():
    text = (ROOT / ".github/workflows/test.yml").read_text("utf-8")
    matrix = yaml.safe_load(text)["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert len(matrix["os"]) == 3
