"""The matrix product: tiles of packed weights times blocks of int8 activations.

For each block of 32 the sum of products is an exact integer; it becomes a float32, is
scaled, and is added to the row's sum in the order of the blocks. So a row's result is
the same for any number of tokens, any number of threads and any processor that has
fused sums. A few tokens are multiplied while a tile is unpacked in registers; from
`UNPACK_FROM` on, a tile is unpacked once into a thread's scratch memory.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from codekv.model.runtime.native.dots import Activations, Halves
from codekv.model.runtime.native.ir import FunctionText
from codekv.model.runtime.native.tiles import TileReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codekv.model.runtime.native.formats import Format
    from codekv.model.runtime.native.target import KernelTarget
    from codekv.model.runtime.native.tiles import Scales, TileBlock

UNPACK_FROM = 12
"""From so many tokens on a tile is unpacked once: 8 tokens of Q5_0 ran at 49 of the
processor's billion products a second without and 44 with, 16 at 49 and 54."""

RECORD = 64
"""Bytes of a token's block: one line of the processor's cache."""

RECORD_SCALE, RECORD_MINIMUM, RECORD_HALVES = 32, 36, 40
"""Places in a record, after 32 signed bytes: the scale; the scale times the sum of the
bytes; the sums of the first and of the last 16 bytes in 16 bits each."""

RECORD_ZERO = {8: 48, 16: 52, 128: 56}
"""Places of minus the sum times a zero point, from where an integer sum starts."""

# Places in an operation's table of arguments, see `program.py`.
WEIGHTS, RECORDS, WIDE, OUT, STRIDE, TOKENS, BLOCKS, ROWS, SHARE, TILES, BIAS, ADD = (
    range(3, 15)
)


class ProductWriter:
    """Writes the functions of one format for one target."""

    def __init__(self, target: KernelTarget, form: Format) -> None:
        self._target = target
        self._form = form
        self._tiles = TileReader(target, form)
        self._lanes = target.lanes
        self._words = f"<{self._lanes} x i32>"
        self._floats = f"<{self._lanes} x float>"

    def functions(self) -> list[FunctionText]:
        """The operation `product_FORMAT` and what it calls."""
        inner = [
            self._multiply(count, unpacked=unpacked)
            for unpacked in (False, True)
            for count in self._target.groups
        ]
        return [*inner, self._tiles.unpack(), self._operation()]

    def _operation(self) -> FunctionText:
        name = self._form.name
        f = FunctionText(f"product_{name}", ["ptr %a", "i64 %chunk", "ptr %scratch"])
        share, tiles = f.slot("%a", SHARE), f.slot("%a", TILES)
        tokens, blocks = f.slot("%a", TOKENS), f.slot("%a", BLOCKS)
        first = f.let(f"mul i64 %chunk, {share}")
        last = f.smaller(f.let(f"add i64 {first}, {share}"), tiles)
        size = self._tiles.tile_bytes(f, blocks)
        scratch_size = f.let(f"mul i64 {blocks}, {self._tiles.scratch_block()}")
        weights = f.slot("%a", WEIGHTS, "ptr")
        few = f.let(f"icmp ult i64 {tokens}, {UNPACK_FROM}")
        many = f.let(f"xor i1 {few}, true")
        with f.when(few), f.loop(first, last) as tile:
            place = f.at(weights, f.let(f"mul i64 {tile.index}, {size}"))
            for group, token in self._groups(f, tokens):
                self._call(f, f"packed_{group}", place, token, tile.index)
        with f.when(many):
            with f.loop(first, last) as tile:
                place = f.at(weights, f.let(f"mul i64 {tile.index}, {size}"))
                number = f.let(f"sub i64 {tile.index}, {first}")
                into = f.at("%scratch", f.let(f"mul i64 {number}, {scratch_size}"))
                f.do(f"call void @unpack_{name}(ptr {place}, ptr {into}, i64 {blocks})")
            for group, token in self._groups(f, tokens):
                with f.loop(first, last) as tile:
                    number = f.let(f"sub i64 {tile.index}, {first}")
                    place = f.at("%scratch", f.let(f"mul i64 {number}, {scratch_size}"))
                    self._call(f, f"unpacked_{group}", place, token, tile.index)
        return f

    def _groups(self, f: FunctionText, tokens: str) -> Iterator[tuple[int, str]]:
        """Write loops over the tokens in groups; yields (size, first token)."""
        done = "0"
        for size in self._target.groups:
            whole = f.let(f"sub i64 {tokens}, {done}")
            whole = f.let(f"udiv i64 {whole}, {size}")
            stop = f.let(f"add i64 {done}, {f.let(f'mul i64 {whole}, {size}')}")
            with f.loop(done, stop, size) as group:
                yield size, group.index
            done = stop

    def _call(
        self, f: FunctionText, kind: str, place: str, token: str, tile: str
    ) -> None:
        f.do(
            f"call void @mul_{self._form.name}_{kind}"
            f"(ptr %a, ptr {place}, i64 {token}, i64 {tile})"
        )

    def _multiply(self, count: int, *, unpacked: bool) -> FunctionText:
        """`count` tokens times one tile, stored or added to the output."""
        kind = "unpacked" if unpacked else "packed"
        f = FunctionText(
            f"mul_{self._form.name}_{kind}_{count}",
            ["ptr %a", "ptr %tile", "i64 %token", "i64 %number"],
            internal=True,
        )
        f.do(f"%spill = alloca [{count} x {self._floats}], align 64")
        blocks = f.slot("%a", BLOCKS)
        row = f.let(f"mul i64 {blocks}, {RECORD}")
        first = f.let(f"mul i64 %token, {row}")
        records = [f.at(f.slot("%a", RECORDS, "ptr"), first)]
        wide = [f.at(f.slot("%a", WIDE, "ptr"), first)]
        for _ in range(count - 1):
            records.append(f.at(records[-1], row))
            wide.append(f.at(wide[-1], row))
        zero = (self._floats, "zeroinitializer")
        with f.loop("0", blocks, carried=[zero] * count) as loop:
            unpack = self._tiles.unpacked if unpacked else self._tiles.packed
            block = unpack(f, "%tile", loop.index)
            place = f.let(f"mul i64 {loop.index}, {RECORD}")
            tokens = [
                Activations(f.at(record, place), f.at(other, place))
                for record, other in zip(records, wide, strict=True)
            ]
            whole = self._whole(f, block, tokens)
            scales = block.scales()
            each = zip(whole, tokens, loop.values, strict=True)
            loop.carry([self._add_block(f, scales, *one) for one in each])
        self._finish(f, loop.values)
        return f

    def _add_block(
        self, f: FunctionText, scales: Scales, whole: str, x: Activations, total: str
    ) -> str:
        """Scale a token's integer sums and add them to its float32 sums."""
        lanes, kind = self._lanes, self._floats
        value = f.let(f"sitofp {self._words} {whole} to {kind}")
        factor = f.load("float", f.at(x.quads, str(RECORD_SCALE)))
        factor = f.splat(lanes, "float", factor)
        if scales.scale:
            factor = f.let(f"fmul {kind} {scales.scale}, {factor}")
        total = self._fused(f, value, factor, total)
        if scales.minimum:
            low = f.load("float", f.at(x.quads, str(RECORD_MINIMUM)))
            low = f.splat(lanes, "float", low)
            total = self._fused(f, scales.minimum, low, total)
        return total

    def _whole(
        self, f: FunctionText, block: TileBlock, tokens: Sequence[Activations]
    ) -> list[str]:
        """Each token's exact integer sums, the zero point taken off."""
        dot, bits, zero = self._target.dot, self._form.bits, self._form.zero
        if block.factors:
            sums = [f.at(x.quads, str(RECORD_HALVES)) for x in tokens]
            halves = Halves(block.factors, sums, zero)
            return dot.scaled_sums(f, block.quads, tokens, halves)
        has_zero = bool(dot.zero(zero, bits))

        def start(x: Activations) -> str:
            if not has_zero:
                return "zeroinitializer"
            word = f.load("i32", f.at(x.quads, str(RECORD_ZERO[zero])))
            return f.splat(self._lanes, "i32", word)

        starts = [partial(start, x) for x in tokens]
        return dot.sums(f, block.quads, bits, tokens, starts)

    def _fused(self, f: FunctionText, left: str, right: str, total: str) -> str:
        return fused(f, self._target, self._lanes, (left, right, total))

    def _finish(self, f: FunctionText, totals: Sequence[str]) -> None:
        """Scale by the row, add the bias, and store the rows that there are."""
        lanes, kind = self._lanes, self._floats
        row = f.let(f"mul i64 %number, {lanes}")
        values = list(totals)
        if self._form.scales == "row":
            # The scales stand before the tile's blocks; an unpacked tile lost them.
            blocks = f.slot("%a", BLOCKS)
            offset = f.let(f"mul i64 %number, {self._tiles.tile_bytes(f, blocks)}")
            scales = f.load(kind, f.at(f.slot("%a", WEIGHTS, "ptr"), offset))
            values = [f.let(f"fmul {kind} {value}, {scales}") for value in values]
        for token, value in enumerate(values):
            f.store(kind, value, f.at("%spill", str(token), kind))
        left = f.let(f"sub i64 {f.slot('%a', ROWS)}, {row}")
        count = f.smaller(left, str(lanes))
        stride, out = f.slot("%a", STRIDE), f.slot("%a", OUT, "ptr")
        bias = f.slot("%a", BIAS, "ptr")
        has_bias = f.let(f"icmp ne ptr {bias}, null")
        adds = f.let(f"icmp ne i64 {f.slot('%a', ADD)}, 0")
        whole = f.let(f"icmp eq i64 {count}, {lanes}")
        part = f.let(f"xor i1 {whole}, true")
        for token in range(len(values)):
            number = f.let(f"add i64 %token, {token}")
            start = f.let(f"add i64 {f.let(f'mul i64 {number}, {stride}')}, {row}")
            target = f.at(out, start, "float")
            spill = f.at("%spill", str(token), kind)
            with f.when(whole):
                self._shift(f, kind, spill, (has_bias, f.at(bias, row, "float")))
                self._give(f, kind, spill, target, adds)
            with f.when(part), f.loop("0", count) as lane:
                one = f.at(spill, lane.index, "float")
                to = f.at(target, lane.index, "float")
                place = f.let(f"add i64 {row}, {lane.index}")
                self._shift(f, "float", one, (has_bias, f.at(bias, place, "float")))
                self._give(f, "float", one, to, adds)

    def _shift(
        self, f: FunctionText, kind: str, spill: str, bias: tuple[str, str]
    ) -> None:
        with f.when(bias[0]):
            value, more = f.load(kind, spill), f.load(kind, bias[1])
            f.store(kind, f.let(f"fadd {kind} {value}, {more}"), spill)

    def _give(self, f: FunctionText, kind: str, spill: str, to: str, adds: str) -> None:
        with f.when(adds):
            value, before = f.load(kind, spill), f.load(kind, to)
            f.store(kind, f.let(f"fadd {kind} {before}, {value}"), spill)
        f.store(kind, f.load(kind, spill), to)


def fused(
    f: FunctionText, target: KernelTarget, lanes: int, values: tuple[str, str, str]
) -> str:
    """`left * right + total` for float32 vectors, in one rounding where possible."""
    left, right, total = values
    kind = f"<{lanes} x float>"
    if not target.has_fma:
        product = f.let(f"fmul {kind} {left}, {right}")
        return f.let(f"fadd {kind} {total}, {product}")
    return f.call(
        kind,
        f"llvm.fma.v{lanes}f32",
        *(f"{kind} {value}" for value in (left, right, total)),
    )
