"""Would 4 bits per weight make a step quicker? torch's 4-bit product beside ours.

`python -m bench.micro.weights [out.json]` multiplies random activations with matrices
of the default model's sizes, as many different ones as a step reads, so that they come
from memory. 4 bits are groups of 32 with bfloat16 activations, the form that torch has
a kernel for; 8 bits are the kernel that this machine would choose.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import torch

from bench.micro.output import give
from codekv.model.runtime import kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

SIZES = (
    ("qkv", 896, 1152, 24),
    ("out", 896, 896, 24),
    ("gate_up", 896, 9728, 24),
    ("down", 4864, 896, 24),
    ("head", 896, 151_936, 1),
)
"""Name, inputs, outputs, and how often a step multiplies with such a matrix."""

TOKENS = (1, 2, 4, 8)
"""Steps with and without drafts."""

GROUP = 32
"""The smallest group that torch's product takes, and the most exact."""

REPEATS = 12
"""A median of fewer jumps with every other program."""


def main(arguments: Sequence[str] = ()) -> None:
    """Measure every step size and print."""
    name = min(times := kernels.measure()[1], key=times.__getitem__)
    sums = {count: [0.0, 0.0] for count in TOKENS}
    for _, inputs, outputs, times_used in SIZES:
        for place, make in enumerate((_eight(name), _four)):
            products = [make(inputs, outputs) for _ in range(times_used)]
            for count in TOKENS:
                sums[count][place] += _median(products, count, inputs)
    rows: list[dict[str, Any]] = [
        {"tokens": count, "int8_ms": eight, "int4_ms": four, "ratio": four / eight}
        for count, (eight, four) in sums.items()
    ]
    for row in rows:
        cells = "  ".join(f"{key} {value:.2f}" for key, value in row.items())
        sys.stdout.write(f"{cells}\n")
    give({"bench": "weights", "kernel": name, "rows": rows}, arguments)


def _eight(name: str) -> Callable[[int, int], Callable[[Tensor], object]]:
    def make(inputs: int, outputs: int) -> Callable[[Tensor], object]:
        rows_NK = torch.randint(-127, 128, (outputs, inputs), dtype=torch.int8)
        product = kernels.KernelChoice(name, 8).pack(
            rows_NK, torch.full((outputs,), 0.01)
        )

        def multiply(x_TK: Tensor) -> object:
            return product(x_TK, x_TK.abs().amax(-1, True).reciprocal())

        return multiply

    return make


def _four(inputs: int, outputs: int) -> Callable[[Tensor], object]:
    ops = torch.ops.aten
    rows_NK = torch.randint(0, 16, (outputs, inputs), dtype=torch.int32)
    packed = ops._convert_weight_to_int4pack_for_cpu(rows_NK, 1)
    scales = torch.rand(inputs // GROUP, outputs, 2, dtype=torch.bfloat16)

    def multiply(x_TK: Tensor) -> object:
        x = x_TK.to(torch.bfloat16)
        return ops._weight_int4pack_mm_for_cpu(x, packed, GROUP, scales)

    return multiply


def _median(
    products: Sequence[Callable[[Tensor], object]], count: int, inputs: int
) -> float:
    """Milliseconds of one round through all matrices."""
    x_TK = torch.randn(count, inputs)
    return statistics.median(_rounds(products, x_TK))


def _rounds(
    products: Sequence[Callable[[Tensor], object]], x_TK: Tensor
) -> Iterator[float]:
    for number in range(REPEATS + 2):
        started = time.perf_counter()
        for product in products:
            product(x_TK)
        elapsed = (time.perf_counter() - started) * 1e3
        if number > 1:
            yield elapsed


if __name__ == "__main__":
    main(sys.argv[1:])
