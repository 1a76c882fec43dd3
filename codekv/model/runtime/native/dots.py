"""The one exchangeable piece of the kernels: four weights times four activations.

Each way gives the same integers, so which one a processor takes is a question of speed
alone. `Dot.sums` adds a block's products to start values; the weights are unsigned and
the activations signed bytes in [-127, 127]. A quad is unpacked when its turn comes and
serves all tokens then, so that few registers are in use.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from codekv.model.runtime.native.ir import FunctionText

    Quads: TypeAlias = Sequence[Callable[[], str]]
    """For each quad, what writes its unpacking and returns the vector of bytes."""
    Starts: TypeAlias = Sequence[Callable[[], str]]
    """For each token, what writes the i32 vector from which its sum starts."""

_PAIR_LIMIT = 32767
"""Largest sum that the 16 bits of AVX2's product of bytes can hold."""


@dataclass(frozen=True, slots=True)
class Activations:
    """Where one token's block of activations lies.

    Attributes:
        quads: Address of its 32 signed bytes.
        wide: Address of the same as 16-bit pairs, even and odd places apart.
    """

    quads: str
    wide: str


@dataclass(frozen=True, slots=True)
class Halves:
    """What a block needs whose halves have integer scales.

    Attributes:
        factors: What `Dot.factors` returned.
        sums: Per token, where the sums of its halves stand, 16 bits each.
        zero: Of a weight.
    """

    factors: Sequence[str]
    sums: Sequence[str]
    zero: int


class Dot:
    """Integer products in plain IR: right everywhere, and the twin of the others."""

    name = "portable"

    num_factors = 2
    """How many vectors `factors` returns."""

    def __init__(self, lanes: int) -> None:
        """Choose the vector's width in 32-bit lanes, which is also a tile's rows."""
        self.lanes = lanes

    def zero(self, zero: int, bits: int) -> int:
        """What is still to be subtracted from a weight in `sums`."""
        del bits
        return zero

    def sums(
        self,
        f: FunctionText,
        quads: Quads,
        bits: int,
        tokens: Sequence[Activations],
        starts: Starts,
    ) -> list[str]:
        """Add the products of some quads to one i32 vector per token.

        Args:
            f: Written to.
            quads: The weights.
            bits: Of a weight.
            tokens: The activations of the first of these quads.
            starts: Vectors of i32, written when they are needed.
        """
        del bits
        kind = f"<{self.lanes} x i32>"
        totals = [start() for start in starts]
        for quad, unpack in enumerate(quads):
            words = f.let(f"bitcast <{4 * self.lanes} x i8> {unpack()} to {kind}")
            for place in range(4):
                shifted = f.let(f"lshr {kind} {words}, splat (i32 {8 * place})")
                value = f.let(f"and {kind} {shifted}, splat (i32 255)")
                for token, x in enumerate(tokens):
                    byte = f.load("i8", f.at(x.quads, str(4 * quad + place)))
                    byte = f.let(f"sext i8 {byte} to i32")
                    factor = f.splat(self.lanes, "i32", byte)
                    product = f.let(f"mul {kind} {value}, {factor}")
                    totals[token] = f.let(f"add {kind} {totals[token]}, {product}")
        return totals

    def factors(self, f: FunctionText, first: str, last: str) -> list[str]:
        """Turn the integer scales of a block's halves into what `scaled_sums` takes."""
        del f
        return [first, last]

    def scaled_sums(
        self,
        f: FunctionText,
        quads: Quads,
        tokens: Sequence[Activations],
        halves: Halves,
    ) -> list[str]:
        """A 6-bit block whose halves have integer scales: one exact sum per token."""
        kind, middle = f"<{self.lanes} x i32>", len(quads) // 2
        totals: list[str] = []
        for half, factor in enumerate(halves.factors):
            parts = [Activations(f.at(x.quads, str(16 * half)), x.wide) for x in tokens]
            starts = [
                partial(self._start, f, f.at(sums, str(2 * half)), halves.zero)
                for sums in halves.sums
            ]
            own = quads[half * middle : (half + 1) * middle]
            found = self.sums(f, own, 6, parts, starts)
            found = [f.let(f"mul {kind} {each}, {factor}") for each in found]
            if totals:
                pairs = zip(totals, found, strict=True)
                found = [f.let(f"add {kind} {left}, {right}") for left, right in pairs]
            totals = found
        return totals

    def _start(self, f: FunctionText, place: str, zero: int) -> str:
        """Minus the zero point times a sum of activations in 16 bits."""
        value = f.let(f"sext i16 {f.load('i16', place)} to i32")
        return f.splat(self.lanes, "i32", f.let(f"mul i32 {value}, {-zero}"))

    def _quad(self, f: FunctionText, x: Activations, quad: int) -> str:
        """One quad's activations in all lanes, as bytes."""
        word = f.load("i32", f.at(x.quads, str(4 * quad)))
        words = f.splat(self.lanes, "i32", word)
        return f.let(f"bitcast <{self.lanes} x i32> {words} to <{4 * self.lanes} x i8>")


class Vnni(Dot):
    """AVX-512 VNNI and AVX-VNNI: one instruction, 32 bits wide, no saturation."""

    name = "vnni"

    def sums(
        self,
        f: FunctionText,
        quads: Quads,
        bits: int,
        tokens: Sequence[Activations],
        starts: Starts,
    ) -> list[str]:
        """See Dot."""
        del bits
        words, bytes_ = f"<{self.lanes} x i32>", f"<{4 * self.lanes} x i8>"
        name = f"llvm.x86.avx512.vpdpbusd.{32 * self.lanes}"
        totals = [start() for start in starts]
        for quad, unpack in enumerate(quads):
            weight = unpack()
            for token, x in enumerate(tokens):
                totals[token] = f.call(
                    words,
                    name,
                    f"{words} {totals[token]}",
                    f"{bytes_} {weight}",
                    f"{bytes_} {self._quad(f, x, quad)}",
                )
        return totals


class NeonDot(Dot):
    """The dot product of ARMv8.2, signed by signed: 8-bit weights lose their offset."""

    name = "neon"

    def zero(self, zero: int, bits: int) -> int:
        """See Dot."""
        return zero - 128 if bits == 8 else zero

    def sums(
        self,
        f: FunctionText,
        quads: Quads,
        bits: int,
        tokens: Sequence[Activations],
        starts: Starts,
    ) -> list[str]:
        """See Dot."""
        totals = [start() for start in starts]
        for quad, unpack in enumerate(quads):
            weight = unpack()
            if bits == 8:
                weight = f.let(f"xor <16 x i8> {weight}, splat (i8 -128)")
            for token, x in enumerate(tokens):
                totals[token] = f.call(
                    "<4 x i32>",
                    "llvm.aarch64.neon.sdot.v4i32.v16i8",
                    f"<4 x i32> {totals[token]}",
                    f"<16 x i8> {weight}",
                    f"<16 x i8> {self._quad(f, x, quad)}",
                )
        return totals


class Avx2(Dot):
    """AVX2: pairs of byte products in 16 bits, which saturate.

    So many products are added in 16 bits as cannot overflow: 8 with weights of 4 bits,
    4 with 5, 2 with 6. Weights of 8 bits are widened, even and odd places apart, and
    multiplied as 16-bit numbers by the activations' wide copy.
    """

    name = "avx2"

    num_factors = 3

    def sums(
        self,
        f: FunctionText,
        quads: Quads,
        bits: int,
        tokens: Sequence[Activations],
        starts: Starts,
    ) -> list[str]:
        """See Dot."""
        if bits == 8:
            return self._wide(f, quads, tokens, starts)
        limit = _PAIR_LIMIT // (2 * 127 * (2**bits - 1))
        totals: list[str] = []
        for first in range(0, len(quads), limit):
            pairs = self._short(f, quads[first : first + limit], tokens, first)
            words = [self._pairs(f, pair, "splat (i16 1)") for pair in pairs]
            before = totals or [start() for start in starts]
            totals = [
                f.let(f"add <8 x i32> {left}, {right}")
                for left, right in zip(before, words, strict=True)
            ]
        return totals

    def factors(self, f: FunctionText, first: str, last: str) -> list[str]:
        """As 16-bit pairs: the first twice, the last twice, and both."""
        low, high = {}, {}
        for name in (first, last):
            low[name] = f.let(f"and <8 x i32> {name}, splat (i32 65535)")
            high[name] = f.let(f"shl <8 x i32> {name}, splat (i32 16)")
        return [
            f.let(f"or <8 x i32> {low[left]}, {high[right]}")
            for left, right in ((first, first), (last, last), (first, last))
        ]

    def scaled_sums(
        self,
        f: FunctionText,
        quads: Quads,
        tokens: Sequence[Activations],
        halves: Halves,
    ) -> list[str]:
        """See Dot; the step from 16 to 32 bits multiplies by the scales as well."""
        pairs = [
            f.let(f"bitcast <8 x i32> {each} to <16 x i16>") for each in halves.factors
        ]
        totals = []
        for place in halves.sums:
            sums = f.splat(8, "i32", f.load("i32", place))
            sums = f.let(f"bitcast <8 x i32> {sums} to <16 x i16>")
            low = self._pairs(f, pairs[2], sums)
            totals.append(f.let(f"mul <8 x i32> {low}, splat (i32 {-halves.zero})"))
        for first in range(0, len(quads), 2):
            factor = pairs[first // (len(quads) // 2)]
            short = self._short(f, quads[first : first + 2], tokens, first)
            for token, pair in enumerate(short):
                words = self._pairs(f, pair, factor)
                totals[token] = f.let(f"add <8 x i32> {totals[token]}, {words}")
        return totals

    def _short(
        self, f: FunctionText, quads: Quads, tokens: Sequence[Activations], first: int
    ) -> list[str]:
        """Per token, pairs of products of quads from number `first` on, in 16 bits."""
        pairs = [""] * len(tokens)
        for quad, unpack in enumerate(quads, first):
            weight = unpack()
            for token, x in enumerate(tokens):
                product = f.call(
                    "<16 x i16>",
                    "llvm.x86.avx2.pmadd.ub.sw",
                    f"<32 x i8> {weight}",
                    f"<32 x i8> {self._quad(f, x, quad)}",
                )
                before = pairs[token]
                pairs[token] = (
                    f.let(f"add <16 x i16> {before}, {product}") if before else product
                )
        return pairs

    def _wide(
        self,
        f: FunctionText,
        quads: Quads,
        tokens: Sequence[Activations],
        starts: Starts,
    ) -> list[str]:
        totals = [start() for start in starts]
        for quad, unpack in enumerate(quads):
            both = f.let(f"bitcast <32 x i8> {unpack()} to <16 x i16>")
            even = f.let(f"and <16 x i16> {both}, splat (i16 255)")
            odd = f.let(f"lshr <16 x i16> {both}, splat (i16 8)")
            for place, weight in enumerate((even, odd), 2 * quad):
                for token, x in enumerate(tokens):
                    word = f.load("i32", f.at(x.wide, str(4 * place)))
                    words = f.splat(8, "i32", word)
                    pairs = f.let(f"bitcast <8 x i32> {words} to <16 x i16>")
                    product = self._pairs(f, weight, pairs)
                    totals[token] = f.let(f"add <8 x i32> {totals[token]}, {product}")
        return totals

    def _pairs(self, f: FunctionText, left: str, right: str) -> str:
        return f.call(
            "<8 x i32>",
            "llvm.x86.avx2.pmadd.wd",
            f"<16 x i16> {left}",
            f"<16 x i16> {right}",
        )
