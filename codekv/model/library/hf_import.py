"""Read a model folder in transformers' layout: config and safetensors shards.

Pickled weights (`pytorch_model.bin`) are refused: reading them can run code.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open

from codekv.errors import ModelFormatError
from codekv.model.stream import TensorWriter

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor


def read_config(folder: Path) -> dict[str, Any]:
    """Read and check `config.json`, completed by what the tokenizer's config says.

    Raises:
        ModelFormatError: It is missing, unreadable or not a model's.
    """
    path = folder / "config.json"
    try:
        config = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        line = f"{path} is missing or unreadable; give the folder of a model"
        raise ModelFormatError(line) from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise ModelFormatError(f"{path} names no model_type; it is not a model's")
    if "auto_map" in config:
        line = f"{path} needs code of its own (auto_map), which is never run here"
        raise ModelFormatError(line)
    config["add_bos_token"] = _add_bos(folder)
    return config


def write_weights(folder: Path, target: Path) -> None:
    """Gather all shards of `folder` into one fp16 file at `target`, a tensor at a time.

    Raises:
        ModelFormatError: No safetensors file, a damaged one, or a weight that does
            not fit in fp16.
    """
    shards = sorted(folder.glob("*.safetensors"))
    if not shards:
        line = f"{folder} has no .safetensors file; save the model in that format"
        raise ModelFormatError(line)
    try:
        with TensorWriter(target, {"format": "pt"}) as out:
            for shard in shards:
                with safe_open(shard, framework="pt") as file:
                    for name in file.keys():  # noqa: SIM118 - not a mapping
                        half = _fp16(file.get_tensor(name), shard, name)
                        out.add(name, "float16", tuple(half.shape), [half.numpy()])
    except SafetensorError as error:
        raise ModelFormatError(
            f"{folder} is damaged ({error}); fetch it again"
        ) from error


def _fp16(tensor: Tensor, shard: Path, name: str) -> Tensor:
    if not tensor.is_floating_point():
        raise ModelFormatError(f"{shard}: {name} is {tensor.dtype}, not a plain weight")
    half = tensor.to(torch.float16).contiguous()
    if not bool(torch.isfinite(half).all()):
        raise ModelFormatError(f"{shard}: {name} does not fit in fp16")
    return half


def _add_bos(folder: Path) -> bool:
    path = folder / "tokenizer_config.json"
    try:
        values = json.loads(path.read_bytes()) if path.is_file() else {}
    except ValueError:
        return False
    return isinstance(values, dict) and bool(values.get("add_bos_token"))
