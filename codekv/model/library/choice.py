"""Which model `model.name = "auto"` stands for on this machine, and why.

The larger model writes better text; it is chosen where it fits in memory and its step
is quick enough to follow a typist. Before anything is fetched the step is predicted
from the bytes it has to read and the measured bandwidth of the memory; once the model
has run here, the measured step decides. It is fetched only after the user has agreed.
"""

from __future__ import annotations

import json
import platform
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from codekv.config import data_dir
from codekv.errors import CodekvError
from codekv.files import write_whole
from codekv.model.library import store
from codekv.model.library.catalog import DEFAULT, LARGE

if TYPE_CHECKING:
    from codekv.config import Config

AUTO = "auto"

MAX_STEP_MS = 45.0
"""A step this long still puts three tokens of ghost text up within 300 ms, after the
debounce and the prefill of what was typed."""

STEP_BYTES = 979_000_000
"""What a step of the larger model reads: layers of 788 MB and a head of 191 MB."""

STEP_SHARE = 1.2
"""A whole step over its matrix products: 33 ms over 28 ms for the smaller model."""

MEMORY_BESIDE = 800_000_000
"""What the process takes beside the model's file: Python, torch, caches (512 MB)."""

_READ_BYTES = 128 << 20
"""Several times the largest common cache, so that memory is measured."""

_ROUNDS = 6
"""The best of so many counts: others may be at work during some."""

_NOTES = "auto.json"


@dataclass(frozen=True, slots=True)
class MachineNotes:
    """What is remembered about this machine; forgotten when the processor changes.

    Attributes:
        processor: Whose numbers these are.
        bandwidth_gb_s: Best seen so far; 0 if never measured.
        step_ms: Measured step of the larger model; None before it has run here.
        agreed: The user's answer to fetching the larger model; None if never given.
    """

    processor: str = ""
    bandwidth_gb_s: float = 0.0
    step_ms: float | None = None
    agreed: bool | None = None


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """What the choice depends on.

    Attributes:
        memory: Bytes that this process may use.
        notes: Bandwidth, measured step, consent.
        is_here: Whether the larger model is in the store.
    """

    memory: int
    notes: MachineNotes = field(default_factory=MachineNotes)
    is_here: bool = False


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """What `auto` stands for.

    Attributes:
        name: In the catalog.
        why: One line for people.
        offer: Whether the larger model would run well here and waits for consent.
    """

    name: str
    why: str
    offer: bool = False


def choose(facts: MachineFacts) -> ModelChoice:
    """Decide between the two models; a pure function."""
    need = LARGE.num_bytes + MEMORY_BESIDE
    if facts.memory < need:
        have = f"{need / 1e9:.1f} GB of memory, {facts.memory / 1e9:.1f} GB are free"
        return ModelChoice(DEFAULT.name, f"{LARGE.name} needs {have}")
    step, how = _step_ms(facts.notes)
    if step > MAX_STEP_MS:
        why = f"a step of {LARGE.name} takes {step:.0f} ms here ({how})"
        return ModelChoice(DEFAULT.name, f"{why}, at most {MAX_STEP_MS:.0f} would do")
    fits = f"{LARGE.name} fits, its step takes {step:.0f} ms here ({how})"
    if facts.is_here:
        return ModelChoice(LARGE.name, fits)
    if facts.notes.agreed is False:
        return ModelChoice(DEFAULT.name, f"{fits}, but was declined")
    size = f"{LARGE.num_bytes / 1e9:.1f} GB"
    why = f"{fits}; to fetch its {size}: codekv model pull {LARGE.name}"
    return ModelChoice(DEFAULT.name, why, offer=True)


def choose_here() -> ModelChoice:
    """Decide for this machine; measures the memory where that can change the answer."""
    notes = read_notes()
    facts = MachineFacts(memory_limit(), notes, _is_here())
    if notes.step_ms is None and facts.memory >= LARGE.num_bytes + MEMORY_BESIDE:
        # Others may have been at work the last time, so a better number counts.
        best = max(notes.bandwidth_gb_s, measure_bandwidth())
        facts = replace(facts, notes=replace(notes, bandwidth_gb_s=best))
        write_notes(facts.notes)
    return choose(facts)


def settle_name(config: Config) -> Config:
    """Put the model that `auto` stands for in place of that word."""
    if config.model.name.strip() != AUTO:
        return config
    model = config.model.model_copy(update={"name": choose_here().name})
    return config.model_copy(update={"model": model})


def note_step(name: str, step_ms: float) -> bool:
    """Remember a measured step; tells whether the larger model is too slow here."""
    if name != LARGE.name:
        return False
    write_notes(replace(read_notes(), step_ms=round(step_ms, 1)))
    return step_ms > MAX_STEP_MS


def note_consent(*, agreed: bool) -> None:
    """Remember whether the larger model may be fetched."""
    write_notes(replace(read_notes(), agreed=agreed))


def read_notes() -> MachineNotes:
    """What is remembered; nothing if it is damaged or another machine's."""
    try:
        values: dict[str, Any] = json.loads((data_dir() / _NOTES).read_bytes())
        step, agreed = values["step_ms"], values["agreed"]
        notes = MachineNotes(
            str(values["processor"]),
            float(values["bandwidth_gb_s"]),
            None if step is None else float(step),
            None if agreed is None else bool(agreed),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return MachineNotes(_processor())
    if notes.processor != _processor():
        return MachineNotes(_processor(), agreed=notes.agreed)
    return notes


def write_notes(notes: MachineNotes) -> None:
    """Remember; a disk that cannot be written only costs measuring again."""
    path = data_dir() / _NOTES
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(asdict(notes)))


def memory_limit() -> int:
    """Bytes this process may still use: free memory, or a lower limit set on it."""
    limits = [psutil.virtual_memory().available]
    for path in (
        Path("/sys/fs/cgroup/memory.max"),
        Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
    ):
        try:
            limits.append(int(path.read_text("ascii")))
        except (OSError, ValueError):
            continue  # no such limit, or the word "max"
    try:
        import resource  # not on Windows
    except ImportError:
        return min(limits)
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft = resource.getrlimit(kind)[0]
        if soft != resource.RLIM_INFINITY:
            limits.append(soft)
    return min(limits)


def measure_bandwidth() -> float:
    """Read memory as decoding does, in GB/s; takes about a tenth of a second."""
    import numpy as np

    data = np.ones(_READ_BYTES // 4, np.float32)
    best = float("inf")
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        # The linear algebra library uses every core, which a sum would not.
        data.dot(data)
        best = min(best, time.perf_counter() - started)
    return round(data.nbytes / best / 1e9, 1)


def _step_ms(notes: MachineNotes) -> tuple[float, str]:
    if notes.step_ms is not None:
        return notes.step_ms, "measured"
    if not notes.bandwidth_gb_s:
        return float("inf"), "its memory was never measured"
    step = STEP_BYTES / notes.bandwidth_gb_s / 1e6 * STEP_SHARE
    return step, f"predicted from {notes.bandwidth_gb_s:.0f} GB/s"


def _is_here() -> bool:
    try:
        store.open_model(LARGE.name)
    except CodekvError:
        return False
    return True


def _processor() -> str:
    cores = psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
    return f"{platform.machine()} {platform.processor()} {cores} cores"
