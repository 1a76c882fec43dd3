"""How fast the bare runtime is here, and what memory bandwidth would allow."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

from bench.host import bandwidth_gb_s
from codekv.model.runtime.blocks import open_blocks
from codekv.model.runtime.int8 import WEIGHTS_FILE
from codekv.model.runtime.weights import WeightsFile

if TYPE_CHECKING:
    from pathlib import Path

    from codekv.model.runtime.interface import Runtime

PREFILL = 512
"""Tokens: long enough that chunks reach their full speed."""

ROUNDS = 10
"""A median of fewer jumps with every other program."""

_ITEM = {"int8": 1, "fp16": 2, "bf16": 2, "fp32": 4}


def measure(runtime: Runtime, folder: Path) -> dict[str, Any]:
    """Time a prefill and steps of one, four and eight tokens at 512 of context."""
    kv = runtime.new_kv(PREFILL + 8 * (ROUNDS + 1))
    tokens = [index % 1000 + 10 for index in range(PREFILL)]
    runtime.forward(kv, tokens[:64], 0)
    began = time.perf_counter()
    runtime.forward(kv, tokens, 0)
    prefill = PREFILL / (time.perf_counter() - began)
    steps = {width: _step_ms(runtime, kv, width) for width in (1, 4, 8)}
    size = bytes_per_step(folder, runtime.spec.compute)
    bandwidth = bandwidth_gb_s()
    return {
        "prefill_tok_s": round(prefill, 1),
        "decode_ms": steps[1],
        "decode_ms_4": steps[4],
        "decode_ms_8": steps[8],
        "bytes_per_step": size,
        "bandwidth_gb_s": bandwidth,
        "bound_ms": round(size / bandwidth / 1e6, 2),
    }


def bytes_per_step(folder: Path, compute: str) -> int:
    """Weight bytes that one decoding step has to read.

    Every matrix once, the output head included; looking up an embedding reads one row.
    """
    blocks = open_blocks(folder)
    if blocks is None:
        file = WeightsFile(folder / WEIGHTS_FILE)
        shapes = {name: file.shape(name) for name in file.names}
    else:
        shapes = {name: tensor.shape for name, tensor in blocks.tensors.items()}
    has_head = any(name.startswith("lm_head") for name in shapes)
    total = 0
    for name, shape in shapes.items():
        is_lookup = "embed_tokens" in name and has_head
        if len(shape) == 2 and not is_lookup:
            total += shape[0] * shape[1]
    return total * _ITEM.get(compute, 4)


def _step_ms(runtime: Runtime, kv: Any, width: int) -> float:
    times = []
    for index in range(ROUNDS):
        began = time.perf_counter()
        runtime.forward(kv, [11] * width, PREFILL + index * width, "all")
        times.append((time.perf_counter() - began) * 1e3)
    return round(statistics.median(times), 2)
