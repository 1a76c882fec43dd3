from dataclasses import replace

import pytest

from bench import run
from bench.quality.divergence import DivergenceTarget, entrant, summary
from bench.reports.report import report
from bench.reports.table import divergence_rows
from bench.run import Entrant, Options
from bench.targets.target import ServiceTarget
from bench.traces import corpus
from bench.traces import generators as traces
from bench.traces.replay import Replay, ReplayPlan
from bench.traces.sample import Divergence, Journal
from bench.traces.trace import ARRIVE, Ask, Probe, cut
from codekv.completion.service import Service
from codekv.config import Config, apply
from codekv.testing.tiny import load_tiny

SAMPLES = corpus.SAMPLES
FILES = corpus.load(SAMPLES)


class Silent:
    def trace(self, target, name, episodes):
        pass

    def episode(self, samples):
        pass


@pytest.fixture
def make(monkeypatch, tmp_path):
    monkeypatch.setenv("CODEKV_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("codekv.completion.load.load_pipeline", load_tiny)
    values = {
        "kvcache": {"max_length": 900, "reuse": "moved", "repair_tokens": 0},
        "completion": {
            "max_tokens": 4,
            "suffix_tokens": 60,
            "latency_budget_ms": 60000,
            "typed_through": False,
            "speculate": False,
        },
    }
    config, problems = apply(Config(), values, "test")
    assert not problems
    return lambda: Service(config)


async def compared(make, name, count):
    trace = cut(traces.build(name, FILES, 2, seed=1), count)
    plan, journal = ReplayPlan("divergence"), Journal(None, "r")
    async with Replay(DivergenceTarget(make), plan, journal, Silent()) as replay:
        return await replay.play(trace)


@pytest.mark.parametrize("count", [1, 3, 7])
@pytest.mark.parametrize("name", ["type-line", "jump", "restart"])
def test_episodes_are_cut_at_the_request_that_is_compared(name, count):
    trace = traces.build(name, FILES, 4, seed=1)
    short = cut(trace, count)
    assert len(short.episodes) == count
    assert len({episode.name for episode in short.episodes}) == count
    whole = {episode.name: episode for episode in trace.episodes}
    for episode in short.episodes:
        before = whole[episode.name.rpartition("/")[0]]
        *steps, last = episode.steps
        assert tuple(steps) == before.steps[: len(steps)]
        assert isinstance(last, Probe)
        assert isinstance(steps[-1], Ask)
        assert steps[-1].label != ARRIVE
    assert cut(trace, count) == short
    assert short.digest != trace.digest


async def test_moved_answers_differ_from_fresh_ones_until_idle_work_is_done(make):
    found = summary(await compared(make, "insert-function-above", 3))
    assert found is not None
    assert found["asks"] >= 2
    assert found["inexact"] >= 1
    assert found["kl_max"] >= found["kl_mean"] > 10 * found["kl_noise"]
    assert found["after_idle_inexact"] == 0
    assert found["after_idle_kl"] == pytest.approx(0.0, abs=1e-6)
    assert found["after_idle_same_top"] == 1.0


async def test_exact_answers_do_not_differ(make):
    found = summary(await compared(make, "type-line", 2))
    assert found["inexact"] == 0
    assert found["kl_max"] == pytest.approx(0.0, abs=1e-6)
    assert found["same_top"] == found["same_text"] == found["noise_text"] == 1.0


async def test_comparisons_are_in_the_report_and_in_the_journal(make, tmp_path):
    options = Options(SAMPLES, ("jump",), episodes=1, divergence=1)
    path = tmp_path / "journal"
    entrants = [Entrant("codekv", lambda: ServiceTarget(make)), entrant(make)]
    built = run.plan(options)
    for _ in range(2):
        journal = Journal(path, "r")
        result = await run.execute(options, built, entrants, journal, Silent())
        made = report(result, {"config": Config().model_dump(mode="json")})
        assert made["baselines"] == []
        assert made["traces"][0]["divergence"]["asks"] == 1
        assert made["traces"][0]["requests"] == 8
        names, rows = divergence_rows(made)
        assert names[0] == "asks"
        assert [trace for trace, _ in rows] == ["jump"]


SEEN = Divergence(5, 0.25, 0.125, False, False, True, 0, 0.0, True, True)


async def test_answers_that_idle_work_repaired_before_the_look_are_left_out(make):
    (sample, *_) = await compared(make, "jump", 1)
    moved = replace(sample, context=9, moved=5, divergence=SEEN)
    late = replace(moved, divergence=replace(SEEN, inexact=0, kl=9.0))
    without_model = replace(moved, context=0)
    found = summary([moved, late, without_model, replace(moved, divergence=None)])
    assert found["asks"] == 1
    assert found["kl_mean"] == 0.25
    assert found["kl_noise"] == 0.125
    assert found["same_top"] == found["same_text"] == 0.0
    assert found["noise_text"] == 1.0
    assert summary([late]) is None
