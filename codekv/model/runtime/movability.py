"""Is this model movable? Asked of the model itself, not of a list of names.

With one token in the context attention is trivial, so a model whose positions are
purely relative gives the same values at every position, and keys that differ by a
rotation only. Values that differ betray absolute positions; keys that do not turn as
predicted betray a rotation we do not know. Costs three one-token forwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from codekv.model.runtime.adapter import accepts
from codekv.model.runtime.rope import Rope

if TYPE_CHECKING:
    from torch import Tensor

SHIFTS = (1, 97)
"""Two distances, so that frequencies that depend on the length are noticed."""

TOLERANCE = {torch.float32: 1e-4, torch.float16: 2e-3, torch.bfloat16: 2e-2}
"""Largest difference relative to the largest key."""


@dataclass(frozen=True, slots=True)
class MovabilityProbe:
    """What was found.

    Attributes:
        kv_shapes: Per layer (num_kv_heads, key_dim, value_dim).
        movable: Per layer, whether keys can be moved with `rope` (or untouched, if
            `rope` is None).
        rope: How keys turn, None if they do not.
        key_bias_LHD: Per layer [H, D] the bias added before the rotation, or None.
    """

    kv_shapes: tuple[tuple[int, int, int], ...]
    movable: tuple[bool, ...]
    rope: Rope | None
    key_bias_LHD: list[Tensor] | None


@torch.inference_mode()
def probe(model: Any, token: int = 1) -> MovabilityProbe:
    """Run one token at three positions and compare.

    Raises:
        ValueError: The model's state is not keys and values per token.
    """
    here = _keys_and_values(model, token, 0)
    shapes = tuple((k.shape[0], k.shape[2], v.shape[2]) for k, v in here)
    count = len(here)
    if not accepts(model, "position_ids"):
        return MovabilityProbe(shapes, (False,) * count, None, None)
    there = [(shift, _keys_and_values(model, token, shift)) for shift in SHIFTS]
    steady = [
        all(_close(moved[layer][1], here[layer][1]) for _, moved in there)
        for layer in range(count)
    ]
    for rope in (None, *_candidates(model, shapes)):
        movable = [
            steady[layer]
            and all(
                _close(moved[layer][0], _turn(rope, here[layer][0], shift))
                for shift, moved in there
            )
            for layer in range(count)
        ]
        if any(movable):
            bias = _key_bias(model, shapes) if rope else None
            return MovabilityProbe(shapes, tuple(movable), rope, bias)
    return MovabilityProbe(shapes, (False,) * count, None, None)


def _keys_and_values(
    model: Any, token: int, position: int
) -> list[tuple[Tensor, Tensor]]:
    """Per layer keys and values [H, 1, D] of a lone token at a position."""
    device = model.device
    extra = {}
    if accepts(model, "position_ids"):
        extra["position_ids"] = torch.tensor([[position]], device=device)
    out = model(
        input_ids=torch.tensor([[token]], device=device), use_cache=True, **extra
    )
    cache = getattr(out, "cache", None) or getattr(out, "past_key_values", None)
    layers = getattr(cache, "layers", [])
    pairs = [(getattr(x, "keys", None), getattr(x, "values", None)) for x in layers]
    usable = [
        (k[0], v[0])
        for k, v in pairs
        if torch.is_tensor(k)
        and torch.is_tensor(v)
        and k.dim() == 4
        and k.shape[2] == 1
    ]
    if not usable or len(usable) != len(layers):
        raise ValueError("some layers keep another state than keys and values")
    return usable


def _candidates(model: Any, shapes: tuple[tuple[int, int, int], ...]) -> list[Rope]:
    """Rotations the model's own frequencies allow, both layouts."""
    found: list[Rope] = []
    for module in model.modules():
        inv_freq = getattr(module, "inv_freq", None)
        if torch.is_tensor(inv_freq) and 2 * inv_freq.numel() <= shapes[0][1]:
            scaling = float(getattr(module, "attention_scaling", 1.0))
            frequencies = inv_freq.detach().to("cpu", torch.float32).clone()
            found += [
                Rope(frequencies, scaling, interleaved) for interleaved in (False, True)
            ]
            break
    return found


def _turn(rope: Rope | None, keys_H1D: Tensor, shift: int) -> Tensor:
    if rope is None:
        return keys_H1D
    keys_H1D = keys_H1D.to("cpu", torch.float32)
    plain_H1D = rope.unrotate(keys_H1D, torch.tensor([0]))
    return rope.rotate(plain_H1D, torch.tensor([shift]))


def _close(left: Tensor, right: Tensor) -> bool:
    tolerance = TOLERANCE.get(left.dtype, 2e-2)
    left, right = left.to("cpu", torch.float32), right.to("cpu", torch.float32)
    limit = tolerance * max(float(right.abs().max()), 1e-6)
    return float((left - right).abs().max()) <= limit


def _key_bias(
    model: Any, shapes: tuple[tuple[int, int, int], ...]
) -> list[Tensor] | None:
    """Biases of `k_proj`, in layer order, where keys are nothing but its output."""
    parts = [m for m in model.modules() if hasattr(m, "k_proj")]
    if len(parts) != len(shapes) or any(hasattr(m, "k_norm") for m in parts):
        return None
    biases = [getattr(m.k_proj, "bias", None) for m in parts]
    found: list[Tensor] = []
    for bias, (heads, width, _) in zip(biases, shapes, strict=True):
        if bias is None or bias.numel() != heads * width:
            return None
        found.append(bias.detach().to("cpu", torch.float32).view(heads, width).clone())
    return found
