"""Matrix products: int8 rows times per-token int8 activations, or plain dense.

Activations are rounded to signed 8 bits with one scale per token, so a token's
result does not depend on its neighbours in the call: one scale per call would make a
cached run differ from a fresh one. Which kernel multiplies the integers is decided by
`kernels.py`; all of them give the same integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor

    from codekv.model.kernels import Product

_TINY = 1e-20


class Linear(Protocol):
    """`y = x W^T + b` for rows of float32 or the device's half type."""

    def __call__(self, x_TK: Tensor) -> Tensor:
        """Multiply; the result [T, N] is new and may be overwritten."""


class Int8Linear:
    """Integer product with one scale per output row and one per token."""

    def __init__(self, product: Product, bias_N: Tensor | None) -> None:
        self._product = product
        self._bias_N = bias_N

    def __call__(self, x_TK: Tensor) -> Tensor:
        """Round, multiply, scale; float32 in and out."""
        scale_T1 = torch.linalg.vector_norm(x_TK, torch.inf, -1, keepdim=True)
        scale_T1.clamp_(min=_TINY).mul_(1.0 / 127.0)
        raw_TN = self._product(x_TK / scale_T1)
        if self._bias_N is None:
            return raw_TN.mul_(scale_T1)
        return torch.addcmul(self._bias_N, raw_TN, scale_T1)


class DenseLinear:
    """Plain product in the type the weights are held in."""

    def __init__(self, weight_NK: Tensor, bias_N: Tensor | None) -> None:
        self._weight_NK = weight_NK
        self._bias_N = None if bias_N is None else bias_N.to(weight_NK.dtype)

    def __call__(self, x_TK: Tensor) -> Tensor:
        """Multiply in the weights' type; float32 in and out."""
        x_TK = x_TK.to(self._weight_NK.dtype)
        y_TN = functional.linear(x_TK, self._weight_NK, self._bias_N)
        return y_TN.to(torch.float32)
