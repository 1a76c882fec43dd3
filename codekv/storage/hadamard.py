"""Rotation of heads by a Hadamard matrix: spreads a large channel over all.

It is its own inverse up to rounding, and needs a width that is a power of two.
Method: QuaRot, Ashkboos et al., 2024.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor


def can_rotate(dim: int) -> bool:
    """Whether a head of this width can be rotated."""
    return dim > 0 and dim & (dim - 1) == 0


def rotate_heads(matrix_TC: Tensor, dim: int) -> Tensor:
    """Rotate every run of `dim` columns; a new tensor. Twice gives the original."""
    num_rows = matrix_TC.shape[0]
    heads = matrix_TC.reshape(-1, dim) @ _hadamard(dim)
    return heads.view(num_rows, -1)


@cache
def _hadamard(dim: int) -> Tensor:
    matrix = torch.ones(1, 1)
    while matrix.shape[0] < dim:
        upper = torch.cat((matrix, matrix), dim=1)
        matrix = torch.cat((upper, torch.cat((matrix, -matrix), dim=1)))
    return matrix / dim**0.5
