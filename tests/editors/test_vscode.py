"""A real VS Code in a real browser, with the packaged extension."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.editor

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FILES = [f"f{number}.py" for number in range(30)]
SETTINGS = {
    "chat.disableAIFeatures": True,
    "codekv.completion.max_tokens": 33,
    "editor.minimap.enabled": False,
    "editor.wordBasedSuggestions": "off",
    "files.autoSave": "off",
    "git.enabled": False,
    "telemetry.telemetryLevel": "off",
    "window.commandCenter": False,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.startupEditor": "none",
}


class DriverError(Exception):
    """The editor did not do what was asked."""


class VsCode:
    """The driver's other end: one call per operation of `vscode_driver.mjs`."""

    def __init__(self, home, command, env, names=FILES, **settings):
        self.workspace = home / "project"
        self.workspace.mkdir()
        options = {
            "tools": str(ROOT / ".tools" / "vscode" / "node_modules"),
            "vsix": str(ROOT / "editors" / "vscode" / "codekv.vsix"),
            "chromium": _browser(),
            "home": str(home),
            "workspace": str(self.workspace),
            "settings": {**SETTINGS, "codekv.command": command, **settings},
            "env": env,
        }
        # There from the start, so that the editor's list of files has them all.
        for name in names:
            (self.workspace / name).touch()
        self._names = iter(names)
        self._process = subprocess.Popen(
            ["node", str(HERE / "vscode_driver.mjs"), json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        self._answer()

    def __getattr__(self, operation):
        def call(**arguments):
            line = json.dumps({"op": operation, **arguments})
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            return self._answer()

        return call

    def edit(self, text):
        """Open an unused file with this text; the cursor is at its end."""
        path = self.workspace / next(self._names)
        path.write_bytes(text.encode())
        self.open(path=path.name)
        self.press(keys=["Control+End"])
        return path

    def saved(self, path, waiter, text):
        self.press(keys=["Control+s"])
        waiter(
            f"{text!r}, now {path.read_bytes().decode()!r}",
            lambda: path.read_bytes().decode() == text,
        )

    def close(self):
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            raise DriverError("the driver ended")
        answer = json.loads(line)
        if "error" in answer:
            raise DriverError(answer["error"])
        return answer["value"]


def _browser():
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)))


@pytest.fixture(scope="module")
def backend(tmp_path_factory, backend_factory):
    return backend_factory(tmp_path_factory.mktemp("backend"))


@pytest.fixture(scope="module")
def vscode(tmp_path_factory, installer, backend):
    installer("extension")
    installer("vscode")
    editor = VsCode(tmp_path_factory.mktemp("vscode"), backend.command, backend.env)
    try:
        editor.waitStatus(text="codekv: ready")
        yield editor
    finally:
        editor.close()


def test_ghost_text_appears_while_typing_and_tab_takes_it(vscode, backend, waiter):
    path = vscode.edit("def add(a, b):\n    ")
    vscode.type(text="ret")
    vscode.waitGhost(text="urn a + b")
    vscode.press(keys=["Tab"])
    vscode.waitNoGhost()
    vscode.saved(path, waiter, "def add(a, b):\n    return a + b")
    backend.wait_for_feedback(kind="accepted", item="ret-9")


def test_one_undo_takes_the_acceptance_back(vscode, waiter):
    path = vscode.edit("def add(a, b):\n    ")
    vscode.type(text="ret")
    vscode.waitGhost(text="urn a + b")
    vscode.press(keys=["Tab"])
    vscode.waitNoGhost()
    vscode.press(keys=["Control+z"])
    vscode.saved(path, waiter, "def add(a, b):\n    ret")


def test_a_word_is_taken_and_the_rest_stays(vscode, waiter):
    path = vscode.edit("def add(a, b):\n    ")
    vscode.type(text="ret")
    vscode.waitGhost(text="urn a + b")
    vscode.press(keys=["Control+ArrowRight"])
    vscode.waitGhost(text=" a + b")
    vscode.saved(path, waiter, "def add(a, b):\n    return")


def test_typing_what_is_shown_keeps_it(vscode, waiter):
    path = vscode.edit("def add(a, b):\n    ")
    vscode.type(text="return a ")
    vscode.waitGhost(text="+ b")
    vscode.press(keys=["Tab"])
    vscode.saved(path, waiter, "def add(a, b):\n    return a + b")


def test_columns_are_right_after_characters_of_two_units(vscode, waiter):
    path = vscode.edit("s = '𝛑😀'; ")
    vscode.type(text="größe = ")
    vscode.waitGhost(text="länge * 2  # 𝛑r²")
    vscode.press(keys=["Tab"])
    vscode.saved(path, waiter, "s = '𝛑😀'; größe = länge * 2  # 𝛑r²")


def test_an_item_may_replace_the_line_from_its_start(vscode, waiter):
    path = vscode.edit("x = 1\n")
    vscode.type(text="é = sort")
    vscode.waitGhost(text="ed(x)")
    vscode.press(keys=["Tab"])
    vscode.saved(path, waiter, "x = 1\né = sorted(x)")


def test_a_slow_answer_is_shown_though_the_editor_gives_up(vscode, backend, waiter):
    path = vscode.edit("x = 1\n")
    vscode.type(text="slow")
    vscode.waitGhost(text="ly_but_surely()")
    assert backend.events("complete")[-1]["trigger"] == "automatic"
    vscode.press(keys=["Tab"])
    vscode.saved(path, waiter, "x = 1\nslowly_but_surely()")


def test_a_bracket_that_the_editor_has_closed_is_not_doubled(vscode, waiter):
    path = vscode.edit("x = 1\n")
    vscode.type(text="print(")
    vscode.waitGhost(text='"hi", x')
    vscode.press(keys=["Tab"])
    vscode.saved(path, waiter, 'x = 1\nprint("hi", x)')


def test_several_lines_keep_the_line_ends_of_the_file(vscode, waiter):
    path = vscode.edit("x = 1\r\n")
    vscode.type(text="if x:")
    vscode.waitGhost(text="\n        y = 1\n        z = 2")
    vscode.press(keys=["Tab"])
    vscode.saved(path, waiter, "x = 1\r\nif x:\r\n        y = 1\r\n        z = 2")


def test_nothing_is_offered_where_nothing_is_missing(vscode, backend, waiter):
    vscode.edit("x = 1\n")
    vscode.type(text="done")
    waiter(
        "the last request",
        lambda: any(e["before"].endswith("done") for e in backend.events("complete")),
    )
    assert vscode.ghost() == ""


def test_escape_hides_it_and_saving_leaves_the_text_alone(vscode, waiter):
    path = vscode.edit("def add(a, b):\n    ")
    vscode.type(text="ret")
    vscode.waitGhost(text="urn a + b")
    vscode.press(keys=["Escape"])
    vscode.waitNoGhost()
    vscode.saved(path, waiter, "def add(a, b):\n    ret")


def test_pausing_stops_ghost_text_until_it_is_resumed(vscode):
    vscode.edit("def add(a, b):\n    ")
    vscode.command(title="codekv: Pause")
    vscode.waitStatus(text="codekv: paused")
    vscode.type(text="re")
    vscode.command(title="codekv: Resume")
    vscode.waitStatus(text="codekv: ready")
    assert vscode.ghost() == ""
    vscode.type(text="t")
    vscode.waitGhost(text="urn a + b")


def test_the_status_bar_tells_model_latency_and_reuse(vscode):
    tooltip = vscode.tooltip()
    assert "Model: scripted" in tooltip
    assert "ms" in tooltip
    assert "8 exact, 0 restored, 0 moved, 2 computed" in tooltip


def test_a_click_on_the_status_bar_offers_every_command(vscode):
    rows = " ".join(vscode.menu())
    for name in ("Pause", "Pick Model", "Statistics", "Clear Cache", "Restart", "Log"):
        assert name in rows


def test_only_settings_that_the_user_has_set_reach_the_server(backend):
    (first, *_) = backend.events("configured")
    assert first["config"]["completion"]["max_tokens"] == 33


def test_the_cache_is_cleared_and_statistics_tell(vscode):
    vscode.command(title="codekv: Clear Cache")
    vscode.command(title="codekv: Show Statistics")
    vscode.waitText(text="cleared: 1")
    vscode.waitText(text="model: scripted")


def test_a_restarted_server_completes_again(vscode, backend, waiter):
    path = vscode.edit("def add(a, b):\n    ")
    vscode.command(title="codekv: Restart Server")
    waiter("a second server", lambda: len(backend.events("configured")) == 2)
    vscode.waitStatus(text="codekv: ready")
    vscode.type(text="ret")
    vscode.waitGhost(text="urn a + b")
    vscode.press(keys=["Tab"])
    vscode.saved(path, waiter, "def add(a, b):\n    return a + b")


@pytest.mark.model
def test_a_click_leads_from_the_extension_to_ghost_text(
    tmp_path, installer, real_backend, sample, offline_packages
):
    """No server is there; the extension installs the one that it brings."""
    installer("extension")
    installer("vscode")
    pip = {name: "" for name in os.environ if name.startswith("PIP_")}
    env = {**real_backend.env, **pip, "PYTHONPATH": "", "PIP_CONFIG_FILE": os.devnull}
    env["PATH"] = os.pathsep.join(("/usr/bin", "/bin"))
    own = {"codekv.packages": str(offline_packages), "codekv.python": sys.executable}
    editor = VsCode(tmp_path, [], env, ["cart.py"], **own)
    try:
        editor.clickButton(text="Create Environment")
        editor.waitStatus(text="codekv: ready")
        editor.edit(sample)
        editor.type(text="ret")
        assert editor.waitAnyGhost(shorter=4)
    finally:
        editor.close()
    (mark,) = tmp_path.rglob("codekv-complete")
    assert mark.read_text().startswith("codekv-")


@pytest.mark.model
def test_the_real_model_writes_what_is_accepted(
    tmp_path, installer, real_backend, waiter, sample, picture_path
):
    installer("extension")
    installer("vscode")
    command, env = real_backend.command, real_backend.env
    editor = VsCode(tmp_path, command, env, ["cart.py"])
    try:
        editor.waitStatus(text="codekv: ready")
        path = editor.edit(sample)
        editor.type(text="ret")
        offered = editor.waitAnyGhost(shorter=4)
        editor.screenshot(path=str(picture_path("vscode.png", tmp_path)))
        editor.press(keys=["Tab"])
        editor.press(keys=["Escape", "Control+s"])
        wanted = (sample + "ret" + offered).rstrip()
        waiter(f"{wanted}", lambda: path.read_text("utf-8").startswith(wanted))
    finally:
        editor.close()
