"""A project that was made to attack: it can switch off completion in itself only.

The server, its import path, its configuration files and its file system are tried
against a folder full of traps. SECURITY.md names these tests.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.targets.lsp import COMMAND, LspTarget
from codekv.config import Config
from codekv.processes import module_command, safe_environment
from codekv.testing.client import private_folders, start_server
from codekv.testing.editor import Editor, load_greeting
from codekv.testing.models import write_tiny_gguf
from codekv.testing.service import ServiceScript

HERE = Path(__file__).parent
GREETING = HERE.parent / "lsp" / "clients" / "neovim_0_12.json"
MODULES = sorted(
    {name for name in sys.stdlib_module_names if name.isidentifier()}
    | {"codekv", "lsp", "bench", "grammars", "torch", "numpy", "pygls", "sitecustomize"}
    | {"pip", "usercustomize", "tree_sitter", "transformers", "yaml", "pydantic"}
)
TRAP = "from pathlib import Path\nPath({marker!r}).write_text(__name__)\n"
WARNING = "codekv: some settings are not used"


@pytest.fixture
def project(tmp_path):
    """A folder with all traps at once."""
    folder = tmp_path / "pro ject"
    folder.mkdir()
    trap = TRAP.format(marker=str(tmp_path / "ran"))
    for name in MODULES:
        (folder / f"{name}.py").write_text(trap)
    package = folder / "torch"
    package.mkdir()
    (package / "__init__.py").write_text(trap)
    (folder / "codekv.toml").write_text(
        "\ufeff[model]\nname = './evil.gguf'\n[completion]\nmax_lines = 3\n"
        f"[server]\nlog_file = {str(tmp_path / 'log')!r}\nmetrics_port = 9\n"
        f"metrics_file = {str(tmp_path / 'metrics')!r}\n"
        "[trust]\nprojects = ['/']\n"
    )
    os.mkfifo(folder / "codekv.yaml")
    (folder / "codekv.yml").symlink_to("/dev/zero")
    os.mkfifo(folder / ".codekvignore")
    (folder / ".gitignore").symlink_to("/dev/zero")
    (folder / "evil.gguf").write_bytes(b"GGUF" + b"\xff" * 64)
    (folder / "qwen2.5-coder-0.5b").mkdir()
    (folder / "blocks").mkdir()
    (folder / "blocks" / "0.kv").write_bytes(b"\xff" * 64)
    (folder / "line\nbreak.py").write_text("x = 1\n")
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    (folder / "passwd.py").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe.py")
    (folder / "big.py").touch()
    os.truncate(folder / "big.py", 1 << 40)
    return folder


@pytest.fixture
def home(tmp_path):
    """A user with a tiny model, named in the user's own file."""
    model = tmp_path / "models" / "tiny.gguf"
    model.parent.mkdir()
    write_tiny_gguf(model)
    settings = tmp_path / "home" / "config" / "codekv"
    settings.mkdir(parents=True)
    (settings / "codekv.toml").write_text(
        f"[model]\nname = {str(model)!r}\noffline = true\n[kvcache]\ndisk = true\n"
        "[completion]\nother_files = true\n"
    )
    return tmp_path / "home"


def serve(command, project, home):
    environment = private_folders(home) | {"HOME": str(home), "OMP_NUM_THREADS": "1"}
    os.chdir(project)
    try:
        client = start_server(command, environment)
    finally:
        os.chdir(HERE)
    editor = Editor(client, load_greeting(GREETING))
    editor.greet(folders=[project.as_uri()])
    return editor


def type_something(editor, project):
    uri = (project / "line\nbreak.py").as_uri()
    editor.open(uri, "import json\nx = json.")
    editor.complete(uri)
    editor.replace(uri, 0, 0, "y = 1\n")
    editor.complete(uri)
    focus = {"textDocument": {"uri": uri}}
    editor.client.notify("textDocument/didFocus", focus)
    editor.until(lambda: editor.status()["settled"], "the pause's work is done")
    return editor.status()


def test_nothing_of_the_project_runs_and_nothing_leaves_our_folders(
    project, home, tmp_path
):
    journal = tmp_path / "journal"
    watched = str(HERE / "watched_server.py")
    command = (sys.executable, "-P", watched, str(journal), str(project))
    editor = serve(command, project, home)
    with editor.client:
        editor.await_state("ready")
        assert type_something(editor, project)["state"] in {"ready", "working"}
    assert not (tmp_path / "ran").exists()
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    seen = {kind: {what for k, what in events if k == kind} for kind, _ in events}
    ours = tuple(str(home / name) for name in ("data", "cache", "config"))
    # Python keeps its own compiled files beside its modules.
    written = {
        path
        for path in seen.get("written", set()) | seen.get("changed", set())
        if "__pycache__" not in path and not path.startswith("/dev/null")
    }
    assert {path for path in written if not path.startswith(ours)} == set()
    assert "socket" not in seen
    # The standard library asks for the processor's name.
    assert seen.get("process", set()) <= {"uname"}
    assert str(project / "abc.py") in seen["read"], "other files are read"
    inside = {Path(path).relative_to(project).as_posix() for path in seen["read"]}
    assert inside & {"evil.gguf", "blocks/0.kv", "passwd.py", "pipe.py"} == set()
    assert inside & {"codekv.yaml", "codekv.yml", ".gitignore", "big.py"} == set()
    assert not (tmp_path / "log").exists()
    assert not (tmp_path / "metrics").exists()


def test_the_project_is_told_of_in_one_message(project, home):
    editor = serve(module_command("codekv", "serve"), project, home)
    with editor.client:
        editor.await_state("ready")
        messages = editor.client.notifications["window/showMessage"]
    assert len(messages) == 1
    text = messages[0]["message"]
    assert text.startswith(WARNING)
    (line,) = [line for line in text.splitlines() if "model.name" in line]
    for name in ("server.log_file", "server.metrics_port", "trust.projects"):
        assert name in line


@pytest.mark.parametrize("entries", ["", ":.", "relative:"])
def test_no_module_of_the_project_is_imported_whatever_the_import_path(
    entries, project, tmp_path, monkeypatch
):
    monkeypatch.setenv("PYTHONPATH", entries)
    for command in (COMMAND, module_command("pip", "--version")):
        line = [*command, "--help"] if command is COMMAND else command
        done = subprocess.run(
            line, cwd=project, env=safe_environment(), capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists()


def test_the_console_script_imports_nothing_of_the_project(project, home, tmp_path):
    script = Path(sys.executable).with_name("codekv")
    editor = serve((str(script), "serve"), project, home)
    with editor.client:
        editor.await_state("ready")
        type_something(editor, project)
    assert not (tmp_path / "ran").exists()


async def test_measuring_a_folder_through_the_server_runs_nothing_of_it(
    project, tmp_path
):
    script = tmp_path / "script.json"
    script.write_text(ServiceScript().to_json())
    target = LspTarget(Config(), project, module_command("codekv.testing", str(script)))
    await target.start()
    await target.close()
    assert not (tmp_path / "ran").exists()


def test_the_benchmark_command_runs_nothing_of_the_folder(project, home, tmp_path):
    (project / "code.py").write_text(
        "import os\n\n\n"
        + "\n\n".join(
            f"def call_{i}(a):\n    b = a + {i}\n    return b\n" for i in range(160)
        )
    )
    done = subprocess.run(
        [
            *module_command("codekv", "bench"),
            str(project),
            "--lsp",
            "--quick",
            "--no-baselines",
        ]
        + ["--trace", "type-line", "--files", "1"],
        cwd=project,
        env=safe_environment(**private_folders(home), OMP_NUM_THREADS="1"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert not (tmp_path / "ran").exists()
