import json
import subprocess
import sys
from pathlib import Path

import pytest

from codekv import cli
from codekv.commands import doctor
from codekv.errors import CodekvError
from codekv.model.library import check, store
from codekv.testing.models import write_tiny_gguf


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "share" / "codekv"


@pytest.fixture
def tiny(home, tmp_path):
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path)
    return store.import_gguf(path, "tiny", "a test", None)


def fails(capsys, *arguments, code=1):
    """Run a command that must fail, and return the one line that tells why."""
    assert cli.run(list(arguments)) == code
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith("codekv: ")] == lines[-1:]
    assert "Traceback" not in "".join(lines)
    return lines[-1]


def test_every_command_in_the_table_exists_and_has_help(capsys):
    assert cli.run(["--help"]) == 0
    listing = capsys.readouterr().out
    for name in cli.COMMANDS:
        assert f"  {name} " in listing


@pytest.mark.parametrize(
    "arguments",
    [["nothing"], ["model", "nothing"], ["model", "pull", "--what"], ["model", "add"]],
)
def test_wrong_usage_is_exit_code_2(capsys, arguments):
    assert cli.run(arguments) == 2
    assert "Error: " in capsys.readouterr().err


def test_any_error_of_ours_is_one_line(capsys, monkeypatch):
    def fail(*_args, **_kwargs):
        raise CodekvError("first\nsecond")

    monkeypatch.setattr(store, "list_models", fail)
    assert fails(capsys, "model", "list") == "codekv: first second"


def test_an_interrupt_is_one_line(capsys, monkeypatch):
    def interrupt(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "list_models", interrupt)
    assert "stopped" in fails(capsys, "model", "list")


def test_the_list_shows_what_is_here_and_what_can_be_pulled(tiny, capsys):
    assert cli.run(["model", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line for line in lines[1:]}
    assert "not here" in rows["qwen2.5-coder-0.5b"]
    assert "(default)" in rows["qwen2.5-coder-0.5b"]
    assert "ready" in rows["tiny"]


def test_a_local_file_is_added(home, tmp_path, capsys):
    path = tmp_path / "x.gguf"
    write_tiny_gguf(path)
    assert cli.run(["model", "add", str(path), "--name", "mine"]) == 0
    assert "mine is ready" in capsys.readouterr().out
    assert store.open_model("mine").family == "llama"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["pull", "qwen-coder"], "did you mean qwen2.5-coder-0.5b"),
        (["add", "nothing.gguf"], "there is no file or folder nothing.gguf"),
        (["add", "."], "config.json is missing"),
        (["check", "nothing"], "no model 'nothing' here; run: codekv model pull"),
    ],
)
def test_mistakes_are_one_line(home, capsys, arguments, line):
    assert line in fails(capsys, "model", *arguments)


def test_a_bad_name_is_wrong_usage(home, tmp_path, capsys):
    write_tiny_gguf(tmp_path / "x.gguf")
    arguments = ("model", "add", "x.gguf", "--name", "a/b")
    assert "cannot be a model's name" in fails(capsys, *arguments, code=2)


@pytest.mark.parametrize(("is_good", "code"), [(True, 0), (False, 1)])
def test_the_check_prints_its_report(tiny, capsys, monkeypatch, is_good, code):
    class Report:
        def lines(self):
            return ["divergence [mean] 0.1"]

    Report.is_good = is_good
    monkeypatch.setattr(check, "check_model", lambda folder: Report())
    assert cli.run(["model", "check", "tiny"]) == code
    assert capsys.readouterr().out == "divergence [mean] 0.1\n"


def test_the_check_notices_changed_files(tiny, capsys):
    path = tiny.folder / "source.gguf"
    path.write_bytes(path.read_bytes()[:-1] + b"\x00")
    content = bytearray(path.read_bytes())
    content[-1] ^= 0xFF
    path.write_bytes(content)
    assert "was changed" in fails(capsys, "model", "check", "tiny")


def subjects(findings):
    return {(finding.state, finding.subject) for finding in findings}


def test_the_doctor_names_the_command_that_brings_a_model(home, tmp_path, capsys):
    assert cli.run(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "→ codekv model pull qwen2.5-coder-0.5b" in text
    assert ("bad", "model") in subjects(doctor.examine(tmp_path))


def test_the_doctor_is_content_with_a_model_and_tells_of_the_stand_in(tiny, capsys):
    (tiny.folder.parents[3] / "codekv.toml").write_text('model.name = "tiny"')
    assert cli.run(["doctor"]) == 0
    text = capsys.readouterr().out
    for subject in (
        "codekv",
        "processor",
        "torch",
        "memory",
        "disk",
        "config",
        "model",
    ):
        assert subject in text


def test_the_doctor_shows_problems_of_the_config(tiny, tmp_path):
    (tmp_path / "codekv.toml").write_text("[model]\nnmae = 3\n")
    found = [f for f in doctor.examine(tmp_path) if f.subject == "config"]
    assert [f.state for f in found] == ["note"]
    assert "did you mean name?" in found[0].detail
    assert found[0].remedy.endswith("codekv.toml")


def test_the_doctor_finds_a_damaged_model(tiny, tmp_path):
    (tiny.folder / "tokenizer.json").write_bytes(b"")
    found = [f for f in doctor.examine(tmp_path) if f.subject == "model"]
    assert found[0].state == "note"
    assert found[0].remedy == "codekv model pull tiny --again"


def test_the_doctor_warns_of_a_small_machine(home, tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "_NEED_MEMORY", 2**60)
    monkeypatch.setattr(doctor, "_NEED_DISK", 2**60)
    found = subjects(doctor.examine(tmp_path))
    assert {("note", "memory"), ("note", "disk")} <= found


def test_the_doctor_survives_without_torch(home, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    found = [f for f in doctor.examine(tmp_path) if f.subject == "torch"]
    assert found[0].state == "bad"
    assert found[0].remedy.startswith("pip install torch")


LIGHT = """
import json, sys
from codekv import cli
code = cli.run(json.loads(sys.argv[1]))
slow = ("torch", "transformers", "gguf", "huggingface_hub")
heavy = [name for name in slow if name in sys.modules]
sys.exit(f"imported {heavy}" if heavy else code)
"""


@pytest.mark.parametrize("arguments", [["--help"], ["model", "list"], ["--version"]])
def test_light_commands_do_not_wait_for_torch(home, arguments):
    run = subprocess.run(
        [sys.executable, "-c", LIGHT, json.dumps(arguments)],
        capture_output=True,
        cwd=Path(cli.__file__).parents[1],
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr.decode()
