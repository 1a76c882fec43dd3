"""A store folder becomes a `NativeDecoder`, where that is possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from codekv.model.runtime.blocks import open_blocks
from codekv.model.runtime.native import kernels as native_kernels
from codekv.model.runtime.native.attention_shape import AttentionShape
from codekv.model.runtime.native.decoder import NativeDecoder
from codekv.model.runtime.native.layers import LayersProgram, Weights
from codekv.model.runtime.native.matrices import (
    BlocksSource,
    RowsSource,
    fits,
    forms,
    pack_all,
)
from codekv.model.runtime.native.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from codekv.model.runtime.architecture import Architecture
    from codekv.model.runtime.interface import ModelSpec
    from codekv.model.runtime.native.kernels import Kernels
    from codekv.model.runtime.native.matrices import Source
    from codekv.model.runtime.weights import WeightsFile


def open_source(
    folder: Path,
    arch: Architecture,
    rows: Callable[[], tuple[WeightsFile, WeightsFile] | None],
) -> Source | None:
    """Where a model's weights come from: its own blocks, else int8 rows.

    Args:
        folder: Of the store.
        arch: The model's.
        rows: Opens the int8 file and the half-precision weights; None without them.
    """
    if not fits(arch):
        return None
    blocks = open_blocks(folder)
    if blocks is not None and BlocksSource.takes(blocks, arch):
        return BlocksSource(blocks, arch)
    files = rows()
    return None if files is None else RowsSource(*files, arch)


def choose_kernels(source: Source, arch: Architecture, objects: Path) -> Kernels | None:
    """The kernels that a model gets on this processor; None if none are right here.

    Args:
        source: Its weights.
        arch: Its sizes.
        objects: Folder for compiled objects.
    """
    return native_kernels.choose(forms(source, arch), _shape(arch), objects)


def load_native(
    source: Source,
    arch: Architecture,
    objects: Path,
    spec: Callable[[str, bool], ModelSpec],
) -> NativeDecoder | None:
    """Pack a model and compile its kernels; None if no kernels are right here.

    Args:
        source: Its weights.
        arch: Its sizes.
        objects: Folder for compiled objects.
        spec: Makes the spec from the name of the arithmetic and whether keys have a
            bias.
    """
    kernels = choose_kernels(source, arch, objects)
    if kernels is None:
        return None
    shape = _shape(arch)
    num_threads = torch.get_num_threads()
    layers, head = pack_all(source, arch, kernels.target.lanes, num_threads)
    weights = Weights(
        layers,
        head,
        [_norm(source, index, "attention") for index in range(arch.num_layers)],
        [_norm(source, index, "mlp") for index in range(arch.num_layers)],
        _norm(source, -1, "last"),
    )
    program = LayersProgram(kernels, arch, shape, weights, num_threads)
    pool = Pool(kernels.code, num_threads, program.scratch_bytes())
    key_bias = [layer["k"].bias for layer in layers]
    bias_LHD = [
        torch.from_numpy(bias).view(arch.num_kv_heads, arch.head_dim)
        for bias in key_bias
        if bias is not None
    ]
    has_bias = len(bias_LHD) == arch.num_layers
    name = f"native {source.fingerprint} {kernels.arithmetic}"
    made = spec(name, has_bias)
    return NativeDecoder(
        made, arch, source, program, pool, bias_LHD if has_bias else None
    )


def _shape(arch: Architecture) -> AttentionShape:
    return AttentionShape(
        arch.num_heads, arch.num_kv_heads, arch.head_dim, arch.norm_eps
    )


def _norm(source: Source, layer: int, name: str) -> NDArray[np.float32]:
    return np.ascontiguousarray(source.norm(layer, name), np.float32)
