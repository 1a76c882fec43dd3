"""What one step of the model costs, and how far it is from the memory's speed.

`python -m bench.micro.step [out.json [MODEL [RUNTIME]]]` loads a pulled model and
prints a table and, as its last line, JSON; RUNTIME is a value of `model.runtime`.
Unfair on purpose: the text is one synthetic module and nothing else runs between the
calls, so a keystroke in an editor finds colder caches.
Best times are given beside medians; on a busy machine only the best say something about
the code.
"""

from __future__ import annotations

import platform
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import psutil
import torch

from bench.micro.output import give
from codekv.config import ModelConfig
from codekv.model.library.resolve import resolve_model
from codekv.model.runtime import kernels
from codekv.model.runtime.half import half_weights
from codekv.model.runtime.int8 import INT8_FILE
from codekv.model.runtime.loader import load_runtime
from codekv.model.runtime.native.decoder import NativeDecoder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from codekv.model.runtime.interface import Runtime

PREFILL = (64, 512, 1024, 2048)
"""Tokens: from one chunk beside a user to a long file's prompt."""

STEPS = (1, 2, 4, 8, 16)
"""Tokens per step: one alone, drafts, and as many as candidates take."""

CONTEXT = 1000
"""What a prompt has on an ordinary machine."""

COPY_BYTES = 256 * 2**20
"""Several times the largest cache of a processor."""

MAX_SECONDS = 6.0
"""Seconds per size, so that a run stays short."""


def main(arguments: Sequence[str] = ()) -> None:
    """Measure everything and print."""
    given = dict(zip(("name", "runtime"), arguments[1:3], strict=False))
    config = ModelConfig.model_validate(given)
    folder = resolve_model(config, pull=False).folder
    begin = time.perf_counter()
    runtime = load_runtime(folder, config)
    report: dict[str, Any] = {
        "bench": "step",
        "model": runtime.spec.name,
        "compute": runtime.spec.compute,
        "processor": platform.processor() or platform.machine(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "load_s": time.perf_counter() - begin,
        "rss_mb": psutil.Process().memory_info().rss / 2**20,
        "kernels": kernels.measure()[1],
        "read_gb_s": _bandwidth(),
    }
    report |= _prefill(runtime) | _steps(runtime)
    report |= _distance(folder, runtime, report)
    for name, value in report.items():
        shown = f"{value:.2f}" if isinstance(value, float) else value
        sys.stdout.write(f"{name:24} {shown}\n")
    give(report, arguments[:1])


def _prefill(runtime: Runtime) -> dict[str, float]:
    """Tokens per second of whole prompts in one call, and in chunks of 64."""
    found = {}
    for count in PREFILL:
        tokens, kv = _tokens(runtime, count), runtime.new_kv(count)

        def at_once() -> None:
            runtime.forward(kv, tokens, 0, "last")  # noqa: B023

        def in_chunks() -> None:
            for start in range(0, len(tokens), 64):  # noqa: B023
                part = tokens[start : start + 64]  # noqa: B023
                runtime.forward(kv, part, start, "none")  # noqa: B023

        best, median = _time(at_once, 3)
        found[f"prefill_{count}_tok_s"] = count / median
        found[f"prefill_{count}_best_tok_s"] = count / best
        if count == PREFILL[1]:
            found[f"prefill_{count}_by_64_tok_s"] = count / _time(in_chunks, 3)[1]
    return found


def _steps(runtime: Runtime) -> dict[str, float]:
    """Milliseconds of steps of several tokens behind a filled context."""
    found = {}
    kv = runtime.new_kv(CONTEXT + max(STEPS))
    runtime.forward(kv, _tokens(runtime, CONTEXT), 0, "none")
    for count in STEPS:
        tokens = _tokens(runtime, count)

        def step() -> None:
            runtime.forward(kv, tokens, CONTEXT, "all")  # noqa: B023

        best, median = _time(step, 40)
        found[f"step_{count}_ms"] = 1000 * median
        found[f"step_{count}_best_ms"] = 1000 * best
    for count in STEPS[1:]:
        found[f"step_{count}_over_1"] = found[f"step_{count}_ms"] / found["step_1_ms"]
    return found


def _distance(
    folder: Path, runtime: Runtime, report: dict[str, Any]
) -> dict[str, float]:
    """Bytes a single-token step must read, and the time the memory needs for them."""
    if isinstance(runtime, NativeDecoder):
        weights = runtime.num_weight_bytes
    elif runtime.spec.compute == "int8":
        weights = (folder / INT8_FILE).stat().st_size
    else:
        weights = half_weights(folder).stat().st_size
    kv = sum(heads * (k + v) * 4 * CONTEXT for heads, k, v in runtime.spec.kv_shapes)
    floor = (weights + kv) / report["read_gb_s"] / 1e6
    return {
        "step_1_read_mb": (weights + kv) / 1e6,
        "step_1_floor_ms": floor,
        "step_1_over_floor": report["step_1_best_ms"] / floor,
    }


def _bandwidth() -> float:
    """Gigabytes a second of reading memory with all threads."""
    numbers = torch.ones(COPY_BYTES // 4)
    best, _ = _time(numbers.sum, 8)
    return COPY_BYTES / best / 1e9


def _tokens(runtime: Runtime, count: int) -> list[int]:
    generator = torch.Generator().manual_seed(count)
    size = (count,)
    ids = torch.randint(0, runtime.spec.vocab_size // 2, size, generator=generator)
    return [int(token) for token in ids]


def _time(call: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Best and median seconds, after one call to warm up; stops early when slow."""
    call()
    seconds: list[float] = []
    while len(seconds) < repeats and (len(seconds) < 2 or sum(seconds) < MAX_SECONDS):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds), statistics.median(seconds)


if __name__ == "__main__":
    main(sys.argv[1:])
