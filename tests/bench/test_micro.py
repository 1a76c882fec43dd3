import json

import pytest

from bench.micro import candidates, index, protocol, store
from bench.reports import markdown, parts
from codekv.testing.tiny import load_tiny


def test_index_measurement_ends_with_json(monkeypatch, capsys):
    monkeypatch.setattr(index, "SIZES", (10, 30))
    monkeypatch.setattr(index, "REPEATS", 4)

    index.main()
    report = json.loads(capsys.readouterr().out.splitlines()[-1])

    assert [row["functions"] for row in report["rows"]] == [12, 36]
    assert all(row["match_us"] > 0 for row in report["rows"])


def test_store_measurement_ends_with_json(monkeypatch, capsys):
    monkeypatch.setattr(store, "NUM_BLOCKS", 2)
    monkeypatch.setattr(store, "NUM_FILES", 5)
    monkeypatch.setattr(store, "SHAPES", ((1, 8, 8),) * 2)

    store.main()
    report = json.loads(capsys.readouterr().out.splitlines()[-1])

    sizes = {row["codec"]: row["bytes_per_token"] for row in report["rows"]}
    assert sizes["fp32"] == pytest.approx(2 * 2 * 8 * 4)
    assert {"fp16", "int8"} < sizes.keys()
    assert report["open"]["files"] == 5


def test_candidates_measurement_ends_with_json(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("CODEKV_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("codekv.completion.load.load_pipeline", load_tiny)
    monkeypatch.setattr(candidates, "NUM_PLACES", 6)

    candidates.main()
    report = json.loads(capsys.readouterr().out.splitlines()[-1])

    assert parts.PARTS["candidates"].rows.keys() <= report.keys()
    assert 0 < report["places"] <= 6
    assert 1 <= report["texts"] <= candidates.NUM_CANDIDATES
    assert 0 < report["ratio"] <= report["ratio_p90"]


@pytest.mark.e2e
def test_protocol_measurement_becomes_a_section_of_the_page(
    monkeypatch, tmp_path, capsys
):
    for name, value in {"NUM_LINES": 50, "NUM_ASKS": 5, "NUM_EDITS": 2}.items():
        monkeypatch.setattr(protocol, name, value)
    monkeypatch.setattr(protocol, "IDLE_S", 0.05)
    path = tmp_path / "out.json"

    protocol.main([str(path)])
    report = json.loads(capsys.readouterr().out.splitlines()[-1])

    assert report == json.loads(path.read_text())
    about = {"bench", "schema", "host", "starts"}
    assert set(parts.PARTS["protocol"].rows) == set(report) - about
    assert report["flood_answers"] == 30
    assert report["flood_generations"] <= 2
    assert report["starts"] == 5
    assert report["initialize_p50_ms"] <= report["initialize_max_ms"]
    kept = markdown.keep(path, "whatever", tmp_path / "results")
    text = markdown.page(markdown.kept(kept.parent))
    assert text.count("## ") == markdown.HEAD.count("## ") + 1
    assert f"## {parts.PARTS['protocol'].title}" in text
    assert "| generations that they cost |" in text
