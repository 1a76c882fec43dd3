"""A Llama-like checkpoint as fused layers.

Query, key and value rows become one matrix, gate and up another. Query and key rows
are re-ordered so that the two numbers a rotation mixes are neighbours: a rotation is
then one complex product, and attention scores do not change. Knows the tensor names
that transformers writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from codekv.model.runtime.architecture import Architecture
    from codekv.model.runtime.weights import WeightsFile

W = TypeVar("W")
N = TypeVar("N")
MATRICES = ("qkv", "out", "gate_up", "down")


@dataclass(frozen=True, slots=True)
class Layer(Generic[W, N]):
    """One decoder layer; `W` is how its matrices are held, `N` its norms."""

    qkv: W
    out: W
    gate_up: W
    down: W
    attention_norm: N
    mlp_norm: N


@dataclass(frozen=True, slots=True)
class Dense:
    """A matrix [N, K] as stored, and its bias [N] in float32 if it has one."""

    weight: Tensor
    bias: Tensor | None


def neighbours(rows: Tensor, head_dim: int) -> Tensor:
    """Re-order rows of each head from halves (i, i + D/2) to pairs (2i, 2i + 1)."""
    heads = rows.view(-1, 2, head_dim // 2, *rows.shape[1:])
    return heads.transpose(1, 2).reshape(rows.shape)


def read_layer(
    file: WeightsFile, arch: Architecture, index: int
) -> Layer[Dense, Tensor]:
    """Read and fuse one layer."""
    base = f"model.layers.{index}."

    def turn(rows: Tensor) -> Tensor:
        return neighbours(rows, arch.head_dim)

    def norm(name: str) -> Tensor:
        return file.read(f"{base}{name}.weight").to(torch.float32)

    attention = base + "self_attn."
    return Layer(
        qkv=_fuse(
            file,
            [attention + "q_proj", attention + "k_proj", attention + "v_proj"],
            [turn, turn, None],
        ),
        out=_fuse(file, [attention + "o_proj"], [None]),
        gate_up=_fuse(file, [base + "mlp.gate_proj", base + "mlp.up_proj"], [None] * 2),
        down=_fuse(file, [base + "mlp.down_proj"], [None]),
        attention_norm=norm("input_layernorm"),
        mlp_norm=norm("post_attention_layernorm"),
    )


def head_name(file: WeightsFile, arch: Architecture) -> str:
    """The tensor that turns the last state into logits."""
    if arch.tied or "lm_head.weight" not in file:
        return "model.embed_tokens.weight"
    return "lm_head.weight"


def _fuse(
    file: WeightsFile,
    names: list[str],
    turns: list[Callable[[Tensor], Tensor] | None],
) -> Dense:
    weights, biases = [], []
    for name, turn in zip(names, turns, strict=True):
        weight = file.read(name + ".weight")
        bias = (
            file.read(name + ".bias").to(torch.float32)
            if name + ".bias" in file
            else torch.zeros(weight.shape[0])
        )
        weights.append(turn(weight) if turn else weight)
        biases.append(turn(bias) if turn else bias)
    bias = torch.cat(biases)
    any_bias = any(name + ".bias" in file for name in names)
    return Dense(torch.cat(weights), bias if any_bias else None)
