import json

import pytest

from bench.micro import index, store


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
