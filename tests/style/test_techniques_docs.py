"""docs/techniques.md: its settings exist, and every command in it runs."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from codekv.cli import cli
from codekv.config import Config

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "techniques.md").read_text("utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if line.startswith("| ") and not line.startswith(("| technique", "|---"))
]
COMMANDS = sorted(
    {
        command
        for row in ROWS
        for command in re.findall(r"`((?:codekv|pytest) [^`]+)`", row[2])
    }
)

NAMES = """block cache; hash table; copy-on-write; precision; important heads; sparse
cache; dynamic size; attention importance; purge every; topic switch; memory guard;
differential values, entropy coding; syntax class; monitor; hardware"""
"""What the first description of the system asks for, by name."""


def test_every_technique_that_was_asked_for_has_a_row() -> None:
    techniques = "\n".join(row[0] for row in ROWS)
    for name in " ".join(NAMES.split()).split("; "):
        assert name in techniques


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_is_whole_and_its_settings_exist(row) -> None:
    assert len(row) == 5
    assert all(row)
    assert re.search(r"`(?:codekv|pytest) ", row[2]), "say how to see it"
    for name in re.findall(r"`((?:kvcache|completion|server|model)\.[\w.]+)", row[1]):
        node = Config()
        for part in name.split("."):
            node = getattr(node, part)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs(command, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("CODEKV_CACHE_DIR", str(tmp_path))
    program, *arguments = shlex.split(command)
    if program == "codekv":
        result = CliRunner().invoke(cli, arguments)
        assert result.exit_code == 0, result.output
        return
    # The suite runs them; here it is enough that there is something to run.
    for name in arguments:
        assert "def test_" in (ROOT / name).read_text("utf-8")
