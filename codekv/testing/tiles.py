"""Tiles of packed weights, read back number by number: the slow twin of packing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from codekv.model.runtime.native.formats import BLOCK, Format
from codekv.model.runtime.native.packing import Fields

if TYPE_CHECKING:
    from numpy.typing import NDArray


def unpack(
    tiles: NDArray[np.uint8], form: Format, lanes: int, num_blocks: int
) -> Fields:
    """Read every weight and scale of a packed matrix, padding rows included."""
    rows = len(tiles) * lanes
    weights = np.zeros((rows, num_blocks, BLOCK), np.uint8)
    per_block = form.scales in ("half", "half_min")
    count = 1 if form.scales in ("half", "k_halves") else 2
    halves = np.zeros((rows, num_blocks // form.group, count), np.float16)
    integers = np.zeros((rows, num_blocks, 2), np.uint8)
    scales = np.zeros(rows, np.float32)
    start = form.tile_bytes(lanes, 0)
    group_bytes = form.header_bytes(lanes) + form.group * form.block_bytes(lanes)
    for row in range(rows):
        tile, lane = tiles[row // lanes], row % lanes
        if form.scales == "row":
            scales[row] = tile[:start].view(np.float32)[lane]
        for block in range(num_blocks):
            group, inside = divmod(block, form.group)
            header = tile[start + group * group_bytes :]
            body = header[form.header_bytes(lanes) + inside * form.block_bytes(lanes) :]
            weights[row, block] = _weights(body, form, lanes, lane)
            own = body[lanes * 4 * form.bits :]
            source = own if per_block else header
            if form.scales != "row":
                for value in range(count):
                    place = 2 * (value * lanes + lane)
                    half = source[place : place + 2].view(np.float16)[0]
                    halves[row, group, value] = half
            if form.scales in ("k_min", "k_halves"):
                integers[row, block] = own[lane], own[lanes + lane]
    if form.scales == "row":
        return Fields(form, weights, rows=scales)
    return Fields(form, weights, halves, None if per_block else integers)


def _weights(
    body: NDArray[np.uint8], form: Format, lanes: int, lane: int
) -> NDArray[np.uint8]:
    """The 32 weights of one row's block."""
    size = 4 * lanes
    out = np.zeros(BLOCK, np.uint8)
    for weight in range(BLOCK):
        quad, place = divmod(weight, 4)
        byte = 4 * lane + place
        if form.bits == 8:
            out[weight] = body[quad * size + byte]
            continue
        value = int(body[quad % 4 * size + byte]) >> 4 * (quad // 4) & 15
        if form.bits == 5:
            value |= (int(body[4 * size + byte]) >> quad & 1) << 4
        if form.bits == 6:
            vector = int(body[(4 + quad // 4) * size + byte])
            value |= (vector >> 2 * (quad % 4) & 3) << 4
        out[weight] = value
    return out
