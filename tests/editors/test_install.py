"""The installer of the editors: from nothing to a server that answers.

The packages come from a folder. It holds the server's real wheel; those of its
dependencies are stubs of the right names and versions, which lead to the packages
that these tests run with.
"""

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from codekv.testing.client import private_folders, start_server
from codekv.testing.editor import Editor, load_greeting

ROOT = Path(__file__).parents[2]
INSTALLER = ROOT / "editors" / "install.py"
GREETING = ROOT / "tests" / "lsp" / "clients" / "vscode_10.json"

spec = importlib.util.spec_from_file_location("editors_install", INSTALLER)
installer = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = installer
spec.loader.exec_module(installer)
Plan = installer.Plan


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    code = (
        "import sys; from hatchling.build import build_wheel; "
        "print(build_wheel(sys.argv[1]))"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (made,) = folder.glob("codekv-*.whl")
    return made


def until(what, holds, seconds=60):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def run(*arguments, **options):
    # Away from where this machine's pip is set to look.
    env = {name: text for name, text in os.environ.items() if name[:4] != "PIP_"}
    options["env"] = {**env, "PIP_CONFIG_FILE": os.devnull}
    done = subprocess.run(
        [sys.executable, "-I", str(INSTALLER), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )
    return done.returncode, done.stdout.splitlines()


def test_from_nothing_to_a_server_that_answers(
    wheel, offline_packages, tmp_path, monkeypatch
):
    """In a folder full of traps; the first try fails, the second finds all."""
    for name in ("pip", "venv", "ensurepip", "subprocess", "argparse"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w')\n")
    monkeypatch.setenv("PYTHONPATH", "")
    into = tmp_path / "home with spaces" / "server"
    empty = tmp_path / "empty"
    empty.mkdir()
    constraints = ROOT / "constraints.txt"
    given = ("--into", into, "--source", wheel, "--constraints", constraints)
    code, lines = run(*given, "--packages", empty, cwd=tmp_path)
    assert code == 1
    assert lines[-1].startswith("error ")
    assert "--packages" in lines[-1]
    assert not (into / installer.MARK).exists()

    code, lines = run(*given, "--packages", offline_packages, cwd=tmp_path)
    assert code == 0, "\n".join(lines)
    command = Path(lines[-1].removeprefix("command "))
    assert command == installer.environment_command(into)
    assert (into / installer.MARK).read_text().strip() == wheel.name
    assert not installer.store_of(Plan(into, wheel)).exists()
    assert [line for line in lines if line.startswith("step ")]
    client = start_server((str(command), "serve"), private_folders(tmp_path))
    with client:
        capabilities = Editor(client, load_greeting(GREETING)).greet()
    assert "inlineCompletionProvider" in capabilities
    assert not (tmp_path / "ran").exists()


def test_what_is_missing_is_named_before_anything_is_changed(tmp_path):
    into = tmp_path / "server"
    into.mkdir()
    (into / "keep").touch()
    code, lines = run("--into", into, "--source", tmp_path / "no.whl")
    assert code == 1
    assert str(tmp_path / "no.whl") in lines[-1]
    assert (into / "keep").exists()


def is_over(process):
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_cancelling_ends_what_was_started(tmp_path):
    """A source folder whose build waits for ever stands for a slow network."""
    source = tmp_path / "slow"
    source.mkdir()
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "slow"\nbackend-path = ["."]\n'
    )
    (source / "slow.py").write_text(
        "import os, pathlib, time\n"
        f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n"
        "time.sleep(600)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-I", str(INSTALLER), "--into", str(tmp_path / "server")]
        + ["--source", str(source), "--packages", str(tmp_path), "--until-stdin-ends"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    written = tmp_path / "pid"
    until("the build", lambda: written.exists() and written.read_text())
    build = psutil.Process(int(written.read_text()))
    child.stdin.close()
    assert child.wait(60) == 1
    child.stdout.close()
    until("the build's end", lambda: is_over(build))


@pytest.mark.parametrize(
    ("system", "python", "command"),
    [
        ("Linux", "env/bin/python", "env/bin/codekv"),
        ("Darwin", "env/bin/python", "env/bin/codekv"),
        ("Windows", "env/Scripts/python.exe", "env/Scripts/codekv.exe"),
    ],
)
def test_paths_are_the_systems_own(system, python, command):
    folder = Path("env")
    assert installer.environment_python(folder, system).as_posix() == python
    assert installer.environment_command(folder, system).as_posix() == command


def test_only_linux_needs_another_index_for_torch():
    assert installer.default_torch_index("Linux") == installer.TORCH_CPU
    assert installer.default_torch_index("Darwin") == ""
    assert installer.default_torch_index("Windows") == ""


def plans(tmp_path):
    wheel = tmp_path / "codekv-1-py3-none-any.whl"
    wheel.touch()
    for uv in ("", "/opt/uv"):
        for index in ("", installer.TORCH_CPU, "https://example.invalid/whl"):
            for folder in (None, tmp_path):
                yield Plan(tmp_path / "env", wheel, None, index, folder, uv)


def test_no_command_installs_the_server_by_a_name(tmp_path):
    """The name `codekv` on a package index may be anybody's."""
    for plan in plans(tmp_path):
        for line in installer.fetching(plan, "torch==1") + installer.installing(
            plan, "torch==1"
        ):
            assert str(plan.source) in line or "torch==1" in line
            assert not any(re.match(r"codekv([=<>~ ]|$)", word) for word in line)


def test_torch_for_the_cpu_comes_first_and_from_its_own_index(tmp_path):
    for plan in plans(tmp_path):
        lines = installer.fetching(plan, "torch==1") + installer.installing(
            plan, "torch==1"
        )
        if plan.packages is not None:
            assert all("--no-index" in line for line in lines)
        elif plan.torch_index == installer.TORCH_CPU and plan.uv:
            assert lines[0][-3:-1] == ["--torch-backend", "cpu"]
        elif plan.torch_index:
            at = lines[0].index("--index-url")
            assert lines[0][at + 1] == plan.torch_index
            assert "torch==1" in lines[0]


def test_the_version_of_torch_is_the_constraints_own():
    found = installer.torch_requirement(ROOT / "constraints.txt")
    assert re.fullmatch(r"torch==[\d.]+", found)
    assert installer.torch_requirement(None) == "torch"


def test_what_was_fetched_is_kept_for_the_next_try(tmp_path):
    plan = Plan(tmp_path / "env", tmp_path, None, "")
    (line,) = installer.fetching(plan, "torch")
    store = str(installer.store_of(plan))
    assert line[line.index("--dest") + 1] == store
    assert line[line.index("--find-links") + 1] == store


def test_megabytes_are_told_while_a_folder_grows(tmp_path, capsys):
    folder = tmp_path / "grows"
    folder.mkdir()
    (folder / "part").write_bytes(b"x" * 2_500_000)
    installer.run([sys.executable, "-c", "import time; time.sleep(1.2)"], "", folder)
    assert "megabytes 2.5" in capsys.readouterr().out.splitlines()
