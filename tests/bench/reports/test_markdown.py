import json

import pytest

from bench.reports import markdown
from bench.traces import generators as traces
from codekv.errors import UsageError

NUMBERS = {"p50": 2.0, "p95": 4.0, "p99": 5.0, "max": 9.0, "q1": 1.0, "q3": 3.0}


def row(name, ttft=60.0):
    return {
        "name": name,
        "requests": 30,
        "hit_rate": 0.99,
        "same_as_fresh": 1.0,
        **dict.fromkeys(
            ("context_tokens", "tokens_computed", "latency_ms", "decode_ms"), NUMBERS
        ),
        "ttft_ms": {"p50": ttft, "p95": ttft},
    }


def a_report(**changes):
    made = {
        "schema": 1,
        "partial": False,
        "command": "codekv bench --sources",
        "seed": 1,
        "pace": "max",
        "host": {
            "cpu": "a processor",
            "threads": 2,
            "memory_gb": 16,
            "load_1m": 0.1,
            "os": "Linux",
            "python": "3.11",
            "features": [],
            "versions": {},
        },
        "model": {"name": "m", "source_sha256": "ab" * 32},
        "speed": {},
        "hit_rate": 0.97,
        "traces": [row("type-line")],
        "baselines": [{"name": "plugin-layout", "traces": [row("type-line", 600.0)]}],
        "series": {"type-line": [[1]]},
    }
    return made | changes


def test_page_opens_with_caveats_and_names_every_target():
    text = markdown.page({"qwen": a_report()})
    assert text.index("Read this first") < text.index("## qwen")
    assert "first token 10.0 times sooner" in text
    assert "| **type-line** | codekv | 30 |" in text
    assert "|  | plugin-layout | 30 |" in text


def test_kept_reports_have_no_single_requests(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(a_report()))
    target = markdown.keep(path, "qwen", tmp_path / "results")
    assert "series" not in json.loads(target.read_text())
    assert list(markdown.kept(tmp_path / "results")) == ["qwen"]


def test_partial_reports_are_not_kept(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(a_report(partial=True)))
    with pytest.raises(UsageError, match="partial"):
        markdown.keep(path, "qwen", tmp_path)


def test_page_in_the_repository_is_up_to_date():
    assert markdown.PAGE.read_text("utf-8") == markdown.page(markdown.kept())


def test_readme_explains_every_trace_and_key():
    text = markdown.RESULTS.with_name("README.md").read_text("utf-8")
    for name in traces.TRACES:
        assert f"| `{name}` |" in text
