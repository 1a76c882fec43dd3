"""Which code multiplies int8 matrices on this processor."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Protocol

import torch

if TYPE_CHECKING:
    from torch import Tensor


class Product(Protocol):
    """Rows that lie in [-127, 127] times a packed int8 matrix.

    The rows are rounded to integers (half to even) first; the result is exact up to
    float32 rounding and includes the matrix's row scales.
    """

    def __call__(self, rows_TK: Tensor) -> Tensor:
        """Multiply; rows may be overwritten, the result [T, N] is new."""


class Fbgemm:
    """FBGEMM's unsigned by signed kernel: activations are shifted by 128."""

    def __init__(self, rows_NK: Tensor, scale_N: Tensor) -> None:
        zeros = torch.zeros(rows_NK.shape[0], dtype=torch.long)
        engine = torch.backends.quantized.engine
        torch.backends.quantized.engine = "fbgemm"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            quantised = torch._make_per_channel_quantized_tensor(
                rows_NK, scale_N.to(torch.float64), zeros, 0
            )
            self._packed = torch.ops.quantized.linear_prepack(quantised, None)
        torch.backends.quantized.engine = engine
        self._multiply: Any = (
            torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32.default
        )

    def __call__(self, rows_TK: Tensor) -> Tensor:
        """Multiply; see Product."""
        product: Tensor = self._multiply(rows_TK, 1.0, 128, self._packed)
        return product
