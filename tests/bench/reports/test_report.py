import asyncio
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner
from rich.console import Console

from bench import run
from bench.reports import compare, html, markdown, picture, summary, table
from bench.reports.progress import RichProgress
from bench.reports.report import SCHEMA, notes, report
from bench.reports.svg import Scale, short
from bench.run import Entrant, Options
from bench.targets.counting import Counted
from bench.targets.target import ServiceTarget
from bench.traces.corpus import SAMPLES
from bench.traces.sample import Journal
from codekv.completion.api import AnswerSource, Completion, Item, Timing, TokenCounts
from codekv.config import Config
from codekv.errors import CodekvError, UsageError
from codekv.testing.model import ByteTokenizer
from codekv.testing.service import ScriptedService, ServiceScript

ABOUT = {
    "host": {
        "cpu": "a processor <fast>",
        "threads": 2,
        "cores": 2,
        "memory_gb": 16.0,
        "os": "Linux",
        "python": "3.11",
        "features": ["avx2"],
        "load_1m": 0.5,
        "versions": {"codekv": "0.1.0"},
    },
    "model": {"name": "m", "source_sha256": "00"},
    "speed": {
        "prefill_tok_s": 500.0,
        "decode_ms": 29.0,
        "bytes_per_step": 494_000_000,
        "bandwidth_gb_s": 25.0,
        "bound_ms": 19.8,
    },
    "seed": 1,
    "pace": "max",
    "command": "codekv bench src",
    "config": Config().model_dump(mode="json"),
}


class Silent:
    def trace(self, target, name, episodes):
        pass

    def episode(self, samples):
        pass


class Known(ServiceTarget):
    """Answers with costs that are known in advance."""

    def __init__(self, computed, text="x", fail_at=None):
        super().__init__(lambda: ScriptedService(ServiceScript(), Config()))
        self.computed, self.answer, self.fail_at = computed, text, fail_at
        self.asked = 0

    async def ask(self, step):
        self.asked += 1
        if self.asked == self.fail_at:
            raise CodekvError("the model is gone; pull it again")
        tokens = TokenCounts(
            1000, 990 - self.computed, 6, 4, self.computed, generated=5, steps=4
        )
        items = (Item("", self.answer, 0, 0),)
        return Completion(items, "m", Timing(9.0, 3.0, 6.0, 3.0), tokens)


OPTIONS = Options(SAMPLES, ("type-line", "jump"), episodes=2, fresh_asks=4)


def executed(entrants, journal=None, options=OPTIONS):
    built = run.plan(options)
    return asyncio.run(
        run.execute(options, built, entrants, journal or Journal(None, "r"), Silent())
    )


@pytest.fixture(scope="module")
def made():
    entrants = [
        Entrant("codekv", lambda: Known(2)),
        Entrant("fresh", lambda: Known(900)),
        Entrant("plugin-layout", lambda: Known(300)),
    ]
    return report(executed(entrants), ABOUT)


def test_report_has_the_documented_names(made):
    assert made["schema"] == SCHEMA == 1
    assert set(made) >= {"host", "model", "speed", "traces", "baselines", "monitor"}
    row = made["traces"][0]
    assert row["name"] == "type-line"
    assert row["requests"] == row["counted"] == row["timed"] == 30
    assert sum(row["repositories"].values()) == 30
    assert len(row["repositories"]) == 2
    assert set(row["latency_ms"]) >= {"p50", "p95", "p99", "max"}
    assert set(row["ttft_ms"]) == set(row["decode_ms"]) == {"p50", "p95"}
    assert row["tokens_computed"] == {"p50": 2, "p95": 2, "max": 2}
    assert row["context_tokens"] == {"p50": 1000, "max": 1000}
    assert row["decode_ms_per_step"] == 1.5
    assert [base["name"] for base in made["baselines"]] == ["fresh", "plugin-layout"]
    assert made["start"]["starts"] == 1
    assert made["start"]["rss_mb"]["max"] > 1
    assert made["monitor"]["hit_rate"] == pytest.approx(0.998)
    json.dumps(made)


def test_contexts_that_the_budget_cut_are_noted(made):
    assert made["notes"] == []
    cut = json.loads(json.dumps(made["traces"]))
    cut[0]["context_tokens"]["p50"] = 90
    (note,) = notes(cut, made["baselines"])
    assert "type-line" in note
    assert "jump" not in note
    assert "--budget" in note
    # Another layout may be longer for other reasons.
    assert notes(cut, [made["baselines"][1]]) == []


def test_hit_rate_counts_tokens(made):
    assert made["hit_rate"] == pytest.approx(0.998)
    assert made["traces"][0]["grades"]["restored"] == 30 * 6


def test_fresh_is_asked_for_a_sample_and_compared(made):
    row = made["traces"][0]
    assert row["same_as_fresh"] == 1.0
    assert 3 <= row["compared_with_fresh"] <= 6
    entrants = [
        Entrant("codekv", lambda: Known(2)),
        Entrant("fresh", lambda: Known(900, "y")),
    ]
    other = report(executed(entrants), ABOUT)
    assert other["traces"][0]["same_as_fresh"] == 0.0


def test_tokens_of_baselines_are_counted_for_every_request_and_times_sampled():
    result = executed([Entrant("codekv", lambda: Known(2))])
    result.samples["plugin-layout"] = {"jump": result.samples["codekv"]["jump"][:3]}
    counted = [Counted("arrive", 500, 500), *[Counted("type", 1000, 400)] * 30]
    result.counted = {"plugin-layout": {"type-line": counted, "jump": counted}}
    made = report(result, ABOUT)
    (base,) = made["baselines"]
    assert [row["name"] for row in base["traces"]] == ["type-line", "jump"]
    for row, timed in zip(base["traces"], (0, 3), strict=True):
        assert row["requests"] == row["counted"] == 30
        assert row["timed"] == timed
        assert row["computed_share"] == {"p50": 0.4, "p95": 0.4}
        assert row["tokens_computed"]["max"] == 400
        assert row["hit_rate"] == 0.6
        assert row["labels"]["arrive"]["requests"] == 1
    names, rows = table.share_rows(made)
    assert names == ["codekv", "plugin-layout"]
    assert rows[0] == ("type-line", ["0.20% / 0.20%", "40.00% / 40.00%"])
    assert table.requests(base["traces"][1]) == "30 (3)"
    assert table.timed(base["traces"][0], "latency_ms", "p50") == [""]
    assert "<svg" in html.render(made)
    assert "40.00% / 40.00%" in markdown.page({"m": made})


def test_comparisons_with_fresh_runs_are_shown_everywhere(made, capsys):
    known = {"asks": 7, "inexact": 3, "kl_mean": 0.0123, "kl_max": 0.0456}
    known |= {"kl_noise": 0.0042, "same_top": 1.0, "after_idle_inexact": 0}
    known |= {"after_idle_kl": 0.0, "after_idle_same_top": 1.0}
    compared = json.loads(json.dumps(made))
    compared["traces"][1]["divergence"] = known
    table.show(Console(width=160), compared)
    for text in (
        capsys.readouterr().out,
        html.render(compared),
        markdown.page({"m": compared}),
    ):
        for number in ("0.0123", "0.0456", "0.0042"):
            assert number in text
    assert "Compared with fresh runs" not in html.render(made)


def test_no_twin_means_no_claim():
    alone = report(executed([Entrant("codekv", lambda: Known(2))]), ABOUT)
    assert alone["traces"][0]["same_as_fresh"] is None


def test_answers_without_the_model_do_not_count_as_computed_tokens():
    samples = executed([Entrant("codekv", lambda: Known(2))]).samples["codekv"]
    typed = [
        replace(
            s, source=str(AnswerSource.TYPED_THROUGH), context=0, exact=0, computed=0
        )
        for s in samples["jump"]
    ]
    row = summary.trace_summary("jump", typed + samples["jump"])
    assert row["tokens_computed"]["p50"] == 2
    assert row["sources"] == {"typed_through": len(typed), "model": len(typed)}


def test_a_failing_target_gives_a_partial_report_that_can_be_resumed(tmp_path):
    path = tmp_path / "j"
    broken = [Entrant("codekv", lambda: Known(2, fail_at=20))]
    result = executed(broken, Journal(path, "r"))
    assert result.partial
    assert result.error == "the model is gone; pull it again"
    partial = report(result, ABOUT)
    assert partial["traces"][0]["requests"] == 15
    whole = executed([Entrant("codekv", lambda: Known(2))], Journal(path, "r"))
    assert not whole.partial
    assert len(whole.samples["codekv"]["type-line"]) == 32


def test_an_interrupted_run_gives_a_partial_report():
    async def cut():
        started = asyncio.Event()

        class Slow(Known):
            async def ask(self, step):
                if self.asked == 20:
                    started.set()
                    await asyncio.Event().wait()
                return await super().ask(step)

        entrants = [Entrant("codekv", lambda: Slow(2))]
        built = run.plan(OPTIONS)
        task = asyncio.create_task(
            run.execute(OPTIONS, built, entrants, Journal(None, "r"), Silent())
        )
        await started.wait()
        task.cancel()
        return await task

    result = asyncio.run(cut())
    assert result.partial
    assert len(result.samples["codekv"]["type-line"]) == 16
    made = report(result, ABOUT)
    assert "interrupted" in html.render(made)


def test_percentiles_interpolate():
    assert summary.spread([], "p50") == {"p50": 0.0}
    assert summary.percentile([3, 1, 2], 0.5) == 2
    assert summary.percentile([0, 10], 0.95) == pytest.approx(9.5)
    assert summary.spread([1, 2, 3], "p50", "max") == {"p50": 2, "max": 3}


class Collector(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.links, self.open = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [v for k, v in attributes if k in {"src", "href", "xlink:href"}]
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_is_whole_and_asks_nothing_of_the_network(made):
    page = html.render(made)
    collector = Collector()
    collector.feed(page)
    assert collector.open == []
    assert collector.links == []
    assert collector.tags.count("svg") == 6
    assert "script" not in collector.tags
    assert not re.search(r"https?://|url\(|@import", page)
    assert "a processor &lt;fast&gt;" in page


def test_page_survives_a_report_without_any_sample():
    empty = report(run.Result(()), ABOUT)
    assert "<svg" in html.render(empty)
    table.show(Console(file=None, quiet=True), empty)


def test_table_names_every_target(made, capsys):
    table.show(Console(width=160), made)
    shown = capsys.readouterr().out
    assert "plugin-layout" in shown
    assert "99.80%" in shown
    assert "GB/s allow 19.8 ms" in shown


def test_compare_says_slower_quicker_or_neither(tmp_path, made, capsys):
    one, two = tmp_path / "a.json", tmp_path / "b.json"
    # Measured times may round to nothing, or spread as far as the change.
    made = json.loads(json.dumps(made))
    made["traces"][0]["latency_ms"] |= {"q1": 9.0, "p50": 10.0, "q3": 12.0}
    slow = json.loads(json.dumps(made))
    slow["traces"][0]["latency_ms"] |= {"q1": 85.0, "p50": 90.0, "q3": 99.0}
    slow["digests"]["jump"] = "other"
    one.write_text(json.dumps(made))
    two.write_text(json.dumps(slow))
    pairs = {pair.name: compare.reading(pair) for pair in compare.pairs(made, slow)}
    assert pairs == {"type-line": "slower", "jump": "different requests"}
    assert compare.reading(compare.pairs(made, made)[0]) == "within spread"
    compare.show(Console(width=120), one, two)
    assert "slower" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": 99}', '{"schema": 1}', "\0"]
)
def test_compare_refuses_what_is_not_a_report(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="x.json"):
        compare.load(path)


def test_scales_and_numbers():
    linear = Scale(0, 100, 0, 500)
    assert linear(50) == 250
    assert linear(1000) == 500
    assert linear.ticks(5) == [0, 20, 40, 60, 80, 100]
    log = Scale(1, 1000, 0, 300, log=True)
    assert log(10) == pytest.approx(100)
    assert log(0) == 0
    assert log.ticks()[0] == 1
    assert [short(v) for v in (3, 0.25, 12_345)] == ["3", "0.25", "12k"]


def test_same_options_same_run_other_options_other_run():
    built = run.plan(OPTIONS)
    first = run.run_id(OPTIONS, {}, built)
    assert first == run.run_id(OPTIONS, {}, run.plan(OPTIONS))
    assert first != run.run_id(replace(OPTIONS, seed=2), {}, built)
    assert first != run.run_id(OPTIONS, {"model": "other"}, built)


def test_private_store_is_undone(tmp_path, monkeypatch):
    from codekv.config import cache_dir

    monkeypatch.setenv("CODEKV_CACHE_DIR", str(tmp_path))
    with run.private_store("abc"):
        assert cache_dir() == tmp_path / "bench" / "abc" / "store"
    assert cache_dir() == tmp_path


def test_progress_shows_traces_without_a_terminal(capsys):
    with RichProgress(Console(width=100)) as progress:
        progress.trace("codekv", "jump", 3)
        progress.episode([])
    assert "codekv: jump, 3 episodes" in capsys.readouterr().out


@pytest.fixture
def scripted(monkeypatch, tmp_path):
    monkeypatch.setenv("CODEKV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(
        "bench.entrants._service",
        lambda config: ScriptedService(ServiceScript(), config),
    )
    monkeypatch.setattr("bench.entrants.Shared.tokenizer", ByteTokenizer())


def test_command_writes_json_and_page(tmp_path, scripted):
    from codekv.commands.bench import bench

    files = ["--json", str(tmp_path / "r.json"), "--html", str(tmp_path / "r.html")]
    words = [str(SAMPLES), "--trace", "jump", "--episodes", "2", "--baseline", "fresh"]
    done = CliRunner().invoke(bench, words + files, catch_exceptions=False)
    assert done.exit_code == 0
    made = json.loads((tmp_path / "r.json").read_text())
    assert made["traces"][0]["name"] == "jump"
    (fresh,) = made["baselines"]
    assert fresh["traces"][0]["counted"] == made["traces"][0]["requests"]
    assert fresh["traces"][0]["computed_share"] == {"p50": 1.0, "p95": 1.0}
    assert (
        made["digests"]["jump"]
        == run.plan(Options(SAMPLES, ("jump",), episodes=2))[0].digest
    )
    assert "<svg" in (tmp_path / "r.html").read_text()
    # A finished run leaves nothing to take up.
    assert list((tmp_path / "cache" / "bench").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no PATH"),
        (["missing"], "no such file"),
        ([str(SAMPLES), "--trace", "nonsense"], "no trace 'nonsense'"),
        ([str(SAMPLES), "--baseline", "nonsense"], "no baseline 'nonsense'"),
        ([str(SAMPLES), "--against", "ftp://x"], "give a URL"),
    ],
)
def test_wrong_usage_is_one_line(words, message, scripted):
    from codekv.commands.bench import bench

    done = CliRunner().invoke(bench, words)
    assert isinstance(done.exception, UsageError)
    assert message in str(done.exception)


def test_a_picture_needs_a_report_and_a_browser(tmp_path, made, monkeypatch, capsys):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(made))
    assert picture.main([]) == 1
    assert "usage" in capsys.readouterr().err
    assert picture.main([str(tmp_path / "none.json"), "x.png"]) == 1
    assert "not a benchmark report" in capsys.readouterr().err
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CHROMIUM", raising=False)
    assert picture.main([str(path), str(tmp_path / "x.png")]) == 1
    assert "no browser found" in capsys.readouterr().err
    monkeypatch.setenv("CHROMIUM", str(tmp_path / "none"))
    assert picture.main([str(path), str(tmp_path / "x.png")]) == 1
    assert "none: FileNotFoundError" in capsys.readouterr().err


def test_advice_names_the_settings_of_a_deliberately_bad_configuration():
    bad = Config().model_dump(mode="json")
    bad["kvcache"] |= {"memory_mb": 16, "chunk_size": 16, "reuse": "exact"}
    bad["kvcache"]["idle_work"] = False
    result = executed([Entrant("codekv", lambda: Known(700))])
    advice = " ".join(report(result, ABOUT | {"config": bad})["monitor"]["advice"])
    for name in ("memory_mb", "chunk_size", "reuse", "idle_work"):
        assert f"kvcache.{name}" in advice
    good = executed([Entrant("codekv", lambda: Known(2))])
    assert report(good, ABOUT | {"config": bad})["monitor"]["advice"] == []
