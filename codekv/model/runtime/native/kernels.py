"""The kernels of one model on this processor: chosen, compiled, checked.

Every start tries the kernels on the worst numbers there are; what is wrong is left out.
If several are right, the fastest is taken and remembered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from codekv.model.runtime.native import compiler, operations, product, program
from codekv.model.runtime.native.checks import operations_are_right
from codekv.model.runtime.native.formats import BLOCK
from codekv.model.runtime.native.ir import module
from codekv.model.runtime.native.packing import Fields, pack
from codekv.model.runtime.native.pool import Pool, aligned
from codekv.model.runtime.native.target import TARGETS, usable
from codekv.model.runtime.native.tiles import TileReader

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from codekv.model.runtime.native.attention_shape import AttentionShape
    from codekv.model.runtime.native.compiler import Code, Machine
    from codekv.model.runtime.native.formats import Format
    from codekv.model.runtime.native.target import KernelTarget

    Words = NDArray[np.int64]

ARITHMETIC = "blocks of 32, in order, 1"
"""Names the order of all sums in the store's fingerprint; another order, another
number."""

_OPERATIONS = ("norm", "round", "silu", "rotate", "attend", "merge", "work", "serve")
_TOLERANCE = 2e-6
"""Of the largest result; float32 sums of a few hundred numbers."""
# Two blocks of the widest format, so that a block's border is crossed.
_CHECK_WIDTH = 512
_CHECK_TOKENS = product.UNPACK_FROM + 1


@dataclass(frozen=True, slots=True, eq=False)
class Kernels:
    """Compiled functions and what they were generated for."""

    target: KernelTarget
    code: Code

    @property
    def arithmetic(self) -> str:
        """What a result depends on besides weights and tokens."""
        rounding = "fused" if self.target.has_fma else "twice rounded"
        return f"{ARITHMETIC}, {rounding}"

    def operation(self, name: str, chunks: int, waits: int, *arguments: int) -> Words:
        """One row of a program; an empty name makes one that only waits."""
        row = np.zeros(program.WORDS, np.int64)
        row[program.FUNCTION] = self.code.addresses[name] if name else 0
        row[program.CHUNKS], row[program.WAITS] = chunks, waits
        row[3 : 3 + len(arguments)] = arguments
        return row


def text(target: KernelTarget, forms: Sequence[Format], shape: AttentionShape) -> str:
    """The IR of all functions of a model."""
    functions = [
        function
        for form in forms
        for function in product.ProductWriter(target, form).functions()
    ]
    functions += operations.functions(target, shape) + program.functions(target)
    pause = target.pause.removeprefix("call ").replace("(i32 1)", "(i32)")
    return module(functions, f"declare {pause}" if pause else "")


def build(
    target: KernelTarget,
    forms: Sequence[Format],
    shape: AttentionShape,
    machine: Machine,
    folder: Path,
) -> Kernels:
    """Compile the kernels of one target.

    Raises:
        RuntimeError: LLVM cannot.
    """
    names = [*(f"product_{form.name}" for form in forms), *_OPERATIONS]
    source = text(target, forms, shape)
    return Kernels(target, compiler.load(source, machine, names, folder))


def choose(
    forms: Sequence[Format], shape: AttentionShape, folder: Path
) -> Kernels | None:
    """The first right kernels for this processor, or None.

    Args:
        forms: Of the model's matrices.
        shape: Of its attention.
        folder: Keeps compiled objects.
    """
    machine, features = compiler.this_machine()
    for name in usable(machine.triple, features):
        try:
            kernels = build(TARGETS[name], forms, shape, machine, folder)
        except RuntimeError:
            continue  # An LLVM that does not know the instructions.
        products_are_right = all(is_right(kernels, form) for form in forms)
        if products_are_right and operations_are_right(kernels, shape):
            return kernels
    return None


def is_right(kernels: Kernels, form: Format) -> bool:
    """Whether the worst numbers, and random ones, come out; also for many tokens."""
    lanes = kernels.target.lanes
    parts = worst(form, lanes + 3, _CHECK_WIDTH)
    x_TK = worst_activations(_CHECK_TOKENS, _CHECK_WIDTH)
    expected = reference(parts, x_TK)
    pool = Pool(kernels.code, 1, scratch_bytes(kernels.target, form, _CHECK_WIDTH))
    try:
        for count in (_CHECK_TOKENS, 3):
            found = multiply(kernels, pool, parts, x_TK[:count])
            error = np.abs(found - expected[:count]).max()
            if not error <= _TOLERANCE * np.abs(expected).max():
                return False
    finally:
        pool.close()
    return True


def worst(form: Format, rows: int, width: int) -> Fields:
    """Rows of largest and smallest weights, and random ones, with random scales."""
    rng = np.random.default_rng(1)
    blocks = width // BLOCK
    top = 2**form.bits
    weights = rng.integers(0, top, (rows, blocks, BLOCK), dtype=np.uint8)
    weights[0], weights[1] = 0, top - 1
    if form.scales == "row":
        return Fields(form, weights, rows=rng.random(rows, dtype=np.float32) + 0.5)
    count = 1 if form.scales in ("half", "k_halves") else 2
    halves = rng.standard_normal((rows, blocks // form.group, count))
    integers = None
    if form.scales == "k_min":
        integers = rng.integers(0, 64, (rows, blocks, 2), dtype=np.uint8)
    if form.scales == "k_halves":
        integers = rng.integers(0, 256, (rows, blocks, 2), dtype=np.uint8)
        integers[:2] = 128  # as a signed byte: -128
    return Fields(form, weights, halves.astype(np.float16), integers)


def worst_activations(count: int, width: int) -> NDArray[np.float32]:
    """Tokens that round to 127 or -127 everywhere, to zero, and random ones."""
    x_TK = np.random.default_rng(2).standard_normal((count, width)).astype(np.float32)
    x_TK[0], x_TK[1], x_TK[2] = 1.0, -2.0, 0.0
    x_TK[3, ::2], x_TK[3, 1::2] = 3.0, -3.0
    return x_TK


def rounded(x_TK: NDArray[np.float32]) -> NDArray[np.float64]:
    """What the kernels make of activations: signed bytes times a scale per block."""
    blocks = x_TK.reshape(len(x_TK), -1, BLOCK)
    top = np.abs(blocks).max(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        inverse = np.where(top > 1e-30, np.float32(127.0) / top, np.float32(0.0))
    whole = np.rint(blocks * inverse.astype(np.float32)).astype(np.float64)
    scale = (top / np.float32(127.0)).astype(np.float64)
    numbers: NDArray[np.float64] = (whole * scale).reshape(x_TK.shape)
    return numbers


def reference(parts: Fields, x_TK: NDArray[np.float32]) -> NDArray[np.float64]:
    """The slow twin of the product, in float64."""
    return rounded(x_TK) @ parts.dense().astype(np.float64).T


def scratch_bytes(target: KernelTarget, form: Format, width: int) -> int:
    """Scratch memory for one tile."""
    return TileReader(target, form).scratch_bytes(-(-width // BLOCK))


def multiply(
    kernels: Kernels, pool: Pool, parts: Fields, x_TK: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Round activations and multiply them by a matrix; for checks and tests."""
    count, width = x_TK.shape
    rows, blocks = len(parts.weights), width // BLOCK
    tiles = pack(parts, kernels.target.lanes)
    weights = aligned(tiles.nbytes)
    weights[:] = tiles.reshape(-1)
    records = aligned(count * blocks * product.RECORD)
    wide = aligned(count * blocks * product.RECORD)
    x_TK = np.ascontiguousarray(x_TK)
    out = np.zeros((count, rows), np.float32)
    x, w, r, v, o = (a.ctypes.data for a in (x_TK, weights, records, wide, out))
    row = kernels.operation
    operation = row(
        f"product_{parts.form.name}",
        *(len(tiles), 1, w, r, v, o, rows, count, blocks, rows, 1, len(tiles), 0, 0),
    )
    steps = [row("round", count, 0, x, width, blocks, 0, r, v), operation]
    pool.run(np.stack([*steps, row("", 0, 1)]), 0, 3)
    return out
