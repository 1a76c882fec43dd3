import asyncio
import json
import struct

import pytest

from bench import run
from bench.reports import html, picture
from bench.reports.report import report
from bench.run import Entrant, Options
from bench.targets.target import ServiceTarget
from bench.traces.corpus import SAMPLES
from bench.traces.sample import Journal
from codekv.config import Config
from codekv.testing.service import ScriptedService, ServiceScript

pytestmark = pytest.mark.editor

ABOUT = {
    "host": {
        "cpu": "a processor",
        "threads": 2,
        "memory_gb": 16.0,
        "os": "Linux",
        "python": "3.11",
        "features": [],
        "load_1m": 0.5,
        "versions": {},
    },
    "model": {"name": "m"},
    "seed": 1,
    "pace": "max",
    "command": "codekv bench",
    "config": Config().model_dump(mode="json"),
}


class Silent:
    def trace(self, target, name, episodes):
        pass

    def episode(self, samples):
        pass


def scripted():
    return ScriptedService(ServiceScript(), Config())


@pytest.fixture
def made(tmp_path):
    options = Options(SAMPLES, ("type-line", "jump"), episodes=2)
    entrants = [
        Entrant(name, lambda: ServiceTarget(scripted))
        for name in ("codekv", "plugin-layout")
    ]
    played = run.execute(
        options, run.plan(options), entrants, Journal(None, "r"), Silent()
    )
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report(asyncio.run(played), ABOUT)), "utf-8")
    return path


def test_a_browser_draws_the_report_without_a_network(installer, made):
    installer("browser")
    page = made.with_suffix(".html")
    page.write_text(html.render(json.loads(made.read_text("utf-8"))), "utf-8")
    tree = picture.browse(page, "--dump-dom")
    assert tree.count("<svg") == 6
    assert tree.count("<circle") >= 2 * (30 + 16)


def test_a_report_becomes_a_picture(installer, made):
    installer("browser")
    drawn = made.with_suffix(".png")
    assert picture.main([str(made), str(drawn), "2400"]) == 0
    data = drawn.read_bytes()
    assert struct.unpack(">II", data[16:24]) == (picture.WIDTH, 2400)
    # An empty page of this size is a few kilobytes.
    assert len(data) > 60_000
