"""Every kind of report becomes a section, and nothing of single answers is kept."""

import json

import pytest

from bench.reports import markdown, parts, sections
from bench.reports.index_plot import draw
from codekv.errors import UsageError

INFILLING = {
    "bench": "infilling",
    "data": "HumanEval-SingleLineInfilling",
    "model": "tiny",
    "prompt": "own",
    "mode": "fresh",
    "settings": ["completion.healing=false"],
    "rows": 7,
    "exact_match": 0.5,
    "edit_similarity": 0.625,
    "pass_at_1": 0.75,
    "does_not_parse": 0.125,
    "empty": 0.0,
    "partial": False,
    "outcomes": [{"text": "secret"}],
}
LINES = {
    "bench": "next-line",
    "model": "tiny",
    "settings": [],
    "rows": 3,
    "exact_match": 0.25,
    "edit_similarity": 0.5,
    "indentation": 1.0,
    "parses": 0.75,
    "empty": 0.0,
    "latency_ms_p50": 120.0,
}
REPLAY = {
    "bench": "replay",
    "model": "tiny",
    "settings": [],
    "changes": 12,
    "questions": 400,
    "shown": 90,
    "saved": 0.3125,
    "saved_net": 0.125,
    "would_be_accepted": 0.4375,
    "retained": 0.5,
    "undone": 0.0,
    "delta_chrf": 0.625,
    "latency_ms": {"p50": 110.0, "p95": 390.0, "p99": 600.0},
    "outcomes": [{"offered": "secret"}],
}
FAULTS = {
    "bench": "faults",
    "rows": 40,
    "offered": 30,
    "faults": {"suffix said twice": 0},
    "filters": {"suffix": 4},
}
COMPRESSION = {
    "model": "tiny",
    "texts": ["a", "b"],
    "context_tokens": 64,
    "probe_tokens": 8,
    "cursors": 12,
    "presets": [
        {"name": "exact", "bits_per_element": 32.0, "kl_mean": 0.0},
        {"name": "small", "bits_per_element": 4.95, "kl_mean": 0.002, "same_text": 0.5},
    ],
    "controls": [{"name": "random", "bits_per_element": 6.0, "kl_mean": 0.25}],
    "disk": [{"name": "small", "entropy": "zstd", "share_of_memory": 0.93}],
    "speed": {"encode_tok_s": 1234.0, "decode_tok_s": 5678.0},
}


def part(kind):
    shown = parts.PARTS[kind]
    if shown.columns is None:
        return {"bench": kind} | dict.fromkeys(shown.rows, 2.5)
    return {"bench": kind, "rows": [dict.fromkeys(shown.columns, 2.5)]}


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (INFILLING, ["| 7 | 0.500 | 0.750 | 0.125 |", "completion.healing=false"]),
        (LINES, ["| 3 | 0.250 | 0.500 | 1.000 | 0.750 |", "| python | tune | tiny |"]),
        (LINES | {"language": "go", "use": "test"}, ["| go | test | tiny |"]),
        (REPLAY, ["| 12 | 400 | 90 | 0.312 | 0.125 | 0.438 |", "| 110 | 390 |"]),
        (FAULTS, ["40 places, 30 answers", "| suffix said twice | 0 |", "10.0%"]),
        (COMPRESSION, ["| small | 4.95 |", "| 50.0% |", "zstd", "5,678", "12 cursors"]),
        *((part(kind), [parts.PARTS[kind].title, "2.50"]) for kind in parts.PARTS),
    ],
)
def test_a_report_becomes_a_section(tmp_path, report, expected):
    path = tmp_path / "report.json"
    path.write_text(json.dumps({"schema": 1} | report))
    kept = markdown.keep(path, "name", tmp_path / "results")
    text = markdown.page(markdown.kept(kept.parent))

    assert "secret" not in kept.read_text()
    assert all(words in text for words in expected)
    assert "secret" not in text
    assert not any(line.count("|") == 1 for line in text.splitlines())


def test_a_partial_evaluation_is_not_kept(tmp_path):
    path = tmp_path / "report.json"
    path.write_text(json.dumps(INFILLING | {"schema": 1, "partial": True}))
    with pytest.raises(UsageError, match="partial"):
        markdown.keep(path, "name", tmp_path / "results")


def test_the_index_is_drawn_as_a_file_of_its_own():
    names = ("name_us", "match_us", "content_us", "insert_us")
    rows = [{"functions": n} | dict.fromkeys(names, n / 10) for n in (10, 100)]
    assert draw(rows).startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert sections.kind_of({"presets": []}) == sections.TRACES
