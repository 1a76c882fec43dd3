"""Pieces of float32 arithmetic that are the same for every width and processor.

No library is called: a result is the same on every processor with fused sums, and the
same code runs in the last, incomplete part of a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codekv.model.runtime.native.ir import floats
from codekv.model.runtime.native.product import (
    RECORD,
    RECORD_HALVES,
    RECORD_MINIMUM,
    RECORD_SCALE,
    RECORD_ZERO,
    fused,
)

if TYPE_CHECKING:
    from codekv.model.runtime.native.ir import FunctionText
    from codekv.model.runtime.native.target import KernelTarget

_MAGIC = 12582912.0
"""1.5 * 2^23: added to a float32 it leaves the nearest integer in the last bits."""
# 1.5 * 2^23 as bits: adding it rounds a float32 to a whole number.
_MAGIC_BITS = 0x4B400000

# exp(x) is 2^(x * log2 e).
_LOG2_E = 1.44269504088896341
# ln 2 in two parts (Cody and Waite), so that the rest keeps all its bits.
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
_EXP_TERMS = (
    1.9875691500e-4,
    1.3981999507e-3,
    8.3334519073e-3,
    4.1665795894e-2,
    1.6666665459e-1,
    5.0000001201e-1,
)
"""Cephes, `expf`: ln 2 in two parts, and the polynomial after 1 + x."""
_EXP_LOWEST, _EXP_HIGHEST = -87.0, 88.0
"""Between these the result is a normal float32."""


def constant(value: float) -> str:
    """A vector constant with one float32 in all lanes."""
    return f"splat (float {floats(value)})"


def folded(f: FunctionText, vector: str, lanes: int, instruction: str = "fadd") -> str:
    """Reduce a vector of a power of two lanes in a fixed tree; a float."""
    while lanes > 1:
        half = lanes // 2
        kind = f"<{lanes} x float>"
        parts = []
        for start in (0, half):
            places = ", ".join(f"i32 {start + lane}" for lane in range(half))
            parts.append(
                f.let(
                    f"shufflevector {kind} {vector}, {kind} poison, "
                    f"<{half} x i32> <{places}>"
                )
            )
        if instruction == "max":
            more = f.let(f"fcmp ogt <{half} x float> {parts[0]}, {parts[1]}")
            vector = f.let(
                f"select <{half} x i1> {more}, <{half} x float> {parts[0]}, "
                f"<{half} x float> {parts[1]}"
            )
        else:
            vector = f.let(f"{instruction} <{half} x float> {parts[0]}, {parts[1]}")
        lanes = half
    return f.let(f"extractelement <1 x float> {vector}, i32 0")


def exponential(f: FunctionText, target: KernelTarget, x: str, lanes: int) -> str:
    """e^x for a vector; x is clamped to where the result is a normal float32."""
    kind, words = f"<{lanes} x float>", f"<{lanes} x i32>"

    def clamp(value: str, bound: float, order: str) -> str:
        inside = f.let(f"fcmp {order} {kind} {value}, {constant(bound)}")
        return f.let(
            f"select <{lanes} x i1> {inside}, {kind} {value}, {kind} {constant(bound)}"
        )

    def fma(left: str, right: str, total: str) -> str:
        return fused(f, target, lanes, (left, right, total))

    x = clamp(clamp(x, _EXP_LOWEST, "ogt"), _EXP_HIGHEST, "olt")
    shifted = fma(x, constant(_LOG2_E), constant(_MAGIC))
    power = f.let(f"bitcast {kind} {shifted} to {words}")
    power = f.let(f"sub {words} {power}, splat (i32 {_MAGIC_BITS})")
    whole = f.let(f"fsub {kind} {shifted}, {constant(_MAGIC)}")
    rest = fma(whole, constant(-_LN2_HIGH), x)
    rest = fma(whole, constant(-_LN2_LOW), rest)
    total = constant(_EXP_TERMS[0])
    for term in _EXP_TERMS[1:]:
        total = fma(total, rest, constant(term))
    square = f.let(f"fmul {kind} {rest}, {rest}")
    total = fma(total, square, rest)
    total = f.let(f"fadd {kind} {total}, {constant(1.0)}")
    bits = f.let(f"add {words} {power}, splat (i32 127)")
    bits = f.let(f"shl {words} {bits}, splat (i32 23)")
    factor = f.let(f"bitcast {words} {bits} to {kind}")
    return f.let(f"fmul {kind} {total}, {factor}")


def record(f: FunctionText, place: int, token: str, blocks: str, block: str) -> str:
    """Address of a token's block in the records, or their wide copy, of `%a`."""
    number = f.let(f"add i64 {f.let(f'mul i64 {token}, {blocks}')}, {block}")
    return f.at(f.slot("%a", place, "ptr"), f.let(f"mul i64 {number}, {RECORD}"))


def quantise(f: FunctionText, values: str, record: str, wide: str) -> None:
    """Round a block of 32 float32 to signed bytes and write its record.

    The scale is the largest magnitude over 127; what is not finite gives numbers that
    mean nothing, but stays within the record.
    """
    kind, words = "<32 x float>", "<32 x i32>"
    bits = f.let(f"bitcast {kind} {values} to {words}")
    sizes = f.let(f"and {words} {bits}, splat (i32 2147483647)")
    top = f.call("i32", "llvm.vector.reduce.umax.v32i32", f"{words} {sizes}")
    top = f.let(f"bitcast i32 {top} to float")
    some = f.let(f"fcmp ogt float {top}, {floats(1e-30)}")
    inverse = f.let(f"fdiv float {floats(127.0)}, {top}")
    inverse = f.let(f"select i1 {some}, float {inverse}, float {floats(0.0)}")
    scaled = f.let(f"fmul {kind} {values}, {f.splat(32, 'float', inverse)}")
    scaled = f.let(f"fadd {kind} {scaled}, {constant(_MAGIC)}")
    whole = f.let(f"bitcast {kind} {scaled} to {words}")
    whole = f.let(f"sub {words} {whole}, splat (i32 {_MAGIC_BITS})")
    f.store("<32 x i8>", f.let(f"trunc {words} {whole} to <32 x i8>"), record)
    short = f.let(f"trunc {words} {whole} to <32 x i16>")
    order = [4 * quad + place for quad in range(8) for place in (0, 2, 1, 3)]
    places = ", ".join(f"i32 {place}" for place in order)
    short = f.let(
        f"shufflevector <32 x i16> {short}, <32 x i16> poison, <32 x i32> <{places}>"
    )
    f.store("<32 x i16>", short, wide)
    sums = []
    for half in range(2):
        places = ", ".join(f"i32 {16 * half + lane}" for lane in range(16))
        part = f.let(
            f"shufflevector {words} {whole}, {words} poison, <16 x i32> <{places}>"
        )
        sums.append(
            f.call("i32", "llvm.vector.reduce.add.v16i32", f"<16 x i32> {part}")
        )
        value = f.let(f"trunc i32 {sums[-1]} to i16")
        f.store("i16", value, f.at(record, str(RECORD_HALVES + 2 * half)))
    both = f.let(f"add i32 {sums[0]}, {sums[1]}")
    for zero, place in RECORD_ZERO.items():
        f.store("i32", f.let(f"mul i32 {both}, {-zero}"), f.at(record, str(place)))
    scale = f.let(f"fdiv float {top}, {floats(127.0)}")
    f.store("float", scale, f.at(record, str(RECORD_SCALE)))
    low = f.let(f"fmul float {scale}, {f.let(f'sitofp i32 {both} to float')}")
    f.store("float", low, f.at(record, str(RECORD_MINIMUM)))
