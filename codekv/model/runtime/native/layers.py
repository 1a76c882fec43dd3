"""A model's step as a program of operations, made once and filled in for each call.

What does not change from call to call (weights, buffers, functions) is written when the
model is loaded; `fill` writes the number of tokens, the chunks, and where keys and
values lie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from codekv.model.runtime.native import attention as att
from codekv.model.runtime.native import operations as ops
from codekv.model.runtime.native import product, program
from codekv.model.runtime.native.formats import BLOCK
from codekv.model.runtime.native.pool import aligned
from codekv.model.runtime.native.tiles import TileReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from codekv.model.runtime.architecture import Architecture
    from codekv.model.runtime.native.attention_shape import AttentionShape
    from codekv.model.runtime.native.kernels import Kernels
    from codekv.model.runtime.native.matrices import PackedMatrix

    Words = NDArray[np.int64]
    Floats = NDArray[np.float32]

MAX_TOKENS = 256
"""Tokens of one program; a longer prompt is several. At 256 the buffers of the middle
layer (10 MB at 0.5B) stay in the last cache, and unpacking a tile is long paid for."""

CHUNK_BYTES = 64 * 1024
"""Weights of one chunk in a small step: some 5 µs of the memory's time, so that a busy
core delays the others by no more."""

SCRATCH_BYTES = 320 * 1024
"""Unpacked weights of one chunk in a large step; they stay in the second cache."""

SILU_BLOCKS = 32
"""Blocks of the middle layer that one thread rounds at a time in a small step."""

_ORDER = (
    *("norm", "q", "k", "v", "rotate", "attend", "merge", "out"),
    *("mlp_norm", "gate", "up", "silu", "down", "end"),
)
PER_LAYER = len(_ORDER)
"""Operations of a layer; the last is empty and waits for the one before."""
_PLACE = {name: place for place, name in enumerate(_ORDER)}
ATTENTION_FROM = _PLACE["attend"]
"""Operations of a layer before its attention."""


@dataclass(frozen=True, slots=True, eq=False)
class Buffers:
    """Memory of a step: what one operation leaves for the next."""

    x: Floats
    qkv: Floats
    gate: Floats
    up: Floats
    records: NDArray[np.uint8]
    wide: NDArray[np.uint8]
    positions: Words
    slots: Words
    seen: Words

    @classmethod
    def of(cls, arch: Architecture) -> Buffers:
        """Allocate for `MAX_TOKENS` tokens."""
        width = arch.num_heads * arch.head_dim
        all_heads = (arch.num_heads + 2 * arch.num_kv_heads) * arch.head_dim
        widest = max(arch.hidden_size, arch.mlp_size, width) // BLOCK
        size = MAX_TOKENS * widest * product.RECORD

        def floats(columns: int) -> Floats:
            raw = aligned(4 * MAX_TOKENS * columns).view(np.float32)
            return raw.reshape(MAX_TOKENS, columns)

        return cls(
            floats(arch.hidden_size),
            floats(all_heads),
            floats(arch.mlp_size),
            floats(arch.mlp_size),
            aligned(size),
            aligned(size),
            np.zeros(MAX_TOKENS, np.int64),
            np.zeros(MAX_TOKENS, np.int64),
            np.zeros((MAX_TOKENS, att.SEEN_WORDS), np.int64),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Everything of a model that a step reads."""

    layers: list[dict[str, PackedMatrix]]
    head: PackedMatrix
    attention_norms: list[Floats]
    mlp_norms: list[Floats]
    last_norm: Floats


class LayersProgram:
    """Rows of operations for all layers and for the head."""

    def __init__(
        self,
        kernels: Kernels,
        arch: Architecture,
        shape: AttentionShape,
        weights: Weights,
        num_threads: int,
    ) -> None:
        self._kernels = kernels
        self._arch = arch
        self._shape = shape
        self._weights = weights
        self._num_threads = num_threads
        self.buffers = Buffers.of(arch)
        self._partial = aligned(0)
        rows = [self._layer(index) for index in range(arch.num_layers)]
        self.rows: Words = np.ascontiguousarray(np.concatenate(rows))
        self._head = self._head_rows()
        self._shares = {
            many: np.concatenate(
                [self._layer_shares(index, many=many) for index in range(len(rows))]
            )
            for many in (False, True)
        }
        place = np.arange(len(self.rows)) % PER_LAYER
        self._at = {
            name: np.flatnonzero(place == _PLACE[name])
            for name in ("rotate", "attend", "merge", "silu")
        }
        norms = (_PLACE["norm"], _PLACE["rotate"], _PLACE["merge"], _PLACE["mlp_norm"])
        self._by_token = np.flatnonzero(np.isin(place, norms))
        products = [_PLACE[name] for name in ("q", "k", "v", "out")]
        products += [_PLACE[name] for name in ("gate", "up", "down")]
        self._products = np.flatnonzero(np.isin(place, products))

    @property
    def num_bytes(self) -> int:
        """Bytes of all packed weights."""
        matrices = [m for layer in self._weights.layers for m in layer.values()]
        return sum(m.tiles.nbytes for m in [*matrices, self._weights.head])

    def fill(
        self,
        count: int,
        places: tuple[Sequence[int], Sequence[int]],
        head_stride: int,
        tables: Floats,
    ) -> None:
        """Write what a step of `count` tokens needs; `buffers` hold the rest.

        Args:
            count: Tokens, at most `MAX_TOKENS`.
            places: Per layer, the addresses of working keys and of values.
            head_stride: Floats from one head's keys to the next.
            tables: Cosines and sines by position [P, 2, D].
        """
        rows, at = self.rows, self._at
        many = count >= product.UNPACK_FROM
        share, chunks = self._shares[many].T
        rows[self._products, product.TOKENS] = count
        rows[self._products, product.SHARE] = share
        rows[self._products, program.CHUNKS] = chunks
        rows[self._by_token, program.CHUNKS] = count
        blocks = self._arch.mlp_size // BLOCK
        parts = 1 if many else -(-blocks // SILU_BLOCKS)
        rows[at["silu"], ops.S_PARTS] = parts
        rows[at["silu"], ops.S_SHARE] = -(-blocks // parts)
        rows[at["silu"], program.CHUNKS] = count * parts
        ranges = -(-int(self.buffers.seen[:count, 3].max()) // att.RANGE)
        pairs = count * self._arch.num_kv_heads
        needed = 4 * pairs * ranges * self._shape.group * self._shape.partial
        if self._partial.nbytes < needed:
            self._partial = aligned(needed)
        rows[at["attend"], program.CHUNKS] = pairs * ranges
        rows[at["attend"], att.A_RANGES] = ranges
        rows[at["merge"], att.M_RANGES] = ranges
        rows[at["attend"], att.A_PARTIAL] = self._partial.ctypes.data
        rows[at["merge"], att.M_PARTIAL] = self._partial.ctypes.data
        for name, keys, values, stride in (
            ("rotate", ops.R_KEYS, ops.R_VALUES, ops.R_HEAD),
            ("attend", att.A_KEYS, att.A_VALUES, att.A_HEAD),
        ):
            rows[at[name], keys], rows[at[name], values] = places
            rows[at[name], stride] = head_stride
        rows[at["rotate"], ops.R_TABLES] = tables.ctypes.data

    def head(self, first: int, count: int, out: int) -> Words:
        """The operations that turn tokens [first, first + count) into logits.

        Args:
            first: The first token's row.
            count: How many.
            out: Address of float32 [count, V].
        """
        rows = self._head
        share, chunks = self._share(
            self._weights.head, many=count >= product.UNPACK_FROM
        )
        rows[0, program.CHUNKS] = count
        rows[0, ops.X] = self.buffers.x[first:].ctypes.data
        rows[1, product.TOKENS] = count
        rows[1, product.SHARE], rows[1, program.CHUNKS] = share, chunks
        rows[1, product.OUT] = out
        return rows

    def _head_rows(self) -> Words:
        width = self._arch.vocab_size
        norm = self._norm(self._weights.last_norm, 0)
        multiply = self._product(self._weights.head, 0, width, waits=1)
        return np.stack([norm, multiply, self._kernels.operation("", 0, 1)])

    def _norm(self, weight: Floats, waits: int) -> Words:
        b = self.buffers
        arguments = (
            b.x.ctypes.data,
            self._arch.hidden_size,
            self._arch.hidden_size // BLOCK,
            weight.ctypes.data,
            b.records.ctypes.data,
            b.wide.ctypes.data,
        )
        return self._kernels.operation("norm", 0, waits, *arguments)

    def _product(
        self,
        matrix: PackedMatrix,
        out: int,
        stride: int,
        *,
        waits: int,
        adds: bool = False,
    ) -> Words:
        b = self.buffers
        arguments = (
            matrix.tiles.ctypes.data,
            b.records.ctypes.data,
            b.wide.ctypes.data,
            out,
            stride,
            0,
            matrix.blocks,
            matrix.rows,
            1,
            len(matrix.tiles),
            0 if matrix.bias is None else matrix.bias.ctypes.data,
            int(adds),
        )
        name = f"product_{matrix.form.name}"
        return self._kernels.operation(name, 0, waits, *arguments)

    def _layer(self, index: int) -> Words:
        arch, b, kernels = self._arch, self.buffers, self._kernels
        matrices = self._weights.layers[index]
        qkv, width = b.qkv.ctypes.data, b.qkv.shape[1]
        keys_from = arch.num_heads * arch.head_dim
        values_from = keys_from + arch.num_kv_heads * arch.head_dim
        records, wide = b.records.ctypes.data, b.wide.ctypes.data
        seen = b.seen.ctypes.data
        x, hidden, middle = b.x.ctypes.data, arch.hidden_size, arch.mlp_size
        gate, up = b.gate.ctypes.data, b.up.ctypes.data
        places = (b.positions.ctypes.data, b.slots.ctypes.data)
        silu = (gate, up, middle, middle // BLOCK, records, wide, 1, 1)

        def multiply(name: str, out: int, stride: int, waits: int) -> Words:
            adds = name in ("out", "down")
            return self._product(matrices[name], out, stride, waits=waits, adds=adds)

        return np.stack(
            [
                self._norm(self._weights.attention_norms[index], 0),
                multiply("q", qkv, width, 1),
                multiply("k", qkv + 4 * keys_from, width, 0),
                multiply("v", qkv + 4 * values_from, width, 0),
                kernels.operation("rotate", 0, 3, qkv, width, 0, *places),
                kernels.operation("attend", 0, 1, qkv, width, 0, 0, 0, 0, seen, 0),
                kernels.operation("merge", 0, 1, 0, 0, seen, records, wide),
                multiply("out", x, hidden, 1),
                self._norm(self._weights.mlp_norms[index], 1),
                multiply("gate", gate, middle, 1),
                multiply("up", up, middle, 0),
                kernels.operation("silu", 0, 2, *silu),
                multiply("down", x, hidden, 1),
                kernels.operation("", 0, 1),
            ]
        )

    def _layer_shares(self, index: int, *, many: bool) -> Words:
        matrices = self._weights.layers[index]
        names = ("q", "k", "v", "out", "gate", "up", "down")
        return np.array([self._share(matrices[name], many=many) for name in names])

    def _share(self, matrix: PackedMatrix, *, many: bool) -> tuple[int, int]:
        """Tiles of one chunk, and chunks."""
        tiles, size = matrix.tiles.shape
        share = CHUNK_BYTES // size
        if many:
            reader = TileReader(self._kernels.target, matrix.form)
            # Several chunks for each thread, so that none waits long for another.
            share = SCRATCH_BYTES // reader.scratch_bytes(matrix.blocks)
            share = min(share, tiles // (4 * self._num_threads))
        share = max(1, share)
        return share, -(-tiles // share)

    def scratch_bytes(self) -> int:
        """Scratch memory that one thread needs."""
        widest = self._arch.num_heads * self._arch.head_dim * 4
        matrices = [m for layer in self._weights.layers for m in layer.values()]
        sizes = [
            TileReader(self._kernels.target, m.form).scratch_bytes(m.blocks)
            for m in [*matrices, self._weights.head]
        ]
        return max(SCRATCH_BYTES, widest, *sizes) + 4096
