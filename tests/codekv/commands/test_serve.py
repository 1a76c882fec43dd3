import subprocess
import sys
from pathlib import Path

from codekv.cli import run


def test_an_address_that_others_can_reach_needs_a_token(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert run(["serve", "--tcp", "0.0.0.0:0"]) == 2
    error = capsys.readouterr().err
    assert "server.tcp_token" in error
    assert error.count("\n") == 1


def test_nonsense_is_wrong_usage(capsys):
    assert run(["serve", "--tcp", "here"]) == 2
    assert run(["serve", "--tcp", "127.0.0.1:1", "--stdio"]) == 2
    assert "HOST:PORT" in capsys.readouterr().err


def test_nothing_heavy_is_imported_before_the_first_answer():
    code = (
        "import sys, codekv.commands.serve, lsp.run\n"
        "heavy = {'torch', 'transformers', 'numpy', 'tree_sitter'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.returncode == 0


def test_http_needs_a_token_where_tcp_does(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert run(["serve", "--http", "0.0.0.0:0"]) == 2
    assert "server.tcp_token" in capsys.readouterr().err


def test_http_too_leaves_the_folder_it_is_started_in(monkeypatch, tmp_path):
    home, seen = tmp_path / "home", []
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("codekv.commands.serve.load_service", lambda: lambda *_: None)
    monkeypatch.setattr(
        "codekv.endpoint.run.run_http", lambda *_: seen.append(Path.cwd()) or 0
    )
    assert run(["serve", "--http", "127.0.0.1:0"]) == 0
    assert seen == [home]
