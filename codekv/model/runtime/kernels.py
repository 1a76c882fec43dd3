"""Which code multiplies int8 matrices on this processor: checked, then measured.

Without the VNNI instructions, products of an unsigned and a signed byte are added in
pairs in 16 bits and saturate; some libraries then give wrong sums, silently. So every
kernel is first tried on the worst numbers there are. Those that are right are timed,
and the choice is remembered per processor and torch version.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

SAFE_BITS = 7
"""Weights of 7 bits cannot saturate 16-bit pairs: 255 * 63 * 2 < 2^15."""

_ROWS_AND_SHARES = ((1, 10.0), (4, 4.0), (256, 0.5))
"""What a keystroke's work is made of: (tokens in a step, weight of such a step)."""

# Integer sums are exact; the scaling may differ in the last bits of float32.
_TOLERANCE = 1e-5


class Product(Protocol):
    """Activations times a packed int8 matrix; exact in the integers."""

    def __call__(self, x_TK: Tensor, inverse_T1: Tensor) -> Tensor:
        """Multiply `round(127 * x * inverse)`, which must lie in [-127, 127].

        Returns:
            A new float32 tensor [T, N], times the row scales and `1 / 127`.
        """


class OneDnn:
    """oneDNN's int8 product; uses AMX or VNNI where there is one.

    Activations must be unsigned: with signed ones it falls back to a reference loop,
    a thousand times slower, for some numbers of tokens.
    """

    name = "onednn"

    def __init__(self, rows_NK: Tensor, scale_N: Tensor) -> None:
        ops = torch.ops.onednn
        self._packed = ops.qlinear_prepack(rows_NK, None)
        self._scale_N = scale_N / 127.0
        self._zeros_N = torch.zeros(rows_NK.shape[0], dtype=torch.long)
        self._multiply: Any = ops.qlinear_pointwise.default

    def __call__(self, x_TK: Tensor, inverse_T1: Tensor) -> Tensor:
        """See Product."""
        # Truncation towards zero after adding a half rounds to nearest.
        shifted_TK = (x_TK * (inverse_T1 * 127.0)).add_(128.5)
        product: Tensor = self._multiply(
            shifted_TK.to(torch.uint8),
            1.0,
            128,
            self._packed,
            self._scale_N,
            self._zeros_N,
            None,
            1.0,
            0,
            torch.float32,
            "none",
            [],
            "",
        )
        return product


class Fbgemm:
    """FBGEMM's product with a fixed scale of 1: it rounds and shifts by itself."""

    name = "fbgemm"

    def __init__(self, rows_NK: Tensor, scale_N: Tensor) -> None:
        zeros_N = torch.zeros(rows_NK.shape[0], dtype=torch.long)
        engine = torch.backends.quantized.engine
        torch.backends.quantized.engine = "fbgemm"
        try:
            with warnings.catch_warnings():
                # torch means to drop its quantised tensors; the check then finds out.
                warnings.simplefilter("ignore", UserWarning)
                quantised = torch._make_per_channel_quantized_tensor(
                    rows_NK, scale_N.to(torch.float64) / 127.0, zeros_N, 0
                )
                self._packed = torch.ops.quantized.linear_prepack(quantised, None)
        finally:
            torch.backends.quantized.engine = engine
        self._multiply: Any = (
            torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32.default
        )

    def __call__(self, x_TK: Tensor, inverse_T1: Tensor) -> Tensor:
        """See Product."""
        rows_TK = x_TK * (inverse_T1 * 127.0)
        product: Tensor = self._multiply(rows_TK, 1.0, 128, self._packed)
        return product


class Portable:
    """A product that every processor gets right: integers in float32.

    Slow with many tokens; the twin that the others are tested against.
    """

    name = "portable"

    def __init__(self, rows_NK: Tensor, scale_N: Tensor) -> None:
        self._rows_NK = rows_NK
        self._scale_N = scale_N / 127.0

    def __call__(self, x_TK: Tensor, inverse_T1: Tensor) -> Tensor:
        """See Product."""
        rows_TK = (x_TK * inverse_T1).mul_(127.0).round_().nan_to_num_()
        return torch._weight_int8pack_mm(rows_TK, self._rows_NK, self._scale_N)


class Stacked:
    """A product with a tall matrix in parts of fewer rows.

    Packing a tall matrix takes much longer than packing its parts, which can be packed
    side by side besides.
    """

    def __init__(self, parts: Sequence[Product]) -> None:
        self._parts = tuple(parts)

    def __call__(self, x_TK: Tensor, inverse_T1: Tensor) -> Tensor:
        """See Product."""
        return torch.cat([part(x_TK, inverse_T1) for part in self._parts], -1)


KERNELS: dict[str, Callable[[Tensor, Tensor], Product]] = {
    kernel.name: kernel for kernel in (OneDnn, Fbgemm, Portable)
}


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """The kernel for this processor, and how many bits of a weight it can take."""

    kernel: str
    bits: int

    def pack(self, rows_NK: Tensor, scale_N: Tensor) -> Product:
        """Make a product of int8 rows and their scales."""
        if self.bits < 8:
            limit = 2 ** (self.bits - 1) - 1
            rows_NK = (rows_NK * (limit / 127.0)).round_().to(torch.int8)
            scale_N = scale_N * (127.0 / limit)
        return KERNELS[self.kernel](rows_NK, scale_N)


def choose(memory: Path) -> KernelChoice:
    """Take the remembered choice for this processor, or check, measure and remember.

    Args:
        memory: A JSON file; a damaged or unwritable one only costs the measurement.
    """
    key = processor()
    known = _read(memory)
    entry = known.get(key)
    if isinstance(entry, dict) and entry.get("kernel") in KERNELS:
        return KernelChoice(
            str(entry["kernel"]), SAFE_BITS if entry.get("bits") == 7 else 8
        )
    choice, seconds = measure()
    known[key] = {"kernel": choice.kernel, "bits": choice.bits, "seconds": seconds}
    _write(memory, known)
    return choice


def processor() -> str:
    """Name what the choice depends on."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = info.read_text("utf-8", "replace").splitlines()
        wanted = ("model name", "flags", "Features")
        found = {line.split(":")[0].strip(): line for line in reversed(lines)}
        name = " ".join(found[key] for key in wanted if key in found)
    count = torch.get_num_threads()
    return f"{name} | torch {torch.__version__} | {count} threads"


@torch.inference_mode()
def measure() -> tuple[KernelChoice, dict[str, float]]:
    """Check and time every kernel; a fraction of a second.

    Returns:
        The fastest right one, and the weighted seconds of those that were timed.
    """
    seconds: dict[str, float] = {}
    bits: dict[str, int] = {}
    for name in KERNELS:
        if name == Portable.name and seconds:
            continue  # right, but so slow that timing it would delay the first start
        for width in (8, SAFE_BITS):
            if is_right(KernelChoice(name, width)):
                bits[name] = width
                seconds[name] = _seconds(KernelChoice(name, width))
                break
    best = min(seconds, key=seconds.__getitem__, default="portable")
    return KernelChoice(best, bits.get(best, 8)), seconds


@torch.inference_mode()
def is_right(choice: KernelChoice) -> bool:
    """Whether sums of the largest numbers, and of random ones, come out exactly."""
    generator = torch.Generator().manual_seed(1)
    rows_NK = torch.randint(-127, 128, (96, 256), generator=generator).to(torch.int8)
    rows_NK[:32], rows_NK[32:64] = 127, -127
    x_TK = torch.randint(-127, 128, (5, 256), generator=generator).to(torch.float32)
    x_TK[0], x_TK[1], x_TK[2:, 0] = 127.0, -127.0, 127.0
    scale_N = torch.rand(96, generator=generator) + 0.5
    limit = 2 ** (choice.bits - 1) - 1
    taken_NK = (rows_NK * (limit / 127.0)).round_().to(torch.float64)
    expected_TN = x_TK.to(torch.float64) @ taken_NK.T * (scale_N / limit)
    try:
        product = choice.pack(rows_NK, scale_N)
        found_TN = product(x_TK, torch.full((5, 1), 1.0 / 127.0))
    except (RuntimeError, AttributeError, NotImplementedError):
        return False
    error = (found_TN - expected_TN).abs().max() / expected_TN.abs().max()
    return bool(error <= _TOLERANCE)


def _seconds(choice: KernelChoice) -> float:
    generator = torch.Generator().manual_seed(2)
    rows_NK = torch.randint(-127, 128, (4096, 896), generator=generator)
    product = choice.pack(rows_NK.to(torch.int8), torch.ones(4096))
    total = 0.0
    for count, share in _ROWS_AND_SHARES:
        x_TK = torch.randn(count, 896, generator=generator)
        inverse_T1 = x_TK.abs().amax(-1, keepdim=True).reciprocal()
        best = float("inf")
        deadline = time.perf_counter() + 0.1
        for attempt in range(20):
            start = time.perf_counter()
            product(x_TK, inverse_T1)
            end = time.perf_counter()
            # The first call also compiles.
            best = min(best, end - start) if attempt else best
            if attempt > 1 and end > deadline:
                break
        total += best * share
    return total


def _read(memory: Path) -> dict[str, Any]:
    try:
        known = json.loads(memory.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _write(memory: Path, known: dict[str, Any]) -> None:
    partial = memory.with_name(f".{memory.name}.{os.getpid()}")
    try:
        memory.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(known, indent=1), "utf-8")
        partial.replace(memory)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
