"""Codes of 2 to 8 bits, packed into whole bytes.

A width is a sum of powers of two, and every power is a plane of its own: 5 bits are a
plane of 4 and a plane of 1. Within a plane, byte i holds elements i, i + n, i + 2n …,
so that packing and unpacking are a few operations over long contiguous runs.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

MULTIPLE = 8
"""Numbers of elements are rounded up to this, so that no plane ends inside a byte."""

_PLANES = {8: (8,), 7: (4, 2, 1), 6: (4, 2), 5: (4, 1), 4: (4,), 3: (2, 1), 2: (2,)}


def padded(num_elements: int) -> int:
    """Round up to a number that packs into whole bytes."""
    return -(-num_elements // MULTIPLE) * MULTIPLE


def packed_bytes(num_elements: int, width: int) -> int:
    """Bytes that `padded(num_elements)` codes take."""
    return padded(num_elements) * width // 8


def pack(codes: Tensor, width: int) -> Tensor:
    """Pack codes below 2**width.

    Args:
        codes: uint8 [n], n a multiple of `MULTIPLE`; not mutated.
        width: Bits per code, 2 to 8.

    Returns:
        uint8 [n * width / 8].
    """
    if width == 8:
        return codes
    planes, low = [], 0
    for plane in _PLANES[width]:
        part = codes if low == 0 else codes >> low
        planes.append(_fold(part, plane))
        low += plane
    return planes[0] if len(planes) == 1 else torch.cat(planes)


def unpack(packed: Tensor, num_elements: int, width: int) -> Tensor:
    """Undo `pack`; the result may be a view of `packed`.

    Args:
        packed: uint8 [num_elements * width / 8].
        num_elements: A multiple of `MULTIPLE`.
        width: Bits per code, 2 to 8.

    Returns:
        uint8 [num_elements].
    """
    if width == 8:
        return packed
    codes: Tensor | None = None
    start, low = 0, 0
    for plane in _PLANES[width]:
        stop = start + num_elements * plane // 8
        part = _unfold(packed[start:stop], plane)
        codes = part if codes is None else codes.bitwise_or_(part << low)
        start, low = stop, low + plane
    assert codes is not None
    return codes


def _fold(codes: Tensor, plane: int) -> Tensor:
    folds = codes.view(8 // plane, -1)
    packed = folds[0] & _mask(plane)
    for i in range(1, folds.shape[0]):
        # The left shift drops the bits that belong to higher planes at the top only.
        packed |= (folds[i] & _mask(plane)) << (i * plane)
    return packed


def _unfold(packed: Tensor, plane: int) -> Tensor:
    spread = packed[None] >> _shifts(plane)
    return spread.bitwise_and_(_mask(plane)).view(-1)


def _mask(plane: int) -> int:
    return (1 << plane) - 1


@cache
def _shifts(plane: int) -> Tensor:
    return torch.arange(0, 8, plane, dtype=torch.uint8)[:, None]
