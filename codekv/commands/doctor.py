"""`codekv doctor`: what this machine can do, what is missing, what mends it."""

from __future__ import annotations

import os
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
import psutil
from rich.table import Table

from codekv import __version__, config, config_files
from codekv.commands.console import out
from codekv.errors import CodekvError
from codekv.model.library import store
from codekv.model.library.catalog import DEFAULT, find_entry
from codekv.model.library.choice import AUTO, choose_here

if TYPE_CHECKING:
    from collections.abc import Iterator

# Twice what the default model keeps resident, so that an editor fits beside it.
_NEED_MEMORY = 1.3 * 2**30
# The default model's file, its download in pieces and the cache's first day.
_NEED_DISK = 2.5e9

State = Literal["good", "note", "bad"]
_STYLE = {"good": "green", "note": "yellow", "bad": "bold red"}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One fact about this machine.

    Attributes:
        state: `note` is worth knowing, `bad` keeps completion from working.
        remedy: The command or step that mends it; empty if there is none to take.
    """

    state: State
    subject: str
    detail: str
    remedy: str = ""


@click.command()
def doctor() -> None:
    """Tell what this machine can do, what is missing, and what mends it."""
    findings = list(examine(Path.cwd()))
    table = Table(box=None, pad_edge=False, show_header=False)
    for finding in findings:
        style = _STYLE[finding.state]
        mark = f"[{style}]{finding.state}[/]"
        table.add_row(mark, finding.subject, _plain(finding.detail))
        if finding.remedy:
            table.add_row("", "", f"[bold]→ {_plain(finding.remedy)}[/]")
    out.print(table, soft_wrap=False)
    if any(finding.state == "bad" for finding in findings):
        raise click.exceptions.Exit(1)


def examine(workspace: Path) -> Iterator[Diagnosis]:
    """Look at everything; never raises and never uses the network."""
    yield Diagnosis(
        "good", "codekv", f"{__version__}, Python {platform.python_version()}"
    )
    yield from _processor()
    yield _memory()
    yield _disk()
    yield from _configuration(workspace)
    yield from _models(workspace)


def _processor() -> Iterator[Diagnosis]:
    cores = psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
    yield Diagnosis("good", "processor", f"{_processor_name()}, {cores} cores")
    try:
        import torch

        from codekv.model.runtime.loader import choose_compute, choose_device

        device = choose_device("auto")
        compute = choose_compute("auto", device)
    except (ImportError, OSError, CodekvError) as error:
        detail = f"cannot be used ({' '.join(str(error).split())})"
        yield Diagnosis("bad", "torch", detail, "pip install torch")
        return
    yield Diagnosis(
        "good", "torch", f"{torch.__version__}, computes {compute} on {device}"
    )
    if device == "cpu":
        yield _features()


def _features() -> Diagnosis:
    """Which instructions the int8 kernels will find."""
    import torch

    found = [
        label
        for label, probe in (
            ("AVX2", "_is_avx2_supported"),
            ("AVX-512", "_is_avx512_supported"),
            ("VNNI", "_is_vnni_supported"),
            ("bf16", "_is_avx512_bf16_supported"),
            ("AMX", "_is_amx_tile_supported"),
        )
        # Private to torch, so another version may lack one.
        if getattr(torch.cpu, probe, bool)()
    ]
    detail = ", ".join(found) or torch.backends.cpu.get_cpu_capability()
    if "VNNI" in found or platform.machine() in ("arm64", "aarch64"):
        return Diagnosis("good", "features", detail)
    line = f"{detail}; without VNNI int8 is slower and uses 7-bit weights"
    return Diagnosis("note", "features", line)


def _memory() -> Diagnosis:
    memory = psutil.virtual_memory()
    detail = f"{memory.total / 2**30:.1f} GiB, {memory.available / 2**30:.1f} GiB free"
    if memory.available < _NEED_MEMORY:
        remedy = "close other programs, or set model.name to the small model"
        return Diagnosis("note", "memory", detail, remedy)
    return Diagnosis("good", "memory", detail)


def _disk() -> Diagnosis:
    folder = config.data_dir()
    parent = next(p for p in (folder, *folder.parents) if p.exists())
    free = shutil.disk_usage(parent).free
    detail = f"{free / 1e9:.1f} GB free at {folder}"
    if not os.access(parent, os.W_OK):
        detail = f"{folder} cannot be written"
        return Diagnosis("bad", "disk", detail, f"chown -R $USER {parent}")
    if free < _NEED_DISK:
        remedy = f"free {_NEED_DISK / 1e9:.1f} GB before pulling a model"
        return Diagnosis("note", "disk", detail, remedy)
    return Diagnosis("good", "disk", detail)


def _configuration(workspace: Path) -> Iterator[Diagnosis]:
    _, problems = config_files.load(workspace)
    if not problems:
        yield Diagnosis("good", "config", "no problems")
    for problem in problems:
        remedy = f"edit {problem.source}"
        yield Diagnosis("note", "config", f"{problem.key}: {problem.message}", remedy)


def _models(workspace: Path) -> Iterator[Diagnosis]:
    settings, _ = config_files.load(workspace)
    configured = settings.model.name
    if configured == AUTO:
        choice = choose_here()
        yield Diagnosis("good", "auto", f"{choice.name}: {choice.why}")
        configured = choice.name
    entry = find_entry(configured)
    wanted = entry.name if entry else configured
    names = []
    root = store.models_dir()
    folders = sorted(root.glob("[!.]*")) if root.is_dir() else []
    for folder in folders:
        try:
            stored = store.open_model(folder.name)
        except CodekvError as error:
            detail, _, remedy = str(error).partition("; run: ")
            yield Diagnosis("note", "model", detail, remedy or f"rm -r {folder}")
        else:
            names.append(stored.name)
            detail = f"{stored.name}, {stored.num_bytes / 1e9:.1f} GB, {stored.family}"
            yield Diagnosis("good", "model", detail)
            if stored.name == wanted:
                yield _runtime(stored.folder, settings.model)
    hub_name = configured.replace("/", "--")
    if wanted in names or hub_name in names or Path(wanted).expanduser().exists():
        return
    # Another model stands in for the default alone.
    state: State = "note" if entry is DEFAULT and names else "bad"
    remedy = f"codekv model pull {wanted}"
    yield Diagnosis(
        state, "model", f"{wanted}, which is configured, is not here", remedy
    )


def _runtime(folder: Path, model: config.ModelConfig) -> Diagnosis:
    """Which forward pass the configured model gets."""
    try:
        from codekv.model.runtime.loader import describe_runtime

        detail = describe_runtime(folder, model)
    except (ImportError, OSError, CodekvError) as error:
        detail = f"cannot be told ({' '.join(str(error).split())})"
        return Diagnosis("note", "runtime", detail)
    # Behind a colon stands why it is not the native one.
    return Diagnosis("note" if ":" in detail else "good", "runtime", detail)


def _processor_name() -> str:
    """The name a person knows; `platform` says only the architecture on Linux."""
    facts = Path("/proc/cpuinfo")
    if facts.is_file():
        for line in facts.read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _plain(text: str) -> str:
    """Keep rich from reading brackets in a text as style."""
    return text.replace("[", r"\[")
