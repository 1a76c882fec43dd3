import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bench import html, run, traces
from bench.report import report
from bench.run import Entrant, Options
from bench.sample import Journal
from bench.target import ServiceTarget
from codekv.config import Config
from codekv.testing.service import Script, ScriptedService

pytestmark = pytest.mark.editor

SAMPLES = Path(traces.__file__).parent / "samples"
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
    return ScriptedService(Script(), Config())


@pytest.fixture
def page(tmp_path):
    options = Options(SAMPLES, ("type-line", "jump"), episodes=2)
    entrants = [
        Entrant(
            name, lambda: ServiceTarget(lambda: ScriptedService(Script(), Config()))
        )
        for name in ("codekv", "plugin-layout")
    ]
    played = run.execute(
        options, run.plan(options), entrants, Journal(None, "r"), Silent()
    )
    path = tmp_path / "report.html"
    path.write_text(html.render(report(asyncio.run(played), ABOUT)), "utf-8")
    return path


def browse(page, *flags):
    names = ("chromium", "chromium-browser", "google-chrome")
    binary = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)))
    command = [binary, "--headless", "--no-sandbox", "--disable-gpu"]
    command += [
        "--disable-background-networking",
        "--host-resolver-rules=MAP * ~NOTFOUND",
    ]
    command += [f"--user-data-dir={page.parent / 'profile'}", *flags, page.as_uri()]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True
    )


def test_a_browser_draws_the_report_without_a_network(installer, page):
    installer("browser")
    tree = browse(page, "--dump-dom").stdout
    assert tree.count("<svg") == 5
    assert tree.count("<circle") >= 2 * (30 + 16)
    picture = page.parent / "report.png"
    browse(page, "--window-size=1100,2400", f"--screenshot={picture}")
    # An empty page of this size is a few kilobytes.
    assert picture.stat().st_size > 60_000
