"""The half-precision form of a model, made from its blocks when something needs it.

The native step multiplies a GGUF file's own blocks, so the store keeps those. The
torch decoder, the transformers adapter and `codekv model check` read
`weights.safetensors` instead, which is three times as large; it is written the first
time that one of them loads the model.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import gguf
import numpy as np

from codekv.errors import ModelFormatError, StorageError
from codekv.model.runtime.blocks import open_blocks
from codekv.model.stream import TensorWriter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from codekv.model.runtime.blocks import BlocksFile

WEIGHTS = "weights.safetensors"

_RUN_NUMBERS = 1 << 23
"""Numbers converted at once: 32 MB in float32, and a few times that inside gguf."""


def half_weights(folder: Path) -> Path:
    """Find a model's fp16 weights, written first if the store has only its blocks.

    Raises:
        ModelFormatError: It has neither, or a weight does not fit in fp16.
        StorageError: The disk is full or cannot be written.
    """
    path = folder / WEIGHTS
    if path.is_file():
        return path
    blocks = open_blocks(folder)
    if blocks is None:
        line = f"{folder} has no weights; run: codekv model pull {folder.name} --again"
        raise ModelFormatError(line)
    head_dim = int(json.loads((folder / "config.json").read_bytes())["head_dim"])
    try:
        with TensorWriter(path, {"format": "pt"}) as out:
            for name, tensor in blocks.tensors.items():
                rows = _half_rows(blocks, name, head_dim)
                out.add(name, "float16", tensor.shape, rows)
    except OSError as error:
        need = sum(math.prod(tensor.shape) for tensor in blocks.tensors.values()) * 2
        line = f"cannot write {path} ({error.strerror}); it needs {need / 1e9:.1f} GB"
        raise StorageError(line) from error
    return path


def dense_rows(
    blocks: BlocksFile, name: str, start: int = 0, stop: int | None = None
) -> NDArray[np.float32]:
    """Read rows [start, stop) of a matrix, or a whole vector, as float32.

    Rows are in the file's order.
    """
    kind = gguf.GGMLQuantizationType[blocks.tensors[name].kind]
    raw = blocks.raw(name, start, stop)
    return np.asarray(gguf.quants.dequantize(raw, kind), np.float32)


def _half_rows(
    blocks: BlocksFile, name: str, head_dim: int
) -> Iterator[NDArray[np.float16]]:
    """All of a tensor in transformers' order, a run of rows at a time."""
    shape = blocks.tensors[name].shape
    width = shape[1] if len(shape) > 1 else 1
    turns = blocks.pairs and (".q_proj." in name or ".k_proj." in name)
    # A head's rows are re-ordered together, so runs end with heads.
    run = max(1, _RUN_NUMBERS // width // head_dim) * head_dim
    if len(shape) == 1:
        run = shape[0]
    for start in range(0, shape[0], run):
        values = dense_rows(blocks, name, start, min(start + run, shape[0]))
        if turns:
            values = halves(values, head_dim)
        half = values.astype(np.float16)
        if not np.isfinite(half).all():
            raise ModelFormatError(f"{blocks.path}: {name} does not fit in fp16")
        yield half


def halves(values: NDArray[np.float32], head_dim: int) -> NDArray[np.float32]:
    """Re-order rows of each head from pairs (2i, 2i + 1) to halves (i, i + D/2).

    Llama files are written with the rows that a rotation mixes as neighbours;
    transformers keeps them half a head apart.
    """
    paired = values.reshape(-1, head_dim // 2, 2, *values.shape[1:])
    return paired.swapaxes(1, 2).reshape(values.shape)
