"""Typing into a real Neovim: the plugin, the server, the keys."""

import json
import re
import subprocess
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.editor

ROOT = Path(__file__).parents[2]
NEOVIM = ROOT / ".tools" / "nvim" / "bin" / "nvim"
PLUGIN = ROOT / "editors" / "neovim"


class Neovim:
    """One Neovim process, spoken to by msgpack over its standard streams."""

    def __init__(self, pynvim, backend, home):
        self.home = home
        self.backend = backend
        argv = [str(NEOVIM), "--embed", "--headless", "--clean", "-n"]
        argv += ["--cmd", f"set runtimepath^={PLUGIN}"]
        env = [f"{name}={value}" for name, value in backend.env.items()]
        self.api = pynvim.attach("child", argv=["/usr/bin/env", *env, *argv])
        self.lua("vim.o.shortmess = vim.o.shortmess .. 'I'")

    def lua(self, code, *arguments):
        return self.api.exec_lua(code, *arguments)

    def setup(self, **options):
        self.lua(
            "require('codekv').setup(...)", {"cmd": self.backend.command, **options}
        )

    def edit(self, text, waiter, name="t.py"):
        """Open a file with this text, wait for the server, go to the text's end."""
        path = self.home / name
        path.write_bytes(text.encode())
        self.api.input("<Esc>")
        self.api.command(f"edit {path}")
        waiter("the server", lambda: self.status()["state"] == "ready")
        self.api.input("GA")
        waiter("insert mode", lambda: self.api.api.get_mode()["mode"] == "i")
        return path

    def status(self):
        return self.lua("return require('codekv').status()")

    def lines(self):
        return self.api.current.buffer[:]

    def ghost(self):
        """What is drawn: inline pieces with their columns, then lines below."""
        ns = self.api.api.get_namespaces()["codekv"]
        marks = self.api.api.buf_get_extmarks(0, ns, 0, -1, {"details": True})
        pieces = [(m[2], m[3]["virt_text"][0][0]) for m in marks if "virt_text" in m[3]]
        below = [m[3]["virt_lines"] for m in marks if "virt_lines" in m[3]]
        return sorted(pieces) + [line[0][0] for lines in below for line in lines]

    def wait_ghost(self, waiter, *wanted):
        waiter(f"{wanted}, now {self.ghost()}", lambda: self.ghost() == list(wanted))

    def wait_lines(self, waiter, *wanted):
        waiter(f"{wanted}, now {self.lines()}", lambda: self.lines() == list(wanted))

    def close(self):
        try:
            self.lua("for _, c in ipairs(vim.lsp.get_clients()) do c:stop() end")
            end = time.monotonic() + 5
            while time.monotonic() < end and self.lua("return #vim.lsp.get_clients()"):
                time.sleep(0.02)
            self.api.command("qall!")
        except (OSError, EOFError):
            pass  # the pipe closes under the reply
        self.api.close()


@pytest.fixture(scope="module")
def pynvim(installer):
    installer("neovim")
    folders = list((NEOVIM.parents[1] / "lib").glob("python3*/site-packages"))
    with pytest.MonkeyPatch.context() as patch:
        # It lives in the tools' environment, not in the tests'.
        patch.syspath_prepend(str(folders[0]))
        import pynvim

        yield pynvim


@pytest.fixture(scope="module")
def session(pynvim, backend_factory, tmp_path_factory):
    home = tmp_path_factory.mktemp("neovim")
    editor = Neovim(pynvim, backend_factory(home), home)
    editor.setup()
    yield editor
    editor.close()


@pytest.fixture
def nvim(session, tmp_path):
    """An editor that other tests use as well, with no file open."""
    session.home = tmp_path
    session.api.input("<Esc>")
    session.api.command("silent! %bwipeout!")
    session.backend.forget()
    return session


@pytest.fixture
def bare(pynvim, backend_factory, tmp_path):
    """An editor of one's own in which the plugin is not set up."""
    editor = Neovim(pynvim, backend_factory(tmp_path), tmp_path)
    yield editor
    editor.close()


@pytest.fixture
def backend(request):
    """The server of the test's editor."""
    name = "bare" if "bare" in request.fixturenames else "nvim"
    return request.getfixturevalue(name).backend


def test_ghost_text_appears_while_typing_and_tab_takes_it(nvim, backend, waiter):
    path = nvim.edit("def add(a, b):\n    ", waiter)
    nvim.api.input("ret")
    nvim.wait_ghost(waiter, (7, "urn a + b"))
    nvim.api.input("<Tab>")
    nvim.wait_lines(waiter, "def add(a, b):", "    return a + b")
    nvim.api.input("<Esc>")
    nvim.api.command("silent write")
    assert path.read_text("utf-8") == "def add(a, b):\n    return a + b\n"
    backend.wait_for_feedback(kind="shown", item="ret-9")
    backend.wait_for_feedback(kind="accepted", item="ret-9")


def test_words_are_taken_one_by_one_and_the_server_is_told(nvim, backend, waiter):
    nvim.edit("def add(a, b):\n    ", waiter)
    nvim.api.input("ret")
    nvim.wait_ghost(waiter, (7, "urn a + b"))
    nvim.api.input("<M-Right>")
    nvim.wait_ghost(waiter, (10, " a + b"))
    nvim.api.input("<M-Right>")
    nvim.wait_ghost(waiter, (12, " + b"))
    nvim.wait_lines(waiter, "def add(a, b):", "    return a")
    backend.wait_for_feedback(kind="partially_accepted", item="ret-9", bytes=3)
    backend.wait_for_feedback(kind="partially_accepted", item="ret-9", bytes=5)
    nvim.api.input("<M-Right><M-Right>")
    nvim.wait_lines(waiter, "def add(a, b):", "    return a + b")
    nvim.wait_ghost(waiter)
    backend.wait_for_feedback(kind="accepted", item="ret-9")


def test_lines_are_taken_one_by_one(nvim, waiter):
    nvim.edit("if x", waiter)
    nvim.api.input(":")
    nvim.wait_ghost(waiter, "        y = 1", "        z = 2")
    nvim.api.input("<M-C-Right>")
    nvim.wait_lines(waiter, "if x:", "        y = 1")
    nvim.wait_ghost(waiter, "        z = 2")
    nvim.api.input("<Tab>")
    nvim.wait_lines(waiter, "if x:", "        y = 1", "        z = 2")
    assert nvim.api.current.window.cursor == (3, 13)


def test_one_undo_takes_one_acceptance_back(nvim, waiter):
    nvim.edit("def add(a, b):\n    ", waiter)
    nvim.api.input("ret")
    nvim.wait_ghost(waiter, (7, "urn a + b"))
    nvim.api.input("<M-Right><Tab>")
    nvim.wait_lines(waiter, "def add(a, b):", "    return a + b")
    nvim.api.input("<Esc>u")
    nvim.wait_lines(waiter, "def add(a, b):", "    return")
    nvim.api.input("u")
    nvim.wait_lines(waiter, "def add(a, b):", "    ret")
    nvim.api.input("u")
    nvim.wait_lines(waiter, "def add(a, b):", "    ")


def test_typing_what_is_shown_keeps_it_and_asks_nothing(nvim, backend, waiter):
    nvim.edit("def add(a, b):\n    ", waiter)
    nvim.api.input("ret")
    nvim.wait_ghost(waiter, (7, "urn a + b"))
    num_requests = len(backend.events("complete"))
    for typed, rest in (("u", "rn a + b"), ("rn ", "a + b"), ("a +", " b")):
        nvim.api.input(typed)
        nvim.wait_ghost(waiter, (len(nvim.api.current.line), rest))
    assert len(backend.events("complete")) == num_requests


def test_leaving_the_shown_path_drops_it(nvim, waiter):
    nvim.edit("def add(a, b):\n    ", waiter)
    nvim.api.input("ret")
    nvim.wait_ghost(waiter, (7, "urn a + b"))
    nvim.api.input("x")
    nvim.wait_ghost(waiter)
    nvim.api.input("<BS>")
    nvim.wait_ghost(waiter, (7, "urn a + b"))
    nvim.api.input("<Esc>")
    nvim.wait_ghost(waiter)


def test_dismissing_hides_it_until_the_text_changes(nvim, waiter):
    nvim.edit("def add(a, b):\n    ", waiter)
    nvim.api.input("ret")
    nvim.wait_ghost(waiter, (7, "urn a + b"))
    nvim.api.input("<C-]>")
    nvim.wait_ghost(waiter)
    nvim.api.input("u")
    nvim.wait_ghost(waiter, (8, "rn a + b"))


def test_candidates_are_fetched_by_hand_and_cycle(nvim, backend, waiter):
    nvim.edit("def add(a, b):\n    ", waiter)
    nvim.api.input("ret")
    nvim.wait_ghost(waiter, (7, "urn a + b"))
    nvim.api.input("<M-]>")
    nvim.wait_ghost(waiter, (0, " (2/3)"), (7, "urn a - b"))
    nvim.api.input("<M-]>")
    nvim.wait_ghost(waiter, (0, " (3/3)"), (7, "urn a * b"))
    nvim.api.input("<M-]><M-[>")
    nvim.wait_ghost(waiter, (0, " (3/3)"), (7, "urn a * b"))
    nvim.api.input("<Tab>")
    nvim.wait_lines(waiter, "def add(a, b):", "    return a * b")
    assert backend.events("complete")[-1]["trigger"] == "invoked"


def test_without_automatic_requests_only_the_key_asks(bare, backend, waiter):
    bare.setup(auto_trigger=False)
    bare.edit("def add(a, b):\n    ", waiter)
    bare.api.input("ret")
    bare.wait_lines(waiter, "def add(a, b):", "    ret")
    bare.api.input("<M-Bslash>")
    bare.wait_ghost(waiter, (0, " (1/3)"), (7, "urn a + b"))
    assert [e["trigger"] for e in backend.events("complete")] == ["invoked"]


def test_columns_are_right_after_characters_of_any_width(nvim, waiter):
    nvim.edit("s = '𝛑😀'; ", waiter)
    nvim.api.input("größe = ")
    column = len("s = '𝛑😀'; größe = ".encode())
    nvim.wait_ghost(waiter, (column, "länge * 2  # 𝛑r²"))
    nvim.api.input("<Tab>")
    nvim.wait_lines(waiter, "s = '𝛑😀'; größe = länge * 2  # 𝛑r²")


def test_columns_are_right_in_a_client_that_counts_utf16(bare, waiter):
    bare.lua("""
        local make = vim.lsp.protocol.make_client_capabilities
        vim.lsp.protocol.make_client_capabilities = function()
          local caps = make()
          caps.general.positionEncodings = { 'utf-16' }
          return caps
        end""")
    bare.setup()
    bare.edit("s = '𝛑😀'; ", waiter)
    bare.api.input("größe = ")
    column = len("s = '𝛑😀'; größe = ".encode())
    bare.wait_ghost(waiter, (column, "länge * 2  # 𝛑r²"))
    bare.api.input("<M-Right><Tab>")
    bare.wait_lines(waiter, "s = '𝛑😀'; größe = länge * 2  # 𝛑r²")


def test_a_word_ends_where_the_script_changes(nvim, waiter):
    nvim.edit("漢字 =", waiter)
    nvim.api.input(" ")
    nvim.wait_ghost(waiter, (9, "日本語ひらがな + 1"))
    nvim.api.input("<M-Right>")
    nvim.wait_lines(waiter, "漢字 = 日本語")
    nvim.api.input("<M-Right>")
    nvim.wait_lines(waiter, "漢字 = 日本語ひらがな")


def test_an_item_may_replace_the_line_from_its_start(nvim, waiter):
    nvim.edit("é = ", waiter)
    nvim.api.input("sort")
    nvim.wait_ghost(waiter, (9, "ed(x)"))
    nvim.api.input("<Tab>")
    nvim.wait_lines(waiter, "é = sorted(x)")


def test_a_bracket_that_an_editor_has_closed_is_not_doubled(nvim, waiter):
    nvim.edit("", waiter)
    nvim.api.input("print()<Left>")
    nvim.wait_ghost(waiter, (6, '"hi", x'))
    nvim.api.input("<Tab>")
    nvim.wait_lines(waiter, 'print("hi", x)')
    assert nvim.api.current.window.cursor == (1, 14)


def test_line_ends_of_the_file_stay(nvim, waiter):
    path = nvim.edit("x = 1\r\nif x\r\n", waiter)
    assert nvim.api.current.buffer.options["fileformat"] == "dos"
    nvim.api.input(":")
    nvim.wait_ghost(waiter, "        y = 1", "        z = 2")
    nvim.api.input("<Tab><Esc>")
    nvim.wait_lines(waiter, "x = 1", "if x:", "        y = 1", "        z = 2")
    nvim.api.command("silent write")
    lines = [b"x = 1", b"if x:", b"        y = 1", b"        z = 2", b""]
    assert path.read_bytes() == b"\r\n".join(lines)


def test_tabs_are_drawn_as_wide_as_they_are(nvim, waiter):
    nvim.api.command("set tabstop=4")
    nvim.edit("\tif t", waiter, "t.txt")
    nvim.api.input(":")
    nvim.wait_ghost(waiter, "        return t")
    nvim.api.input("<Tab>")
    nvim.wait_lines(waiter, "\tif t:", "\t\treturn t")


def test_a_key_does_what_it_did_where_nothing_is_shown(bare, waiter):
    bare.api.command("inoremap <Tab> tabbed")
    bare.api.command("inoremap <expr> <C-]> 'expr' .. 'ession'")
    bare.lua("vim.keymap.set('i', '<M-Right>', function() vim.g.called = 1 end)")
    bare.setup()
    bare.edit("", waiter)
    bare.api.input("<Tab> <C-]><M-Right>")
    bare.wait_lines(waiter, "tabbed expression")
    waiter("the function", lambda: bare.api.vars.get("called") == 1)


def test_an_answer_for_an_older_text_is_not_shown(bare, waiter):
    bare.setup()
    bare.edit("def add(a, b):\n    ", waiter)
    bare.lua("""
        local client = vim.lsp.get_clients({ name = 'codekv' })[1]
        local request = client.request
        client.request = function(self, method, params, handler, buf)
          if method ~= 'textDocument/inlineCompletion' then
            return request(self, method, params, handler, buf)
          end
          return request(self, method, params, function(...)
            _G.late = _G.late or {}
            local answer = { ... }
            table.insert(_G.late, function() handler(unpack(answer)) end)
          end, buf)
        end""")
    bare.api.input("ret")
    waiter("an answer", lambda: bare.lua("return #(_G.late or {}) > 0"))
    bare.api.input("x")
    bare.wait_lines(waiter, "def add(a, b):", "    retx")
    bare.lua("_G.late[1]()")
    assert bare.ghost() == []


def test_pausing_stops_ghost_text_until_it_is_resumed(nvim, backend, waiter):
    nvim.edit("def add(a, b):\n    ", waiter)
    nvim.api.command("CodeKV pause")
    waiter("the pause", lambda: nvim.status()["state"] == "paused")
    nvim.api.input("ret")
    waiter("a request", lambda: backend.events("complete"))
    nvim.api.command("CodeKV resume")
    waiter("the end of it", lambda: nvim.status()["state"] == "ready")
    assert nvim.ghost() == []
    nvim.api.input("u")
    nvim.wait_ghost(waiter, (8, "rn a + b"))


def test_commands_tell_clear_stop_and_restart(bare, waiter):
    bare.setup()
    bare.edit("x = 1\n", waiter)
    bare.api.input("<Esc>")
    bare.api.command("CodeKV clear")
    bare.api.command("CodeKV statistics")
    waiter("statistics", lambda: "model: scripted" in bare.lines())
    assert "  cleared: 1" in bare.lines()
    bare.api.command("close")
    bare.api.command("CodeKV stop")
    waiter("the stop", lambda: bare.status()["state"] == "stopped")
    bare.api.command("CodeKV start")
    waiter("the start", lambda: bare.status()["state"] == "ready")
    bare.api.command("CodeKV restart")
    waiter("the end", lambda: bare.status()["state"] != "ready")
    waiter("the restart", lambda: bare.status()["state"] == "ready")
    bare.api.input("Sif x:")
    bare.wait_ghost(waiter, "        y = 1", "        z = 2")


def test_settings_reach_the_server_and_a_model_can_be_picked(bare, backend, waiter):
    bare.setup(settings={"completion": {"max_tokens": 33}})
    bare.edit("", waiter)
    configured = backend.events("configured")[0]["config"]
    assert configured["completion"]["max_tokens"] == 33
    bare.api.command("CodeKV model some-model")

    def names():
        return [e["config"]["model"]["name"] for e in backend.events("reconfigured")]

    waiter("the model", lambda: "some-model" in names())


def test_a_file_that_is_looked_at_is_told(nvim, backend, waiter):
    def looked_at():
        return [Path(e["uri"]).name for e in backend.events("focused")]

    path = nvim.edit("x = 1\n", waiter)
    other = nvim.edit("y = 1\n", waiter, "u.py")
    waiter("focus on the second file", lambda: looked_at()[-1:] == [other.name])
    nvim.api.input("<Esc>")
    nvim.api.command(f"buffer {path}")

    waiter("focus on the first file", lambda: looked_at()[-1:] == [path.name])


def test_one_server_serves_all_roots(nvim, waiter):
    nvim.edit("x = 1\n", waiter)
    other = nvim.home / "other"
    other.mkdir()
    (other / "pyproject.toml").touch()
    nvim.edit("def add(a, b):\n    ", waiter, "other/u.py")
    nvim.api.input("ret")
    nvim.wait_ghost(waiter, (7, "urn a + b"))
    assert nvim.lua("return #vim.lsp.get_clients()") == 1
    roots = nvim.lua("return vim.lsp.get_clients()[1].workspace_folders")
    assert roots[-1]["uri"] == other.as_uri()


def test_a_missing_server_is_one_clear_message(bare, waiter):
    bare.lua("""
        _G.told = {}
        vim.notify = function(text) table.insert(_G.told, text) end""")
    bare.setup(cmd=["codekv-is-not-here", "serve"])
    for name in ("t.py", "u.py"):
        bare.api.command(f"edit {bare.home / name}")
    (message,) = bare.lua("return _G.told")
    assert "codekv-is-not-here is not executable; run :CodeKV install" in message
    assert bare.status()["state"] == "error"


FAKE_PYTHON = """#!/bin/sh
echo "$@" > "$(dirname "$0")/arguments"
echo "step fetching packages"
echo "megabytes 12.5"
if [ -e "$(dirname "$0")/fails" ]; then echo "error no room on the disk"; exit 1; fi
mkdir -p "$4/bin"
printf '#!/bin/sh\nexec {command}\n' > "$4/bin/codekv"
chmod +x "$4/bin/codekv"
touch "$4/codekv-complete"
"""


def test_install_makes_a_server_and_starts_it(bare, waiter):
    python = bare.home / "python"
    command = " ".join(f'"{word}"' for word in bare.backend.command)
    python.write_text(FAKE_PYTHON.replace("{command}", command))
    python.chmod(0o755)
    (bare.home / "fails").touch()
    bare.lua("""
        _G.told = {}
        vim.notify = function(text) table.insert(_G.told, text) end""")
    options = {"python": str(python), "packages": "/wheels"}
    bare.setup(cmd=False, install=options)
    told = lambda: "\n".join(bare.lua("return _G.told"))  # noqa: E731
    bare.api.command("CodeKV install")
    waiter("the failure", lambda: "no room on the disk" in told())
    (bare.home / "fails").unlink()
    bare.api.command("CodeKV install")
    waiter("the end", lambda: "the server is installed" in told())
    assert "fetching packages" in told()
    words = (bare.home / "arguments").read_text().split()
    assert words[0] == "-I"
    assert Path(words[1]) == ROOT / "editors" / "install.py"
    assert words[words.index("--packages") + 1] == "/wheels"
    bare.edit("x = 1\n", waiter)


def test_wrong_options_are_told_and_the_defaults_kept(bare):
    problems = bare.lua("""
        return require('codekv.config').apply({
          debounce = 3, debounce_ms = 'x', keys = { accept = 7, take = '<C-l>' } })""")
    assert problems == [
        "debounce_ms: expected a number, got string; the default is kept",
        "keys.accept: expected a string or false, got number",
        'unknown key "take" in keys, ignored',
        'unknown option "debounce", ignored',
    ]
    assert bare.lua("return require('codekv.config').options.keys.accept") == "<Tab>"


def test_a_server_that_dies_is_told_and_can_be_started_again(bare, waiter):
    bare.setup()
    bare.edit("x = 1\n", waiter)
    bare.api.input("<Esc>")
    bare.lua("vim.lsp.get_clients({ name = 'codekv' })[1].rpc.terminate()")
    waiter("the error", lambda: bare.status()["state"] == "error")
    assert "see :CodeKV log" in bare.status()["message"]
    bare.api.command("CodeKV start")
    waiter("the start", lambda: bare.status()["state"] == "ready")


def test_health_names_command_server_and_status(nvim, waiter):
    nvim.edit("x = 1\n", waiter)
    nvim.api.input("<Esc>")
    nvim.api.command("checkhealth codekv")
    report = "\n".join(nvim.lines())
    assert "server command:" in report
    assert "offers inline completion" in report
    assert "model: scripted" in report
    assert "ERROR" not in report


def test_the_built_in_way_is_taken_where_there_is_one(bare, waiter):
    """Against a stand-in with the calls of Neovim 0.12, which no registry has."""
    bare.lua("""
        local calls = {}
        local function note(...) table.insert(calls, { ... }) end
        vim.lsp.inline_completion = {
          enable = function(on) note('enable', on) end,
          select = function(opts) note('select', opts.count) end,
          get = function(opts)
            local item = { client_id = 1, insert_text = 'return a' }
            item.range = { 0, 4, 0, 7 }
            item = opts and opts.on_accept and opts.on_accept(item) or not opts and item
            note('get', item and true or false)
            return true
          end,
        }
        vim.lsp.get_client_by_id = function() return { notify = function() end } end
        _G.calls = calls
        vim.api.nvim_buf_set_lines(0, 0, -1, false, { '    ret' })
        require('codekv.builtin').is_visible = function() return true end""")
    bare.api.input("A")
    waiter("insert mode", lambda: bare.api.api.get_mode()["mode"] == "i")
    bare.setup()
    assert bare.lua("return require('codekv.engine').current().name") == "builtin"
    bare.lua("require('codekv').accept_word()")
    assert bare.lines() == ["    return"]
    for name in ("accept", "next", "dismiss"):
        bare.lua(f"require('codekv').{name}()")
    calls = [call for call in bare.lua("return _G.calls") if isinstance(call[0], str)]
    assert calls == [
        ["get", False],
        ["get", True],
        ["select", 1],
        ["enable", False],
        ["enable", True],
    ]


@pytest.mark.model
def test_the_real_model_writes_what_is_accepted(
    pynvim, real_backend, tmp_path, waiter, sample
):
    editor = Neovim(pynvim, real_backend, tmp_path)
    try:
        editor.setup()
        path = editor.edit(sample, waiter)
        editor.api.input("ret")
        offered = waiter("ghost text", editor.ghost)
        editor.api.input("<Tab><Esc>")
        editor.api.command("silent write")
        first = sample + "ret" + offered[0][1]
        waiter(first, lambda: path.read_text("utf-8").startswith(first))
    finally:
        editor.close()


def test_help_has_every_option_key_and_command(installer):
    installer("neovim")
    text = (PLUGIN / "doc" / "codekv.txt").read_text("utf-8")
    script = """
        vim.opt.runtimepath:prepend(arg[1])
        local config = require('codekv.config')
        io.write(vim.json.encode({ options = vim.tbl_keys(config.defaults),
          keys = vim.tbl_keys(config.defaults.keys),
          commands = require('codekv.commands').complete('', '') }))"""
    command = [str(NEOVIM), "--headless", "--clean", "-l", "-", str(PLUGIN)]
    done = subprocess.run(
        command, input=script, capture_output=True, encoding="utf-8", check=True
    )
    known = json.loads(done.stdout)
    for name in known["options"] + known["keys"]:
        assert re.search(rf"\b{name}\b", text), name
    for name in known["commands"]:
        assert f":CodeKV {name}" in text, name
