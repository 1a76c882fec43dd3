"""Reading a tile in code: packed, or unpacked into scratch memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from codekv.model.runtime.native.formats import QUADS
from codekv.model.runtime.native.ir import FunctionText, floats

if TYPE_CHECKING:
    from collections.abc import Callable

    from codekv.model.runtime.native.formats import Format
    from codekv.model.runtime.native.target import KernelTarget


@dataclass(frozen=True, slots=True)
class Scales:
    """A block's scales as values of the code.

    Attributes:
        scale: float32 per row; empty where a row has one scale.
        minimum: float32 per row, to be multiplied by the activations' sum; or empty.
    """

    scale: str = ""
    minimum: str = ""


@dataclass(frozen=True, slots=True)
class TileBlock:
    """A block of a tile, to be unpacked piece by piece.

    Attributes:
        quads: For each quad, what writes its unpacking to unsigned bytes.
        factors: Integer scales of the two halves, as `Dot.factors` makes them.
        scales: Writes the unpacking of the scales.
    """

    quads: tuple[Callable[[], str], ...]
    factors: tuple[str, ...]
    scales: Callable[[], Scales]


class TileReader:
    """Writes the code that takes the tiles of one format apart."""

    def __init__(self, target: KernelTarget, form: Format) -> None:
        self._target = target
        self._form = form
        self._lanes = target.lanes
        self._bytes = f"<{4 * self._lanes} x i8>"
        self._words = f"<{self._lanes} x i32>"
        self._floats = f"<{self._lanes} x float>"

    def scratch_bytes(self, num_blocks: int) -> int:
        """Scratch memory for one unpacked tile."""
        return num_blocks * self.scratch_block()

    def scratch_block(self) -> int:
        """Bytes of one block in scratch memory."""
        halves = 1 + self._target.dot.num_factors
        kept = {"half": 1, "half_min": 2, "k_min": 2, "k_halves": halves, "row": 0}
        return 4 * self._lanes * (QUADS + kept[self._form.scales])

    def tile_bytes(self, f: FunctionText, blocks: str) -> str:
        """Bytes of a packed tile of `blocks` (i64) blocks."""
        form, lanes = self._form, self._lanes
        size = f.let(f"mul i64 {blocks}, {form.block_bytes(lanes)}")
        groups = f.let(f"udiv i64 {blocks}, {form.group}")
        headers = f.let(f"mul i64 {groups}, {form.header_bytes(lanes)}")
        size = f.let(f"add i64 {size}, {headers}")
        return f.let(f"add i64 {size}, {form.tile_bytes(lanes, 0)}")

    def unpack(self) -> FunctionText:
        """The function `unpack_FORMAT`: a packed tile goes to scratch memory."""
        f = FunctionText(
            f"unpack_{self._form.name}",
            ["ptr %tile", "ptr %into", "i64 %blocks"],
            internal=True,
        )
        with f.loop("0", "%blocks") as loop:
            block = self.packed(f, "%tile", loop.index)
            size = self.scratch_block()
            into = f.at("%into", f.let(f"mul i64 {loop.index}, {size}"))
            scales = block.scales()
            values = [(self._bytes, unpack()) for unpack in block.quads]
            kept = [value for value in (scales.scale, scales.minimum) if value]
            values += [(self._floats, value) for value in kept]
            values += [(self._words, value) for value in block.factors]
            for place, (kind, value) in enumerate(values):
                f.store(kind, value, f.at(into, str(4 * self._lanes * place)))
        return f

    def unpacked(self, f: FunctionText, scratch: str, index: str) -> TileBlock:
        """Read block `index` of a tile in scratch memory."""
        size = self.scratch_block()
        base = f.at(scratch, f.let(f"mul i64 {index}, {size}"))

        def get(place: int, kind: str) -> str:
            return f.load(kind, f.at(base, str(4 * self._lanes * place)))

        quads = tuple(partial(get, place, self._bytes) for place in range(QUADS))
        factors: tuple[str, ...] = ()
        if self._form.scales == "k_halves":
            count = self._target.dot.num_factors
            factors = tuple(get(9 + place, self._words) for place in range(count))

        def scales() -> Scales:
            match self._form.scales:
                case "row":
                    return Scales()
                case "half" | "k_halves":
                    return Scales(get(8, self._floats))
                case "half_min" | "k_min":
                    return Scales(get(8, self._floats), get(9, self._floats))

        return TileBlock(quads, factors, scales)

    def packed(self, f: FunctionText, tile: str, index: str) -> TileBlock:
        """Unpack block `index` of a packed tile."""
        form, lanes = self._form, self._lanes
        block_bytes, header = form.block_bytes(lanes), form.header_bytes(lanes)
        base = f.at(tile, str(form.tile_bytes(lanes, 0)))
        if form.group == 1:
            group, block = "", f.at(base, f.let(f"mul i64 {index}, {block_bytes}"))
        else:
            number = f.let(f"udiv i64 {index}, {form.group}")
            inside = f.let(f"urem i64 {index}, {form.group}")
            size = header + form.group * block_bytes
            group = f.at(base, f.let(f"mul i64 {number}, {size}"))
            offset = f.let(f"mul i64 {inside}, {block_bytes}")
            block = f.at(f.at(group, str(header)), offset)
        quads = tuple(partial(self._quad, f, block, quad) for quad in range(QUADS))
        own = f.at(block, str(lanes * 4 * form.bits))
        factors: tuple[str, ...] = ()
        if form.scales == "k_halves":
            first, last = (
                self._integers(f, f.at(own, str(lanes * part)), "sext")
                for part in range(2)
            )
            factors = tuple(self._target.dot.factors(f, first, last))

        def scales() -> Scales:
            match form.scales:
                case "row":
                    return Scales()
                case "half":
                    return Scales(self._half(f, own))
                case "half_min":
                    low = self._half(f, f.at(own, str(2 * lanes)))
                    return Scales(self._half(f, own), low)
                case "k_min":
                    scale = self._scaled(f, group, own)
                    second = f.at(group, str(2 * lanes))
                    low = self._scaled(f, second, f.at(own, str(lanes)))
                    return Scales(scale, f.let(f"fneg {self._floats} {low}"))
                case "k_halves":
                    return Scales(self._half(f, group))

        return TileBlock(quads, factors, scales)

    def _quad(self, f: FunctionText, block: str, quad: int) -> str:
        """Unpack one quad of a packed block to unsigned bytes."""
        size, words, bits = 4 * self._lanes, self._words, self._form.bits

        def vector(place: int) -> str:
            return f.load(words, f.at(block, str(size * place)))

        if bits == 8:
            value = vector(quad)
        else:
            value = vector(quad % 4)
            if quad >= 4:
                value = f.let(f"lshr {words} {value}, splat (i32 4)")
            value = f.let(f"and {words} {value}, splat (i32 {0x0F0F0F0F})")
        if bits in (5, 6):
            width = bits - 4
            per_vector = QUADS // width
            high = vector(4 + quad // per_vector)
            # The quad's bits move to places 4 and up of each byte.
            shift = 4 - width * (quad % per_vector)
            if shift > 0:
                high = f.let(f"shl {words} {high}, splat (i32 {shift})")
            if shift < 0:
                high = f.let(f"lshr {words} {high}, splat (i32 {-shift})")
            mask = f"splat (i32 {0x10101010 * (2**width - 1)})"
            high = f.let(f"and {words} {high}, {mask}")
            value = f.let(f"or {words} {value}, {high}")
        return f.let(f"bitcast {words} {value} to {self._bytes}")

    def _half(self, f: FunctionText, place: str) -> str:
        lanes = self._lanes
        if self._target.has_half:
            halves = f.load(f"<{lanes} x half>", place)
            return f.let(f"fpext <{lanes} x half> {halves} to {self._floats}")
        raw = f.load(f"<{lanes} x i16>", place)
        wide = f.let(f"zext <{lanes} x i16> {raw} to {self._words}")
        sign = f.let(f"and {self._words} {wide}, splat (i32 32768)")
        sign = f.let(f"shl {self._words} {sign}, splat (i32 16)")
        size = f.let(f"and {self._words} {wide}, splat (i32 32767)")
        size = f.let(f"shl {self._words} {size}, splat (i32 13)")
        # The exponent's bias is 15 there and 127 here; exact, also for subnormals.
        value = f.let(f"bitcast {self._words} {size} to {self._floats}")
        factor = f"splat (float {floats(2.0**112)})"
        value = f.let(f"fmul {self._floats} {value}, {factor}")
        bits = f.let(f"bitcast {self._floats} {value} to {self._words}")
        bits = f.let(f"or {self._words} {bits}, {sign}")
        return f.let(f"bitcast {self._words} {bits} to {self._floats}")

    def _integers(self, f: FunctionText, place: str, how: str) -> str:
        raw = f.load(f"<{self._lanes} x i8>", place)
        return f.let(f"{how} <{self._lanes} x i8> {raw} to {self._words}")

    def _scaled(self, f: FunctionText, half: str, integers: str) -> str:
        """A half per group times an unsigned byte per block; exact in float32."""
        whole = self._integers(f, integers, "zext")
        value = f.let(f"uitofp {self._words} {whole} to {self._floats}")
        return f.let(f"fmul {self._floats} {self._half(f, half)}, {value}")
