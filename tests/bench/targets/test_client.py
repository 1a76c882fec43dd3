import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench import demo
from bench.targets.client import LspClient, ServerGoneError
from bench.targets.lsp import LspTarget
from bench.targets.target import ServiceTarget
from bench.traces import corpus
from bench.traces import generators as traces
from bench.traces.replay import Replay, ReplayPlan
from bench.traces.sample import Journal
from codekv.config import Config
from codekv.errors import CodekvError
from codekv.testing.service import (
    ScriptedAnswer,
    ScriptedService,
    ServiceScript,
    read_journal,
)

pytestmark = pytest.mark.e2e

FILES = corpus.load(corpus.SAMPLES)


def command(tmp_path, **script) -> tuple[str, ...]:
    path = tmp_path / "script.json"
    path.write_text(
        ServiceScript(journal=str(tmp_path / "journal"), **script).to_json()
    )
    return (sys.executable, "-m", "codekv.testing", str(path))


class Silent:
    def trace(self, target, name, episodes):
        pass

    def episode(self, samples):
        pass


async def test_ghost_text_comes_through_a_real_server(tmp_path):
    async with LspClient(command(tmp_path), tmp_path) as client:
        await client.ready(30)
        text = "wörter = 1\nx = \ny = '🙂'\n"
        await client.open("file:///a.py", "python", text)
        cursor = text.encode().index(b"\ny")
        assert await client.complete("file:///a.py", cursor) == "pass"
        await client.replace("file:///a.py", cursor, cursor, "é🙂")
        longer = cursor + len("é🙂".encode())
        assert await client.complete("file:///a.py", longer) == "pass"
        last = (await client.status())["last"]
        assert last["context"] >= last["computed"]


@pytest.mark.parametrize("span", ["cursor", "head", "tail"])
async def test_ranges_of_items_are_undone(tmp_path, span):
    server = command(tmp_path, answers=(ScriptedAnswer("value", span=span),))
    async with LspClient(server, tmp_path) as client:
        await client.ready(30)
        await client.open("file:///a.py", "python", "x = 1\n")
        assert await client.complete("file:///a.py", 4) == "value"


async def test_a_model_that_cannot_load_is_one_error(tmp_path):
    server = command(tmp_path, load_error="no model here")
    async with LspClient(server, tmp_path) as client:
        with pytest.raises(CodekvError, match="no model here"):
            await client.ready(30)


async def test_a_server_that_dies_fails_what_waits(tmp_path):
    server = (sys.executable, "-c", "import sys; sys.stdin.buffer.read(10)")
    with pytest.raises(ServerGoneError):
        async with LspClient(server, tmp_path):
            pass


async def replayed(target, names):
    plan = ReplayPlan("codekv", settle=0.2)
    async with Replay(target, plan, Journal(None, "r"), Silent()) as replay:
        return [
            sample
            for name in names
            for sample in await replay.play(traces.build(name, FILES, 1, seed=2))
        ]


def requests_in(journal: Path):
    return [
        (row["uri"], row["before"], row["after"])
        for row in read_journal(journal)
        if row["event"] == "complete"
    ]


async def test_server_and_service_get_the_same_requests(tmp_path):
    names = ["edit-above", "switch-file-and-back", "restart"]
    (tmp_path / "lsp").mkdir()
    (tmp_path / "own").mkdir()
    target = LspTarget(Config(), tmp_path, command(tmp_path / "lsp"))
    through_server = await replayed(target, names)
    script = ServiceScript(journal=str(tmp_path / "own" / "journal"))
    own = ServiceTarget(lambda: ScriptedService(script, Config()))
    in_process = await replayed(own, names)
    assert [s.text for s in through_server] == [s.text for s in in_process]
    assert requests_in(tmp_path / "lsp" / "journal") == requests_in(
        tmp_path / "own" / "journal"
    )
    assert all(sample.latency > 0 for sample in through_server)
    assert all(sample.rss_mb > 1 for sample in through_server)


async def test_the_fresh_twin_clears_before_every_question(tmp_path):
    service = ScriptedService(ServiceScript(), Config())
    target = ServiceTarget(lambda: service, anew=True)
    samples = await replayed(target, ["undo-redo"])
    assert service.counts["cleared"] == len(samples)


def test_demo_shows_ghost_text_and_costs(tmp_path, capsys):
    assert demo.main([], command(tmp_path)) == 0
    shown = capsys.readouterr().out
    assert "pass" in shown
    assert "ms" in shown
    assert "median" in shown
    assert "context" in shown
    assert "keystrokes saved" in shown


def test_demo_fails_without_ghost_text(tmp_path, capsys):
    assert demo.main([], command(tmp_path, answers=(ScriptedAnswer(""),))) == 1
    assert "no ghost text" in capsys.readouterr().out


def test_demo_fails_in_one_line_without_a_model(tmp_path, capsys):
    assert demo.main([], command(tmp_path, load_error="no model here")) == 1
    assert "no model here" in capsys.readouterr().out


async def test_reading_waits_for_idle_work_and_no_longer_than_asked():
    class Busy(ScriptedService):
        looks = 0

        def status(self):
            self.looks += 1
            return replace(super().status(), settled=self.looks > 5)

    service = Busy(ServiceScript(), Config())
    target = ServiceTarget(lambda: service)
    await target.start()
    await target.settle(30)
    assert service.looks > 5
    service.looks = -1000
    await target.settle(0.1)
    assert service.looks < 0
    await target.close()


def test_demo_counts_what_taking_right_offers_would_have_spared():
    def key(saved):
        return demo.Keystroke("", "", 1.0, 1, 1, "model", saved=saved)

    # The second offer is part of the first, whose characters are there already.
    assert demo._most_saved([key(0), key(2), key(1), key(0), key(0), key(3)]) == 5
    assert demo._most_saved([key(0)]) == 0
