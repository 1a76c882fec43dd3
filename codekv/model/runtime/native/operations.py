"""What a layer does between its matrix products, written for one architecture.

Every token's sums have an order of their own that no neighbour changes: norms run
along the row, attention along the token's own positions in fixed partitions. So a
token's result is the same in a prompt, a step of one, a tree of drafts or a repair.
Dimension key as in `decoder.py`: H heads, K kv heads, G heads per kv head, D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codekv.model.runtime.native import attention
from codekv.model.runtime.native.ir import FunctionText, floats
from codekv.model.runtime.native.product import fused
from codekv.model.runtime.native.vectors import (
    constant,
    exponential,
    folded,
    quantise,
    record,
)

if TYPE_CHECKING:
    from codekv.model.runtime.native.attention_shape import AttentionShape
    from codekv.model.runtime.native.target import KernelTarget

# Places of arguments, see `program.py`.
X, X_STRIDE, X_BLOCKS, X_WEIGHT, X_RECORDS, X_WIDE = range(3, 9)
S_GATE, S_UP, S_STRIDE, S_BLOCKS, S_RECORDS, S_WIDE, S_PARTS, S_SHARE = range(3, 11)
R_QKV, R_STRIDE, R_TABLES, R_POSITIONS, R_SLOTS, R_KEYS, R_VALUES, R_HEAD = range(3, 11)


def functions(target: KernelTarget, shape: AttentionShape) -> list[FunctionText]:
    """All operations but the products."""
    return [
        _norm(target, shape),
        _round(),
        _silu(target),
        _rotate(target, shape),
        *attention.functions(target, shape),
    ]


def _norm(target: KernelTarget, shape: AttentionShape) -> FunctionText:
    """`norm`: root-mean-square norm of token `chunk`, rounded to int8 blocks."""
    f = FunctionText("norm", ["ptr %a", "i64 %chunk", "ptr %scratch"])
    kind = "<32 x float>"
    stride, blocks = f.slot("%a", X_STRIDE), f.slot("%a", X_BLOCKS)
    row = f.at(f.slot("%a", X, "ptr"), f.let(f"mul i64 %chunk, {stride}"), "float")
    with f.loop("0", blocks, carried=[(kind, "zeroinitializer")]) as loop:
        value = f.load(kind, f.at(row, loop.index, kind))
        loop.carry([fused(f, target, 32, (value, value, loop.values[0]))])
    total = folded(f, loop.values[0], 32)
    width = f.let(f"uitofp i64 {f.let(f'shl i64 {blocks}, 5')} to float")
    mean = f.let(f"fdiv float {total}, {width}")
    mean = f.let(f"fadd float {mean}, {floats(shape.eps)}")
    root = f.call("float", "llvm.sqrt.f32", f"float {mean}")
    inverse = f.splat(32, "float", f.let(f"fdiv float {floats(1.0)}, {root}"))
    weight = f.slot("%a", X_WEIGHT, "ptr")
    with f.loop("0", blocks) as loop:
        value = f.load(kind, f.at(row, loop.index, kind))
        value = f.let(f"fmul {kind} {value}, {inverse}")
        factor = f.load(kind, f.at(weight, loop.index, kind))
        value = f.let(f"fmul {kind} {value}, {factor}")
        places = (
            record(f, place, "%chunk", blocks, loop.index)
            for place in (X_RECORDS, X_WIDE)
        )
        quantise(f, value, *places)
    return f


def _round() -> FunctionText:
    """`round`: token `chunk` as it is, rounded to int8 blocks."""
    f = FunctionText("round", ["ptr %a", "i64 %chunk", "ptr %scratch"])
    kind = "<32 x float>"
    stride, blocks = f.slot("%a", X_STRIDE), f.slot("%a", X_BLOCKS)
    row = f.at(f.slot("%a", X, "ptr"), f.let(f"mul i64 %chunk, {stride}"), "float")
    with f.loop("0", blocks) as loop:
        value = f.load(kind, f.at(row, loop.index, kind))
        places = (
            record(f, place, "%chunk", blocks, loop.index)
            for place in (X_RECORDS, X_WIDE)
        )
        quantise(f, value, *places)
    return f


def _silu(target: KernelTarget) -> FunctionText:
    """`silu`: silu(gate) * up of a run of blocks, rounded; a chunk is token x run."""
    f = FunctionText("silu", ["ptr %a", "i64 %chunk", "ptr %scratch"])
    kind = "<32 x float>"
    parts, share = f.slot("%a", S_PARTS), f.slot("%a", S_SHARE)
    blocks, stride = f.slot("%a", S_BLOCKS), f.slot("%a", S_STRIDE)
    token = f.let(f"udiv i64 %chunk, {parts}")
    part = f.let(f"urem i64 %chunk, {parts}")
    first = f.let(f"mul i64 {part}, {share}")
    last = f.smaller(f.let(f"add i64 {first}, {share}"), blocks)
    offset = f.let(f"mul i64 {token}, {stride}")
    gates = f.at(f.slot("%a", S_GATE, "ptr"), offset, "float")
    ups = f.at(f.slot("%a", S_UP, "ptr"), offset, "float")
    with f.loop(first, last) as loop:
        gate = f.load(kind, f.at(gates, loop.index, kind))
        up = f.load(kind, f.at(ups, loop.index, kind))
        power = exponential(f, target, f.let(f"fneg {kind} {gate}"), 32)
        below = f.let(f"fadd {kind} {power}, {constant(1.0)}")
        value = f.let(f"fdiv {kind} {gate}, {below}")
        value = f.let(f"fmul {kind} {value}, {up}")
        places = (
            record(f, place, token, blocks, loop.index) for place in (S_RECORDS, S_WIDE)
        )
        quantise(f, value, *places)
    return f


def _rotate(target: KernelTarget, shape: AttentionShape) -> FunctionText:
    """`rotate`: rotate queries and keys of token `chunk`; write keys and values."""
    f = FunctionText("rotate", ["ptr %a", "i64 %chunk", "ptr %scratch"])
    kind, dim = "<8 x float>", shape.head_dim
    offset = f.let(f"mul i64 %chunk, {f.slot('%a', R_STRIDE)}")
    row = f.at(f.slot("%a", R_QKV, "ptr"), offset, "float")
    position = f.load("i64", f.at(f.slot("%a", R_POSITIONS, "ptr"), "%chunk", "i64"))
    slot = f.load("i64", f.at(f.slot("%a", R_SLOTS, "ptr"), "%chunk", "i64"))
    place = f.let(f"mul i64 {position}, {2 * dim}")
    cosines = f.at(f.slot("%a", R_TABLES, "ptr"), place, "float")
    sines = f.at(cosines, str(dim), "float")
    head_stride = f.slot("%a", R_HEAD)
    start = f.let(f"mul i64 {slot}, {dim}")

    def destination(base: int, head: str) -> str:
        place = f.let(f"add i64 {f.let(f'mul i64 {head}, {head_stride}')}, {start}")
        return f.at(f.slot("%a", base, "ptr"), place, "float")

    def turned(head: str, into: str) -> None:
        with f.loop("0", str(dim), 8) as lane:
            value = f.load(kind, f.at(head, lane.index, "float"))
            swapped = f.let(
                f"shufflevector {kind} {value}, {kind} poison, <8 x i32> "
                "<i32 1, i32 0, i32 3, i32 2, i32 5, i32 4, i32 7, i32 6>"
            )
            cosine = f.load(kind, f.at(cosines, lane.index, "float"))
            sine = f.load(kind, f.at(sines, lane.index, "float"))
            value = f.let(f"fmul {kind} {value}, {cosine}")
            value = fused(f, target, 8, (swapped, sine, value))
            f.store(kind, value, f.at(into, lane.index, "float"))

    with f.loop("0", str(shape.heads)) as head:
        place = f.at(row, f.let(f"mul i64 {head.index}, {dim}"), "float")
        turned(place, place)
    with f.loop("0", str(shape.kv_heads)) as head:
        number = f.let(f"add i64 {head.index}, {shape.heads}")
        key = f.at(row, f.let(f"mul i64 {number}, {dim}"), "float")
        turned(key, destination(R_KEYS, head.index))
        value = f.at(key, str(shape.kv_heads * dim), "float")
        into = destination(R_VALUES, head.index)
        with f.loop("0", str(dim), 8) as lane:
            numbers = f.load(kind, f.at(value, lane.index, "float"))
            f.store(kind, numbers, f.at(into, lane.index, "float"))
    return f
