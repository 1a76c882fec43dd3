import json
import os
import subprocess
import sys

import pytest

from codekv.cli import run
from codekv.testing.blocks import make_store, put_all


@pytest.fixture
def root(tmp_path, monkeypatch):
    """The folder of blocks inside a cache folder of this test's own."""
    monkeypatch.setattr("codekv.commands.cache.cache_dir", lambda: tmp_path)
    return tmp_path / "blocks"


def fill(root, *lengths: int, fingerprint: str = "model"):
    store = make_store(root, fingerprint=fingerprint)
    put_all(store, [store.ref(None, [n] * n) for n in lengths])
    store.flush(10_000)
    return sorted(root.rglob("*.kv"))


def test_stats_of_nothing(root, capsys):
    assert run(["cache", "stats"]) == 0
    assert "nothing is stored" in capsys.readouterr().out


def test_stats_as_json(root, capsys):
    fill(root, 3, 4)
    fill(root, 5, fingerprint="other")

    assert run(["cache", "stats", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)

    assert report["folder"] == str(root)
    totals = {
        model["fingerprint"]: (model["codec"], model["blocks"], model["tokens"])
        for model in report["models"]
    }
    assert totals == {
        "model/plain-fp32-1": ("fp32", 2, 7),
        "other/plain-fp32-1": ("fp32", 1, 5),
    }


def test_stats_as_table(root, capsys):
    fill(root, 3, 4)

    assert run(["cache", "stats"]) == 0
    assert "fp32" in capsys.readouterr().out


def test_stats_when_every_file_is_broken(root, capsys):
    for path in fill(root, 3):
        path.write_bytes(b"")

    assert run(["cache", "stats"]) == 0
    assert "unknown" in capsys.readouterr().out


def test_verify_of_sound_blocks(root, capsys):
    fill(root, 3, 4)

    assert run(["cache", "verify"]) == 0
    assert capsys.readouterr().out == "2 sound, 0 broken and removed\n"


def test_verify_names_and_removes_the_broken(root, capsys):
    first, second, third = fill(root, 3, 4, 5)
    os.truncate(first, 10)
    second.rename(third)

    assert run(["cache", "verify"]) == 1
    captured = capsys.readouterr()

    assert captured.out == "0 sound, 2 broken and removed\n"
    assert first.name in captured.err
    assert "rule preamble" in captured.err
    assert "name is not that of its content" in captured.err
    assert list(root.rglob("*.kv")) == []


def test_verify_finds_a_block_in_another_models_folder(root, capsys):
    path = fill(root, 3)[0]
    elsewhere = root / ("0" * 32)
    elsewhere.mkdir()
    path.rename(elsewhere / path.name)

    assert run(["cache", "verify"]) == 1
    assert "belongs to another model" in capsys.readouterr().err


def test_clear_removes_blocks_and_nothing_else(root, capsys):
    path = fill(root, 3, 4)[0]
    (path.parent / ".tmp-1-2").write_bytes(b"half")
    (path.parent / "notes.txt").write_text("mine")
    fill(root, 5, fingerprint="other")

    assert run(["cache", "clear"]) == 0
    assert capsys.readouterr().out.startswith("removed 3 blocks")
    assert [item.name for item in root.rglob("*") if item.is_file()] == ["notes.txt"]


def test_failure_is_one_line(root, capsys):
    root.parent.mkdir(exist_ok=True)
    root.write_text("a file where the folder should be")

    assert run(["cache", "stats"]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"codekv: {root} cannot be listed")
    assert captured.err.count("\n") == 1


def test_command_never_waits_for_torch():
    code = "import sys, codekv.commands.cache; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
