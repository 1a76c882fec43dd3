"""Matrix products of a decoder: int8 with one scale per token, or plain dense.

Activations are rounded to signed 8 bits with one scale per token, so a token's
result does not depend on its neighbours in the call: one scale per call would make a
cached run differ from a fresh one. Which code multiplies the integers is decided in
`kernels.py`.

A scale per token commutes with a matrix product. So the root mean square of a norm,
which is one number per token, is never multiplied into the activations: it joins the
scale of the result, and a row is rounded from `x * weight` alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch
from torch.linalg import vector_norm
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor

    from codekv.model.runtime.kernels import Product


# From so many rows on, two vectorised reductions beat one over magnitudes.
_MANY_ROWS = 32


class Norm:
    """Root-mean-square norm: `x * weight / sqrt(mean(x^2) + eps)`."""

    def __init__(self, weight_E: Tensor, eps: float) -> None:
        size = weight_E.shape[0]
        self._weight_E = weight_E
        self._eps = eps
        # With the root of the size inside, the divisor is a plain vector norm.
        self.tall_E = weight_E * size**0.5
        self._floor = torch.tensor((size * eps) ** 0.5, device=weight_E.device)

    def __call__(self, x_TE: Tensor) -> Tensor:
        """The norm itself; a new tensor."""
        return functional.rms_norm(x_TE, x_TE.shape[-1:], self._weight_E, self._eps)

    def divisor(self, x_TE: Tensor) -> Tensor:
        """Positive [T, 1] with `norm(x) = x * tall / divisor`."""
        length_T1 = vector_norm(x_TE, 2.0, -1, True)
        return torch.hypot(length_T1, self._floor, out=length_T1)


class Linear(Protocol):
    """`y = x W^T + b` in the three places where a decoder needs it."""

    def project(self, x_TE: Tensor, norm: Norm) -> Tensor:
        """Product of `norm(x)`; a new float32 tensor [T, N]."""

    def gate(self, x_TE: Tensor, norm: Norm) -> tuple[Tensor, Tensor | None]:
        """For gate and up rows in one matrix: `silu(gate) * up` of `norm(x)`.

        Returns:
            [T, N / 2], divided by the second value [T, 1] unless that is None.
        """

    def add_to(self, x_TE: Tensor, h_TK: Tensor, factor_T1: Tensor | None) -> None:
        """Add the product of `h * factor` to `x` **in place**."""


class Int8Linear:
    """Integer product with one scale per output row and one per token."""

    def __init__(self, product: Product, bias_N: Tensor | None) -> None:
        self._product = product
        self._bias_N = bias_N

    def project(self, x_TE: Tensor, norm: Norm) -> Tensor:
        """See Linear."""
        raw_TN, scale_T1 = self._normed(x_TE, norm)
        raw_TN *= scale_T1
        return raw_TN if self._bias_N is None else raw_TN.add_(self._bias_N)

    def gate(self, x_TE: Tensor, norm: Norm) -> tuple[Tensor, Tensor | None]:
        """See Linear."""
        if self._bias_N is not None:
            gate_TM, up_TM = self.project(x_TE, norm).chunk(2, -1)
            return functional.silu(gate_TM).mul_(up_TM), None
        raw_TN, scale_T1 = self._normed(x_TE, norm)
        gate_TM, up_TM = raw_TN.chunk(2, -1)
        return functional.silu(gate_TM * scale_T1, inplace=True).mul_(up_TM), scale_T1

    def add_to(self, x_TE: Tensor, h_TK: Tensor, factor_T1: Tensor | None) -> None:
        """See Linear."""
        top_T1 = _top(h_TK)
        raw_TN = self._product(h_TK, top_T1.reciprocal())
        if factor_T1 is not None:
            top_T1 *= factor_T1
        # Not addcmul: with a broadcast factor it runs number by number.
        raw_TN *= top_T1
        x_TE += raw_TN
        if self._bias_N is not None:
            x_TE += self._bias_N

    def _normed(self, x_TE: Tensor, norm: Norm) -> tuple[Tensor, Tensor]:
        """Product of `norm(x)` up to the returned scale [T, 1]."""
        h_TE = x_TE * norm.tall_E
        top_T1 = _top(h_TE)
        raw_TN = self._product(h_TE, top_T1.reciprocal())
        return raw_TN, top_T1.div_(norm.divisor(x_TE))


class DenseLinear:
    """Plain product in the type the weights are held in."""

    def __init__(self, weight_NK: Tensor, bias_N: Tensor | None) -> None:
        self._weight_NK = weight_NK
        self._bias_N = None if bias_N is None else bias_N.to(weight_NK.dtype)

    def project(self, x_TE: Tensor, norm: Norm) -> Tensor:
        """See Linear."""
        return self._multiply(norm(x_TE)).to(torch.float32)

    def gate(self, x_TE: Tensor, norm: Norm) -> tuple[Tensor, Tensor | None]:
        """See Linear."""
        gate_TM, up_TM = self._multiply(norm(x_TE)).chunk(2, -1)
        return functional.silu(gate_TM).mul_(up_TM), None

    def add_to(self, x_TE: Tensor, h_TK: Tensor, factor_T1: Tensor | None) -> None:
        """See Linear."""
        x_TE += self._multiply(h_TK if factor_T1 is None else h_TK * factor_T1)

    def _multiply(self, x_TK: Tensor) -> Tensor:
        return functional.linear(
            x_TK.to(self._weight_NK.dtype), self._weight_NK, self._bias_N
        )


def _top(x_TK: Tensor) -> Tensor:
    """Largest magnitude of each row [T, 1]; the infinity norm, but vectorised."""
    if len(x_TK) < _MANY_ROWS:
        return x_TK.abs().amax(-1, True)
    # Two reductions read twice what one copy would write and read.
    return torch.maximum(x_TK.amax(-1, True), x_TK.amin(-1, True).neg_())
