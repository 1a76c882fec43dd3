"""The int8 form of a model: one scale per output row, written once at conversion.

The file holds the fused layers of `layers.py`, so that start-up only copies bytes.
The embedding is not in it: its rows are read from the fp16 file, where mapping costs
no memory, and only the head needs a matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from codekv.errors import ModelFormatError
from codekv.model.runtime import architecture
from codekv.model.runtime.half import half_weights
from codekv.model.runtime.layers import MATRICES, Dense, head_name, read_layer
from codekv.model.runtime.weights import WeightsFile
from codekv.model.stream import TensorWriter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from torch import Tensor

    from codekv.model.runtime.architecture import Architecture

INT8_FILE = "int8.safetensors"
WEIGHTS_FILE = "weights.safetensors"
LAYOUT = "1"
RUN_ROWS = 8192
"""Rows rounded at once; a head has 150,000, whose float32 copies would take 2 GB."""


def quantise_rows(weight_NK: Tensor, bits: int = 8) -> tuple[Tensor, Tensor]:
    """Round each row to signed integers of `bits` bits.

    Returns:
        int8 [N, K] and float32 scales [N]; a row of zeros gets scale 1.
    """
    limit = 2 ** (bits - 1) - 1
    rounded = torch.empty(weight_NK.shape, dtype=torch.int8)
    scales = torch.empty(len(weight_NK))
    for start in range(0, len(weight_NK), RUN_ROWS):
        run = slice(start, start + RUN_ROWS)
        rows = weight_NK[run].to(torch.float32)
        top = rows.abs().amax(dim=1)
        scale = torch.where(top > 0, top / limit, torch.ones_like(top))
        rounded[run] = (rows / scale[:, None]).round_().to(torch.int8)
        scales[run] = scale
    return rounded, scales


def write_int8(folder: Path) -> None:
    """Quantise `weights.safetensors` of a store folder into `int8.safetensors`.

    Does nothing for a model that the own decoder does not run. The file appears
    whole or not at all.

    Raises:
        ModelFormatError: The weights are damaged or not those of the config.
        OSError: The disk is full or the folder cannot be written.
    """
    arch = architecture.parse(architecture.read_config(folder))
    if arch is None:
        return
    weights = WeightsFile(half_weights(folder))
    with TensorWriter(folder / INT8_FILE, stamp(weights)) as out:
        for name, tensor in int8_tensors(weights, arch):
            values = tensor.contiguous().numpy()
            out.add(name, str(values.dtype), values.shape, [values])


def stamp(weights: WeightsFile) -> dict[str, str]:
    """What the int8 file says about the weights it was made from."""
    return {"layout": LAYOUT, "source_bytes": str(weights.path.stat().st_size)}


def open_int8(folder: Path, weights: WeightsFile) -> WeightsFile | None:
    """Open the int8 file, or return None if it is missing or of other weights."""
    path = folder / INT8_FILE
    if not path.is_file():
        return None
    try:
        file = WeightsFile(path)
    except ModelFormatError:
        return None
    return file if file.metadata == stamp(weights) else None


def int8_tensors(
    weights: WeightsFile, arch: Architecture
) -> Iterator[tuple[str, Tensor]]:
    """All tensors of the int8 file, by name."""
    for index in range(arch.num_layers):
        layer = read_layer(weights, arch, index)
        for matrix in MATRICES:
            yield from _matrix(f"{index}.{matrix}", getattr(layer, matrix))
        yield f"{index}.attention_norm", layer.attention_norm
        yield f"{index}.mlp_norm", layer.mlp_norm
    yield "norm", weights.read("model.norm.weight").to(torch.float32)
    head = weights.read(head_name(weights, arch))
    yield from _matrix("head", Dense(head, None))


def _matrix(name: str, dense: Dense) -> Iterator[tuple[str, Tensor]]:
    rows, scale = quantise_rows(dense.weight)
    yield f"{name}.rows", rows
    yield f"{name}.scale", scale
    if dense.bias is not None:
        yield f"{name}.bias", dense.bias
