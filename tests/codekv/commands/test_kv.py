"""`codekv kv report` on a tiny model: what it writes, keeps and refuses."""

import json

import pytest
from click.testing import CliRunner

from bench.lab.corpus import LabText
from bench.lab.laboratory import Laboratory, Size
from bench.lab.report import PARTS
from bench.traces.corpus import SAMPLES
from codekv.cli import run
from codekv.commands import kv
from codekv.errors import UsageError
from codekv.storage.classtable import FILE_NAME
from codekv.testing.model import ByteTokenizer, TinyRuntime

SAMPLE = SAMPLES / "depot" / "parcels.py"
SIZE = Size(num_texts=1, num_context=200, num_probe=8, num_cursors=2)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    def open_tiny(name, *, quick):
        del name, quick
        texts = [LabText("parcels", SAMPLE.read_bytes())]
        lab = Laboratory(TinyRuntime(), ByteTokenizer(), texts, SIZE, kv._tell)
        return lab, tmp_path

    monkeypatch.setattr(kv, "_open", open_tiny)
    monkeypatch.setattr("codekv.model.runtime.loader.fingerprint", lambda *_: "tiny")
    return tmp_path


def invoke(*arguments):
    return CliRunner().invoke(kv.kv, ["report", *map(str, arguments)])


def test_a_whole_report_writes_json_picture_and_table(folder):
    json_file, picture = folder / "report.json", folder / "bits.svg"
    result = invoke("--json", json_file, "--picture", picture)
    assert result.exit_code == 0, result.output
    report = json.loads(json_file.read_text())
    assert {"model", "presets", "classes", "controls", "disk", "speed"} <= set(report)
    assert picture.read_text().startswith("<svg")
    assert (folder / FILE_NAME).is_file()
    assert "balanced" in result.output


def test_parts_add_up_to_a_whole(folder):
    json_file = folder / "report.json"
    for part in ("presets", "cursors"):
        assert invoke("--json", json_file, "--part", part).exit_code == 0
    report = json.loads(json_file.read_text())
    balanced = [row for row in report["presets"] if row["name"] == "balanced"]
    assert len(balanced) == 1
    assert {"kl_mean", "same_text"} <= set(balanced[0])
    assert not (folder / FILE_NAME).exists()


def test_another_models_report_is_not_mixed_in(folder):
    json_file = folder / "report.json"
    json_file.write_text('{"schema": 1, "model": "other"}')
    result = invoke("--json", json_file, "--part", "disk")
    assert isinstance(result.exception, UsageError)
    json_file.write_text("not json")
    result = invoke("--json", json_file, "--part", "disk")
    assert isinstance(result.exception, UsageError)


def test_a_quick_look_keeps_no_table(folder):
    assert invoke("--quick", "--part", "classes").exit_code == 0
    assert not (folder / FILE_NAME).exists()


def test_the_command_is_offered_and_knows_the_parts(capsys):
    assert run(["kv", "report", "--help"]) == 0
    assert "--picture" in capsys.readouterr().out
    assert kv._PARTS == PARTS
