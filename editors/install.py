"""Install the codekv server into an environment of its own.

    python3 -I install.py --into FOLDER [--source WHEEL_OR_FOLDER]
        [--constraints FILE] [--torch-index URL] [--packages FOLDER] [--uv PROGRAM]
        [--until-stdin-ends]

The editors run this; it needs nothing but Python's own library. Packages are fetched
first, into FOLDER.packages, and installed from there: what is complete stays when the
installation is stopped, and the next try goes on from there. An environment without
its mark is never used. Each line of output is `step TEXT`, `megabytes DONE` or
`output TEXT`; the last one is `command PATH`. Exit codes: 0 done, 1 failed with a line
`error TEXT`, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path

OLDEST = (3, 11)
MARK = "codekv-complete"
# On Linux the package index holds torch with several gigabytes of CUDA; PyTorch's own
# index has builds for the CPU alone. On other systems the two are the same.
TORCH_CPU = "https://download.pytorch.org/whl/cpu"
# Often enough to see that it goes on, and no load for a slow disk.
PROGRESS_SECONDS = 0.5


class InstallError(Exception):
    """What failed and what helps, in one line."""


running: list[subprocess.Popen[str]] = []
"""The command that runs now, for whoever ends the installation."""


@dataclass(frozen=True)
class Plan:
    """What is to be installed, from where, into which folder.

    Attributes:
        source: A wheel, or a folder with the sources; never the name of a package.
        torch_index: An index to take torch from; "" for the ordinary one.
        packages: A folder that holds every wheel; nothing is fetched then.
        uv: The program `uv`; "" to work with `venv` and `pip`.
    """

    into: Path
    source: Path
    constraints: Path | None = None
    torch_index: str = ""
    packages: Path | None = None
    uv: str = ""


def environment_python(folder: Path, system: str = "") -> Path:
    """Give the interpreter of the environment in `folder`."""
    is_windows = (system or platform.system()) == "Windows"
    return folder / ("Scripts/python.exe" if is_windows else "bin/python")


def environment_command(folder: Path, system: str = "") -> Path:
    """Give the `codekv` command of the environment in `folder`."""
    is_windows = (system or platform.system()) == "Windows"
    return folder / ("Scripts/codekv.exe" if is_windows else "bin/codekv")


def default_torch_index(system: str = "") -> str:
    """Give the index that torch is taken from on this system."""
    return TORCH_CPU if (system or platform.system()) == "Linux" else ""


def store_of(plan: Plan) -> Path:
    """Give the folder in which fetched packages lie until all is installed."""
    return plan.into.with_name(plan.into.name + ".packages")


def pip_of(plan: Plan, action: str) -> list[str]:
    """Begin a command line of the environment's own pip."""
    python = str(environment_python(plan.into))
    quiet = ["--disable-pip-version-check", "--no-input"]
    if plan.packages is not None:
        # Not from where pip is set to look besides, either.
        quiet.append("--isolated")
    return [python, "-I", "-m", "pip", action, *quiet]


def building(plan: Plan) -> list[list[str]]:
    """List the commands that make a wheel of a folder with the sources."""
    if plan.uv or plan.source.is_file():
        return []
    links = ["--no-index", "--find-links", str(plan.packages)] if plan.packages else []
    pip = [*pip_of(plan, "wheel"), *links, "--no-deps"]
    return [[*pip, "--wheel-dir", str(store_of(plan)), str(plan.source)]]


def fetching(plan: Plan, torch: str) -> list[list[str]]:
    """List the commands that fetch; none if everything lies in a folder."""
    if plan.packages is not None or plan.uv:
        return []
    pip = [*pip_of(plan, "download"), "--progress-bar", "off"]
    pip += ["--dest", str(store_of(plan)), "--find-links", str(store_of(plan))]
    commands = []
    if plan.torch_index:
        commands.append([*pip, "--index-url", plan.torch_index, torch])
    limits = ["--constraint", str(plan.constraints)] if plan.constraints else []
    commands.append([*pip, *limits, str(plan.source)])
    return commands


def installing(plan: Plan, torch: str) -> list[list[str]]:
    """List the commands that install."""
    python = str(environment_python(plan.into))
    limits = ["--constraint", str(plan.constraints)] if plan.constraints else []
    if plan.uv:
        uv = [plan.uv, "pip", "install", "--python", python, *limits]
        if plan.packages is not None:
            links = ["--no-index", "--find-links", str(plan.packages)]
            return [[*uv, *links, str(plan.source)]]
        if plan.torch_index == TORCH_CPU:
            return [[*uv, "--torch-backend", "cpu", str(plan.source)]]
        first = [*uv, "--index-url", plan.torch_index, torch]
        return ([first] if plan.torch_index else []) + [[*uv, str(plan.source)]]
    links = str(plan.packages or store_of(plan))
    pip = [*pip_of(plan, "install"), "--no-index", "--find-links", links, *limits]
    return [[*pip, str(plan.source)]]


def torch_requirement(constraints: Path | None) -> str:
    """Find the version of torch that is asked for."""
    text = constraints.read_text("utf-8") if constraints else ""
    lines = [line.strip() for line in text.splitlines()]
    return next((line for line in lines if line.startswith("torch==")), "torch")


def install(plan: Plan) -> Path:
    """Make the environment and give its command.

    Raises:
        InstallError: A step failed.
    """
    check(plan)
    torch = torch_requirement(plan.constraints)
    shutil.rmtree(plan.into, ignore_errors=True)
    plan.into.parent.mkdir(parents=True, exist_ok=True)
    say("step", "creating the environment")
    if plan.uv:
        run([plan.uv, "venv", "--python", sys.executable, str(plan.into)])
    else:
        advice = "on Debian and Ubuntu, install the package python3-venv"
        run([sys.executable, "-I", "-m", "venv", str(plan.into)], advice)
    store = store_of(plan)
    store.mkdir(exist_ok=True)
    offline = "without a network, name a folder that holds all wheels (--packages)"
    for command in building(plan):
        say("step", "building the server from its sources")
        run(command, offline, store)
        plan = replace(plan, source=newest_wheel(store))
    for command in fetching(plan, torch):
        say("step", "fetching packages")
        run(command, offline, store)
    for command in installing(plan, torch):
        say("step", "installing packages")
        run(command, offline, plan.into)
    say("step", "checking the installation")
    program = environment_command(plan.into)
    if not program.is_file():
        raise InstallError(f"{plan.source} brought no codekv command")
    run([str(program), "--version"])
    (plan.into / MARK).write_text(plan.source.name + "\n", "utf-8")
    shutil.rmtree(store, ignore_errors=True)
    return program


def newest_wheel(folder: Path) -> Path:
    """Give the wheel of the server that was built last.

    Raises:
        InstallError: There is none.
    """
    wheels = sorted(folder.glob("codekv-*.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        raise InstallError("building the sources gave no wheel")
    return wheels[-1]


def check(plan: Plan) -> None:
    """Refuse what cannot work, before anything is changed.

    Raises:
        InstallError: This Python is too old, or a file is missing.
    """
    if sys.version_info < OLDEST:
        here = ".".join(map(str, sys.version_info[:2]))
        raise InstallError(f"codekv needs Python 3.11 or newer; this is {here}")
    for path in (plan.source, plan.constraints, plan.packages):
        if path is not None and not path.exists():
            raise InstallError(f"{path}: there is no such file or folder")


def run(command: list[str], advice: str = "", grows: Path | None = None) -> None:
    """Run a command and hand on what it prints; tell how a folder grows meanwhile.

    Raises:
        InstallError: It failed.
    """
    say("output", "> " + " ".join(command))
    # Away from whatever folder this was started in, and from its import path.
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    environment.pop("PYTHONPATH", None)
    try:
        child = subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise InstallError(
            f"{command[0]} cannot be started: {error.strerror}"
        ) from error
    running.append(child)
    done = threading.Event()
    watcher = threading.Thread(target=watch, args=(grows, done), daemon=True)
    watcher.start()
    last = ""
    assert child.stdout is not None
    with child.stdout:
        for line in child.stdout:
            if line.strip():
                say("output", line.strip())
                is_reason = "error" in line.lower() or not last
                last = line.strip() if is_reason else last
    code = child.wait()
    running.remove(child)
    done.set()
    watcher.join()
    if code:
        reason = last or f"exit status {code}"
        raise InstallError(f"{reason}; {advice}" if advice else reason)


def watch(folder: Path | None, done: threading.Event) -> None:
    """Tell the megabytes in a folder whenever they have changed."""
    told = -1.0
    while folder is not None and not done.wait(PROGRESS_SECONDS):
        size = round(num_bytes(folder) / 1e6, 1)
        if size != told:
            told = size
            say("megabytes", f"{size:.1f}")


def num_bytes(folder: Path) -> int:
    """Sum up the files in a folder; those that vanish meanwhile count as nothing."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(Path(path) / name).st_size
            except OSError:
                continue
    return total


def say(kind: str, text: str) -> None:
    """Print one line for the editor."""
    print(kind, text, flush=True)  # noqa: T201


def end(child: subprocess.Popen[str]) -> None:
    """Kill a command and, where there are process groups, all that it has started."""
    if hasattr(os, "killpg"):
        os.killpg(child.pid, signal.SIGKILL)
    else:
        child.kill()


def end_with_stdin() -> None:
    """End the installation, and what it has started, when standard input ends.

    That is how an editor cancels, or tells that it is gone, on every system alike.
    """

    def wait() -> None:
        sys.stdin.read()
        for child in running:
            end(child)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def plan_from(arguments: list[str] | None = None) -> Plan:
    """Read the command line; begins to watch standard input if told so."""
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description="Install the codekv server.")
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--source", type=Path, default=default_source(here))
    parser.add_argument("--constraints", type=Path, default=beside(here))
    parser.add_argument("--torch-index", default=default_torch_index())
    parser.add_argument("--packages", type=Path)
    parser.add_argument("--uv", default="")
    parser.add_argument("--until-stdin-ends", action="store_true")
    given = parser.parse_args(arguments)
    if given.until_stdin_ends:
        end_with_stdin()
    return Plan(
        into=given.into.absolute(),
        source=given.source.absolute(),
        constraints=given.constraints and given.constraints.absolute(),
        torch_index=given.torch_index,
        packages=given.packages and given.packages.absolute(),
        uv=given.uv,
    )


def default_source(here: Path) -> Path:
    """Find the wheel beside this file, or the repository that it is a part of."""
    wheels = sorted(here.glob("codekv-*.whl"))
    return wheels[-1] if wheels else here.parent


def beside(here: Path) -> Path | None:
    """Find the constraints that belong to the default source."""
    places = (here / "constraints.txt", here.parent / "constraints.txt")
    return next((path for path in places if path.is_file()), None)


def main(arguments: list[str] | None = None) -> int:
    """Install, and tell how it went."""
    try:
        say("command", str(install(plan_from(arguments))))
    except InstallError as error:
        say("error", " ".join(str(error).split()))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
