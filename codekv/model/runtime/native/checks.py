"""Whether the operations between the products are right on this processor.

Each is run on random numbers of the model's own head sizes and compared with numpy.
`kernels` checks the products and leaves out what is wrong here too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from codekv.model.runtime.native import attention, product
from codekv.model.runtime.native.formats import BLOCK
from codekv.model.runtime.native.pool import Pool, aligned

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from codekv.model.runtime.native.attention_shape import AttentionShape
    from codekv.model.runtime.native.kernels import Kernels

    Floats = NDArray[np.float32]

_SLOTS = attention.RANGE + attention.PART + 3
"""Two ranges, the second of an incomplete part behind a whole one."""

_BLOCKS = 3
"""Of a row that is normed: one more than what a loop might do by twos."""

_ROUNDING = 0.52 / 127
"""Half a step of an int8 block, as a share of its largest number, and some slack."""

_TOLERANCE = 1e-5
"""Of the largest number; float32 sums of at most a few hundred numbers."""


def operations_are_right(kernels: Kernels, shape: AttentionShape) -> bool:
    """Compare every operation with its slow twin in numpy; takes milliseconds."""
    pool = Pool(kernels.code, 1, 4 * shape.heads * shape.head_dim + 4096)
    try:
        checks = (_norm_is_right, _silu_is_right, _attention_is_right)
        return all(check(kernels, pool, shape) for check in checks)
    finally:
        pool.close()


class Records:
    """Where operations leave rounded tokens, and what those are as numbers."""

    def __init__(self, count: int, blocks: int) -> None:
        """Make room for so many tokens of so many blocks."""
        self._shape = count, blocks, product.RECORD
        self._records = aligned(count * blocks * product.RECORD)
        self._wide = aligned(count * blocks * product.RECORD)
        self.addresses = self._records.ctypes.data, self._wide.ctypes.data

    def holds(self, expected: Floats) -> bool:
        """Whether the records are these numbers [T, K], rounded per block."""
        records = self._records.reshape(self._shape)
        place = product.RECORD_SCALE
        scale = np.ascontiguousarray(records[..., place : place + 4]).view(np.float32)
        found = np.ascontiguousarray(records[..., :BLOCK]).view(np.int8) * scale
        blocks = expected.reshape(found.shape)
        top = np.abs(blocks).max(-1, keepdims=True)
        slack = _ROUNDING * top + _TOLERANCE * np.abs(expected).max()
        return bool((np.abs(found - blocks) <= slack).all())


def _norm_is_right(kernels: Kernels, pool: Pool, shape: AttentionShape) -> bool:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, _BLOCKS * BLOCK)).astype(np.float32)
    weight = rng.standard_normal(_BLOCKS * BLOCK).astype(np.float32)
    records = Records(len(x), _BLOCKS)
    given = x.ctypes.data, x.shape[1], _BLOCKS, weight.ctypes.data
    _run(kernels, pool, ("norm", len(x), *given, *records.addresses))
    root = np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(shape.eps))
    return records.holds((x / root * weight).astype(np.float32))


def _silu_is_right(kernels: Kernels, pool: Pool, shape: AttentionShape) -> bool:
    del shape
    rng = np.random.default_rng(4)
    gate = 30 * rng.standard_normal((2, _BLOCKS * BLOCK)).astype(np.float32)
    up = rng.standard_normal(gate.shape).astype(np.float32)
    records = Records(len(gate), _BLOCKS)
    given = gate.ctypes.data, up.ctypes.data, gate.shape[1], _BLOCKS
    parts, share = 2, 2
    row = ("silu", len(gate) * parts, *given, *records.addresses, parts, share)
    _run(kernels, pool, row)
    wide = gate.astype(np.float64)
    return records.holds((wide / (1 + np.exp(-wide)) * up).astype(np.float32))


def _attention_is_right(kernels: Kernels, pool: Pool, shape: AttentionShape) -> bool:
    """One token after `_SLOTS - 1` others, and one that also sees a scattered slot."""
    rng = np.random.default_rng(5)
    heads, kv_heads, dim = shape.heads, shape.kv_heads, shape.head_dim
    width = heads + 2 * kv_heads
    x = rng.standard_normal((2, width, dim)).astype(np.float32)
    before = x.copy()
    keys = rng.standard_normal((kv_heads, _SLOTS + 2, dim)).astype(np.float32)
    values = rng.standard_normal(keys.shape).astype(np.float32)
    expected_keys, expected_values = keys.copy(), values.copy()
    angles = rng.standard_normal((_SLOTS + 2, dim // 2)).astype(np.float32)
    cos, sin = (np.repeat(each, 2, axis=1) for each in (np.cos(angles), np.sin(angles)))
    sin[:, 0::2] *= -1
    tables = np.ascontiguousarray(np.stack([cos, sin], axis=1), np.float32)
    positions = np.array([_SLOTS - 1, _SLOTS - 1], np.int64)
    slots = np.array([_SLOTS - 1, _SLOTS + 1], np.int64)
    listed = slots[1:].copy()
    straight = np.array([_SLOTS, _SLOTS - 1], np.int64)
    seen = np.zeros((2, attention.SEEN_WORDS), np.int64)
    seen[:, 0], seen[:, 2], seen[:, 3] = straight, listed.ctypes.data, _SLOTS
    ranges = -(-_SLOTS // attention.RANGE)
    partial = aligned(4 * 2 * kv_heads * ranges * shape.group * shape.partial)
    records = Records(2, heads * dim // BLOCK)
    at = keys.ctypes.data, values.ctypes.data, keys.shape[1] * dim
    qkv = x.ctypes.data, width * dim
    places = positions.ctypes.data, slots.ctypes.data
    turn = ("rotate", 2, *qkv, tables.ctypes.data, *places, *at)
    chunks = 2 * kv_heads * ranges
    attend = (
        "attend",
        chunks,
        *qkv,
        ranges,
        *at,
        seen.ctypes.data,
        partial.ctypes.data,
    )
    merge = ("merge", 2, partial.ctypes.data, ranges, seen.ctypes.data)
    _run(kernels, pool, turn, attend, (*merge, *records.addresses))
    pairs = before.reshape(2, width, dim // 2, 2)[..., ::-1].reshape(before.shape)
    turned = before * cos[positions][:, None] + pairs * sin[positions][:, None]
    expected_keys[:, slots] = turned[:, heads:-kv_heads].swapaxes(0, 1)
    expected_values[:, slots] = before[:, -kv_heads:].swapaxes(0, 1)
    near = np.allclose(keys, expected_keys, atol=_TOLERANCE)
    if not near or not np.array_equal(values, expected_values):
        return False
    lists = [np.arange(_SLOTS), np.append(np.arange(_SLOTS - 1), _SLOTS + 1)]
    sums = [
        _attended(turned[token, :heads], keys[:, own], values[:, own], shape.group)
        for token, own in enumerate(lists)
    ]
    return records.holds(np.stack(sums))


def _attended(query: Floats, keys: Floats, values: Floats, group: int) -> Floats:
    """Attention of one token [H, D] over keys and values [K, S, D]; [H * D]."""
    keys, values = (each.repeat(group, axis=0) for each in (keys, values))
    scores = np.einsum("hd,hsd->hs", query, keys) / np.float32(query.shape[1] ** 0.5)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    mean: Floats = np.einsum("hs,hsd->hd", weights, values)
    return mean.reshape(-1)


def _run(kernels: Kernels, pool: Pool, *steps: tuple[str | int, ...]) -> None:
    """Run operations (name, chunks, arguments) one after another."""
    rows = [
        kernels.operation(str(name), int(chunks), int(number > 0), *map(int, arguments))
        for number, (name, chunks, *arguments) in enumerate(steps)
    ]
    pool.run(np.stack([*rows, kernels.operation("", 0, 1)]), 0, len(rows) + 1)
