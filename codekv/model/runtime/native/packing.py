"""From the bytes of a GGUF file to tiles, and back to numbers for tests.

`fields` takes a matrix's blocks apart into small unsigned integers and scales;
`pack` puts those into tiles. Dimension key: N rows, B blocks of 32 along a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from codekv.model.runtime.native.formats import BLOCK, FORMATS, QUADS, Format

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Halves = NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class Fields:
    """A matrix of one format, taken apart.

    Attributes:
        form: Its format.
        weights: Unsigned [N, B, 32].
        halves: float16 [N, G, 1 or 2] per group: scale, then minimum.
        integers: uint8 [N, B, 2], or none: scale and minimum of a block (K formats),
            or the two signed scales of Q6_K, as bytes.
        rows: float32 [N] scales of own int8 rows, or none.
    """

    form: Format
    weights: Bytes
    halves: Halves | None = None
    integers: Bytes | None = None
    rows: NDArray[np.float32] | None = None

    def dense(self) -> NDArray[np.float32]:
        """The weights as float32 [N, K]; what ggml's own conversion gives."""
        values = self.weights.astype(np.float32) - np.float32(self.form.zero)
        scale: Any
        low: Any = np.float32(0)
        if self.rows is not None:
            scale = self.rows[:, None, None]
        else:
            assert self.halves is not None
            halves = np.repeat(self.halves.astype(np.float32), self.form.group, axis=1)
            scale = halves[:, :, :1]
            if self.form.scales == "half_min":
                low = halves[:, :, 1:]
            if self.form.scales == "k_min":
                assert self.integers is not None
                small = self.integers.astype(np.float32)
                scale = scale * small[:, :, :1]
                low = -(halves[:, :, 1:] * small[:, :, 1:])
            if self.form.scales == "k_halves":
                assert self.integers is not None
                small = self.integers.view(np.int8).astype(np.float32)
                scale = scale * np.repeat(small, 16, axis=2)
        dense: NDArray[np.float32] = (values * scale + low).reshape(len(values), -1)
        return dense


def fields(kind: str, raw: Bytes) -> Fields:
    """Take the rows of a GGUF matrix apart.

    Args:
        kind: A key of `FORMATS` that a file can hold.
        raw: uint8 [N, bytes of a row].
    """
    form = FORMATS[kind]
    num_rows = raw.shape[0]
    blocks = raw.reshape(num_rows, -1, form.file_bytes)
    if form.file_block == BLOCK:
        return _plain(form, blocks)
    if kind == "Q6_K":
        return _six(form, blocks)
    halves = np.ascontiguousarray(blocks[:, :, :4]).view(np.float16)
    integers = _small(blocks[:, :, 4:16])
    low = _spread(blocks[:, :, -128:])
    if form.bits == 5:
        high = blocks[:, :, None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None]
        low |= (high & 1) << 4
    return Fields(form, low.reshape(num_rows, -1, BLOCK), halves, integers)


def rows_of_int8(rows: NDArray[np.int8], scale: NDArray[np.float32]) -> Fields:
    """Own int8 rows with one scale each; short rows are filled up with zeros."""
    num_rows, width = rows.shape
    padded = np.zeros((num_rows, -(-width // BLOCK) * BLOCK), np.int8)
    padded[:, :width] = rows
    weights = padded.view(np.uint8) ^ np.uint8(128)
    return Fields(
        FORMATS["I8"], weights.reshape(num_rows, -1, BLOCK), rows=scale.astype("f4")
    )


def pack(parts: Fields, lanes: int) -> Bytes:
    """Lay a matrix out in tiles of `lanes` rows; missing rows are zero.

    Returns:
        uint8 [tiles, bytes of a tile].
    """
    form = parts.form
    num_rows, num_blocks, _ = parts.weights.shape
    tiles = -(-num_rows // lanes)
    out = np.zeros((tiles, form.tile_bytes(lanes, num_blocks)), np.uint8)
    start = form.tile_bytes(lanes, 0)
    if parts.rows is not None:
        out[:, :start] = _by_tile(parts.rows[:, None], lanes)[:, 0].view(np.uint8)
    groups = num_blocks // form.group
    header = form.header_bytes(lanes)
    body = out[:, start:].reshape(tiles, groups, -1)
    if header:
        assert parts.halves is not None
        halves = _by_tile(parts.halves, lanes)  # tiles, groups, lanes, values
        halves = np.ascontiguousarray(halves.swapaxes(2, 3))
        body[:, :, :header] = halves.reshape(tiles, groups, -1).view(np.uint8)
    size = form.block_bytes(lanes)
    blocks = body[:, :, header:].reshape(tiles, groups, form.group, size)
    _put_blocks(blocks, parts, lanes)
    if not np.shares_memory(blocks, out):
        body[:, :, header:] = blocks.reshape(tiles, groups, -1)
    return out


def _put_blocks(out: Bytes, parts: Fields, lanes: int) -> None:
    """Write weights, further bits and scales [tiles, groups, blocks, bytes]."""
    form = parts.form
    shape = (*out.shape[:3], -1)
    quads = _by_tile(parts.weights.view(np.uint32), lanes)  # tiles, B, lanes, 8
    quads = np.ascontiguousarray(quads.swapaxes(2, 3)).view(np.uint8)
    place = 0

    def put(value: NDArray[Any]) -> None:
        nonlocal place
        flat = np.ascontiguousarray(value).view(np.uint8).reshape(shape)
        out[..., place : place + flat.shape[-1]] = flat
        place += flat.shape[-1]

    if form.bits == 8:
        put(quads)
    else:
        nibbles = quads & 15
        put(nibbles[:, :, :4] | nibbles[:, :, 4:] << 4)
    if form.bits == 5:
        shifts = np.arange(QUADS, dtype=np.uint8)[:, None]
        put(np.bitwise_or.reduce((quads >> 4) << shifts, axis=2))
    if form.bits == 6:
        shifts = (2 * np.arange(QUADS // 2, dtype=np.uint8))[:, None]
        for half in (quads[:, :, :4], quads[:, :, 4:]):
            put(np.bitwise_or.reduce((half >> 4) << shifts, axis=2))
    if parts.integers is not None:
        put(_by_tile(parts.integers, lanes).swapaxes(2, 3))
    elif parts.halves is not None:
        put(_by_tile(parts.halves, lanes).swapaxes(2, 3))


def _by_tile(values: NDArray[Any], lanes: int) -> NDArray[Any]:
    """[N, X, ...] becomes [tiles, X, lanes, ...], filled up with zeros."""
    rest = -len(values) % lanes
    if rest:
        padding = np.zeros((rest, *values.shape[1:]), values.dtype)
        values = np.concatenate([values, padding])
    tiled = values.reshape(-1, lanes, *values.shape[1:])
    return np.ascontiguousarray(tiled.swapaxes(1, 2))


def _plain(form: Format, blocks: Bytes) -> Fields:
    """Formats with 32 weights in a block: halves, further bits, nibbles or bytes."""
    num_rows, num_blocks, _ = blocks.shape
    count = 2 if form.scales == "half_min" else 1
    halves = np.ascontiguousarray(blocks[:, :, : 2 * count]).view(np.float16)
    if form.bits == 8:
        weights = blocks[:, :, 2:] ^ np.uint8(128)
        return Fields(form, np.ascontiguousarray(weights), halves)
    weights = np.empty((num_rows, num_blocks, BLOCK), np.uint8)
    weights[:, :, :16] = blocks[:, :, -16:] & 15
    weights[:, :, 16:] = blocks[:, :, -16:] >> 4
    if form.bits == 5:
        high = np.ascontiguousarray(blocks[:, :, 2 * count : 2 * count + 4])
        weights |= np.unpackbits(high, axis=2, bitorder="little") << 4
    return Fields(form, weights, halves)


def _six(form: Format, blocks: Bytes) -> Fields:
    """Q6_K: 128 bytes of nibbles, 64 of two bits, 16 signed scales, a half."""
    num_rows, num_groups, _ = blocks.shape
    low = blocks[:, :, :128].reshape(num_rows, num_groups, 2, 1, 64)
    shifts = np.array([0, 4], np.uint8)[:, None]
    weights: Bytes = ((low >> shifts) & 15).astype(np.uint8)
    weights = weights.reshape(num_rows, num_groups, 8, BLOCK)
    high = blocks[:, :, 128:192].reshape(num_rows, num_groups, 2, 1, BLOCK)
    shifts = np.array([0, 2, 4, 6], np.uint8)[:, None]
    bits = ((high >> shifts) & 3).reshape(num_rows, num_groups, 8, BLOCK)
    weights |= bits << 4
    scales = blocks[:, :, 192:208].reshape(num_rows, -1, 2)
    halves = np.ascontiguousarray(blocks[:, :, 208:]).view(np.float16)
    return Fields(form, weights.reshape(num_rows, -1, BLOCK), halves, scales)


def _spread(nibbles: Bytes) -> Bytes:
    """Four runs of 32 bytes: low halves are one block, high halves the next."""
    num_rows, num_groups, _ = nibbles.shape
    runs = nibbles.reshape(num_rows, num_groups, 4, 1, BLOCK)
    shifts = np.array([0, 4], np.uint8)[:, None]
    spread: Bytes = ((runs >> shifts) & 15).astype(np.uint8)
    return spread.reshape(num_rows, num_groups, 8, BLOCK)


def _small(packed: Bytes) -> Bytes:
    """Twelve bytes of a K format: eight scales and eight minima of six bits."""
    first, second, third = packed[..., :4], packed[..., 4:8], packed[..., 8:]
    scale = np.concatenate([first & 63, third & 15 | (first >> 2) & 48], axis=-1)
    low = np.concatenate([second & 63, third >> 4 | (second >> 2) & 48], axis=-1)
    both = np.stack([scale, low], axis=-1)
    return both.reshape(packed.shape[0], -1, 2)
