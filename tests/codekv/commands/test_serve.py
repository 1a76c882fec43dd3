import subprocess
import sys

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
