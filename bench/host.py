"""What the numbers were measured on: processor, memory, versions, and its bandwidth."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

LIBRARIES = ("codekv", "torch", "transformers", "tokenizers", "tree-sitter", "numpy")
_BYTES = 256 * 2**20
"""Several times the largest cache of a processor, so that memory is what is read."""

_ROUNDS = 5
"""The best of a few: other programs only ever make a round slower."""


def facts() -> dict[str, Any]:
    """Name the machine and the versions; nothing that names its user."""
    return {
        "cpu": cpu_name(),
        "cores": psutil.cpu_count(logical=False) or psutil.cpu_count() or 1,
        "threads": psutil.cpu_count() or 1,
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "os": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "features": cpu_features(),
        "load_1m": round(psutil.getloadavg()[0], 2),
        "versions": {name: _version(name) for name in LIBRARIES},
    }


def cpu_name() -> str:
    """The processor's name, as far as the system tells."""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def cpu_features() -> list[str]:
    """The instruction sets that decide which kernels are quick."""
    info = Path("/proc/cpuinfo")
    if not info.is_file():
        return []
    words = set(info.read_text("utf-8").split())
    wanted = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "avx512_bf16")
    return [name for name in (*wanted, "asimddp", "i8mm") if name in words]


def bandwidth_gb_s() -> float:
    """Bytes read per second by all cores, in GB/s: what decoding is bound by.

    Sums one large array, the best of a few rounds. Torch's threads read it where
    torch is loaded already, since that is what decoding uses; else one core does.
    """
    data = np.ones(_BYTES // 4, dtype=np.float32)
    torch = sys.modules.get("torch")
    tensor = torch.from_numpy(data) if torch is not None else data
    best = float("inf")
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        tensor.sum()
        best = min(best, time.perf_counter() - began)
    return round(_BYTES / best / 1e9, 1)


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
