"""The facts of a Llama-like model, from its `config.json` alone.

Importing transformers takes longer than loading the weights, so the own decoder
reads what it needs here. A config it does not fully understand gives None, and the
model then runs through `adapter.py`.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from codekv.errors import ModelFormatError
from codekv.model.runtime.rope import Rope

if TYPE_CHECKING:
    from pathlib import Path

OWN_FAMILIES = ("llama", "qwen2", "mistral")


@dataclass(frozen=True, slots=True)
class Architecture:
    """Sizes and constants of one Llama-like model."""

    family: str
    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    mlp_size: int
    vocab_size: int
    max_positions: int
    norm_eps: float
    tied: bool
    rope: Rope
    eos_ids: tuple[int, ...]

    @property
    def group_size(self) -> int:
        """Query heads per key head."""
        return self.num_heads // self.num_kv_heads


def read_config(folder: Path) -> dict[str, Any]:
    """Parse `config.json`.

    Raises:
        ModelFormatError: It is missing or not a JSON object.
    """
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelFormatError(f"{path} cannot be read ({error})") from error
    if not isinstance(config, dict):
        raise ModelFormatError(f"{path} holds no JSON object")
    return config


def parse(config: dict[str, Any]) -> Architecture | None:
    """Understand a config, or return None if the own decoder must not run it."""
    family = config.get("model_type")
    if family not in OWN_FAMILIES or config.get("hidden_act", "silu") != "silu":
        return None
    windowed = config.get("use_sliding_window", family == "mistral")
    layer_types = set(config.get("layer_types") or ["full_attention"])
    if layer_types != {"full_attention"} or (windowed and config.get("sliding_window")):
        return None
    try:
        return _parse_sizes(config, family)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None


def eos_ids(config: dict[str, Any]) -> tuple[int, ...]:
    """Tokens that end a text; empty if the config names none."""
    eos = config.get("eos_token_id")
    if isinstance(eos, int):
        return (eos,)
    return tuple(int(token) for token in eos or ())


def _parse_sizes(config: dict[str, Any], family: str) -> Architecture | None:
    num_heads = int(config["num_attention_heads"])
    hidden_size = int(config["hidden_size"])
    head_dim = int(config.get("head_dim") or hidden_size // num_heads)
    max_positions = int(config.get("max_position_embeddings", 2048))
    rope = _rope(config, head_dim)
    if rope is None:
        return None
    return Architecture(
        family=family,
        num_layers=int(config["num_hidden_layers"]),
        hidden_size=hidden_size,
        num_heads=num_heads,
        num_kv_heads=int(config.get("num_key_value_heads") or num_heads),
        head_dim=head_dim,
        mlp_size=int(config["intermediate_size"]),
        vocab_size=int(config["vocab_size"]),
        max_positions=max_positions,
        norm_eps=float(config.get("rms_norm_eps", 1e-6)),
        tied=bool(config.get("tie_word_embeddings", False)),
        rope=rope,
        eos_ids=eos_ids(config),
    )


def _rope(config: dict[str, Any], head_dim: int) -> Rope | None:
    """Frequencies for the kinds that are fixed at load; others give None."""
    given = config.get("rope_parameters") or config.get("rope_scaling") or {}
    theta = float(given.get("rope_theta") or config.get("rope_theta") or 10000.0)
    kind = given.get("rope_type") or given.get("type") or "default"
    if float(given.get("partial_rotary_factor", 1.0)) != 1.0:
        return None
    steps = torch.arange(0, head_dim, 2, dtype=torch.int64).to(torch.float32)
    inv_freq = 1.0 / (theta ** (steps / head_dim))
    if kind == "linear":
        inv_freq = inv_freq / float(given["factor"])
    elif kind == "llama3":
        inv_freq = _llama3(inv_freq, given)
    elif kind != "default":
        return None
    return Rope(inv_freq=inv_freq, interleaved=True)


def _llama3(inv_freq: torch.Tensor, given: dict[str, Any]) -> torch.Tensor:
    factor, low = float(given["factor"]), float(given["low_freq_factor"])
    high = float(given["high_freq_factor"])
    trained = float(given["original_max_position_embeddings"])
    wavelength = 2.0 * math.pi / inv_freq
    share = ((trained / wavelength - low) / (high - low)).clamp(0.0, 1.0)
    return (1.0 - share) * inv_freq / factor + share * inv_freq
