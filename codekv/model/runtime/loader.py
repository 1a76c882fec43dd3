"""A store folder becomes a `Runtime`.

Chooses the own decoder or the transformers adapter, the device, and what the weights
are computed in. Imports transformers only for the adapter.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import torch

from codekv.config import data_dir
from codekv.errors import ModelFormatError
from codekv.model.runtime import architecture
from codekv.model.runtime.blocks import BLOCKS_FILE
from codekv.model.runtime.decoder import Ends, LlamaDecoder
from codekv.model.runtime.half import half_weights
from codekv.model.runtime.int8 import WEIGHTS_FILE, int8_tensors, open_int8, write_int8
from codekv.model.runtime.interface import ModelSpec
from codekv.model.runtime.kernels import Stacked, choose
from codekv.model.runtime.layers import (
    MATRICES,
    Dense,
    Layer,
    head_name,
    neighbours,
    read_layer,
)
from codekv.model.runtime.linear import DenseLinear, Int8Linear, Linear, Norm
from codekv.model.runtime.weights import WeightsFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor
    from pathlib import Path
    from typing import TypeAlias

    from torch import Tensor

    from codekv.config import ModelConfig
    from codekv.model.runtime.architecture import Architecture
    from codekv.model.runtime.interface import Runtime
    from codekv.model.runtime.kernels import KernelChoice, Product

    _Parts: TypeAlias = tuple[list[Layer[Linear, Norm]], Norm, Callable[[], Linear]]

KERNELS_FILE = "kernels.json"
"""In the data folder: which int8 kernel was measured best on this processor."""

HEAD_ROWS = 40_000
"""Rows of the head that are packed at once."""

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def load_runtime(folder: Path, config: ModelConfig) -> Runtime:
    """Load the model of a store folder.

    Raises:
        ModelFormatError: The folder is damaged, or asks for what cannot be run.
    """
    if config.threads:
        torch.set_num_threads(config.threads)
    values = architecture.read_config(folder)
    arch = architecture.parse(values)
    device = choose_device(config.device)
    compute = choose_compute(config.compute, device)
    if config.runtime == "transformers" or (arch is None and config.runtime == "auto"):
        return _load_adapter(folder, config.name, compute, device)
    if arch is not None and _wants_native(config.runtime, device, compute):
        native = _load_native(folder, config.name, arch)
        if native is not None:
            return native
    if arch is None:
        raise ModelFormatError(
            f"{folder} is of a kind the own decoder does not run; set model.runtime "
            'to "auto"'
        )
    return _load_own(folder, config.name, arch, compute, device)


def describe_runtime(folder: Path, config: ModelConfig) -> str:
    """Say which forward pass `load_runtime` takes, and with which kernels.

    Kernels are compiled and checked where no load has done it; nothing is converted.

    Raises:
        ModelFormatError: As by `load_runtime`.
    """
    arch = architecture.parse(architecture.read_config(folder))
    device = choose_device(config.device)
    compute = choose_compute(config.compute, device)
    if config.runtime == "transformers" or arch is None:
        return "transformers"
    if not _wants_native(config.runtime, device, compute):
        return f"own, {compute}"
    try:
        # llvmlite has no wheel for some systems.
        from codekv.model.runtime.native.load import choose_kernels, open_source
    except ImportError as error:
        return f"own, {compute}: {error}"

    def rows() -> tuple[WeightsFile, WeightsFile] | None:
        weights = WeightsFile(half_weights(folder))
        int8 = open_int8(folder, weights)
        return None if int8 is None else (int8, weights)

    source = open_source(folder, arch, rows)
    if source is None:
        return f"own, {compute}: its weights are not in a form for the native kernels"
    kernels = choose_kernels(source, arch, data_dir() / "native")
    if kernels is None:
        return f"own, {compute}: no native kernels are right on this processor"
    return f"native, {kernels.target.name} kernels"


def _wants_native(runtime: str, device: str, compute: str) -> bool:
    """Whether the native step is tried first; pure."""
    is_usual = runtime == "auto" and (device, compute) == ("cpu", "int8")
    return runtime == "native" or is_usual


def _load_native(folder: Path, name: str, arch: Architecture) -> Runtime | None:
    """The native decoder, or None where there is no compiler or nothing fits."""
    try:
        # llvmlite has no wheel for some systems.
        from codekv.model.runtime.native.load import load_native, open_source
    except ImportError:
        return None

    def rows() -> tuple[WeightsFile, WeightsFile] | None:
        weights = WeightsFile(half_weights(folder))
        int8 = _int8_file(folder, weights)
        return None if int8 is None else (int8, weights)

    source = open_source(folder, arch, rows)
    if source is None:
        return None

    def spec(arithmetic: str, key_bias: bool) -> ModelSpec:  # noqa: FBT001
        heads = (arch.num_kv_heads, arch.head_dim, arch.head_dim)
        return ModelSpec(
            name=name,
            family=arch.family,
            kv_shapes=(heads,) * arch.num_layers,
            vocab_size=arch.vocab_size,
            max_positions=arch.max_positions,
            compute="int8",
            device="cpu",
            fingerprint=fingerprint(folder, arithmetic),
            movable=(True,) * arch.num_layers,
            key_bias=key_bias,
            eos_ids=arch.eos_ids,
        )

    return load_native(source, arch, data_dir() / "native", spec)


def _load_own(
    folder: Path, name: str, arch: Architecture, compute: str, device: str
) -> LlamaDecoder:
    weights = WeightsFile(half_weights(folder))
    if compute == "int8":
        layers, norm, head = _load_int8(folder, weights, arch)
        kv_dtype = torch.float32
    else:
        kv_dtype = _DTYPES[compute]
        layers, norm, head = _load_dense(weights, arch, kv_dtype, device)
    embedding = weights.map("model.embed_tokens.weight")
    if device != "cpu":
        embedding = embedding.to(device)
    arch = replace(
        arch, rope=replace(arch.rope, inv_freq=arch.rope.inv_freq.to(device))
    )
    bias = _key_bias(weights, arch, device)
    heads = (arch.num_kv_heads, arch.head_dim, arch.head_dim)
    spec = ModelSpec(
        name=name,
        family=arch.family,
        kv_shapes=(heads,) * arch.num_layers,
        vocab_size=arch.vocab_size,
        max_positions=arch.max_positions,
        compute=compute,
        device=device,
        fingerprint=fingerprint(folder, f"own {compute}"),
        movable=(True,) * arch.num_layers,
        key_bias=bias is not None,
        eos_ids=arch.eos_ids,
    )
    return LlamaDecoder(spec, arch, layers, Ends(embedding, norm, head, bias), kv_dtype)


def _load_adapter(folder: Path, name: str, compute: str, device: str) -> Runtime:
    # Late, because transformers takes seconds to import.
    from codekv.model.runtime.adapter import Adapter
    from codekv.model.runtime.movability import probe
    from codekv.model.runtime.reference import load_plain

    compute = "fp32" if compute == "int8" else compute
    model = load_plain(folder, _DTYPES[compute], device)
    try:
        found = probe(model)
    except ValueError as error:
        raise ModelFormatError(
            f"{folder} cannot be cached ({error}); choose another model"
        ) from error
    values = architecture.read_config(folder)
    spec = ModelSpec(
        name=name,
        family=str(values.get("model_type")),
        kv_shapes=found.kv_shapes,
        vocab_size=int(model.get_output_embeddings().weight.shape[0]),
        max_positions=int(
            getattr(model.config, "max_position_embeddings", None) or 2048
        ),
        compute=compute,
        device=device,
        fingerprint=fingerprint(folder, f"adapter {compute}"),
        movable=found.movable,
        key_bias=found.key_bias_LHD is not None,
        eos_ids=architecture.eos_ids(values),
    )
    return Adapter(spec, model, found.rope, found.key_bias_LHD)


def choose_device(wanted: str) -> str:
    """Resolve `auto`, and refuse a device that torch cannot use."""
    has_cuda = torch.cuda.is_available()  # also true for ROCm builds
    has_mps = torch.backends.mps.is_available()
    if wanted == "auto":
        return "cuda" if has_cuda else "mps" if has_mps else "cpu"
    if (wanted == "cuda" and not has_cuda) or (wanted == "mps" and not has_mps):
        raise ModelFormatError(
            f'model.device is "{wanted}", but torch {torch.__version__} finds none; '
            'set it to "auto"'
        )
    return wanted


def choose_compute(wanted: str, device: str) -> str:
    """Resolve `auto`: int8 on a processor, half precision on an accelerator."""
    if wanted == "auto":
        return "int8" if device == "cpu" else "fp16"
    if wanted == "int8" and device != "cpu":
        return "fp16"
    return wanted


def fingerprint(folder: Path, compute: str) -> str:
    """Digest of everything that makes keys and values incompatible."""
    digest = hashlib.sha256(f"{torch.__version__} {compute} 1".encode())
    for name in ("config.json", "tokenizer.json"):
        path = folder / name
        if path.is_file():
            digest.update(path.read_bytes())
    # The blocks of a GGUF file stay when other forms of them come and go.
    blocks = folder / BLOCKS_FILE
    with (blocks if blocks.is_file() else folder / WEIGHTS_FILE).open("rb") as file:
        size = file.seek(0, 2)
        for part in range(64):
            file.seek(size * part // 64)
            digest.update(file.read(4096))
    digest.update(str(size).encode())
    return digest.hexdigest()


def _load_int8(folder: Path, weights: WeightsFile, arch: Architecture) -> _Parts:
    read, names = _int8_reader(folder, weights, arch)
    choice = choose(data_dir() / KERNELS_FILE)

    def matrix(name: str) -> Linear:
        bias = read(f"{name}.bias") if f"{name}.bias" in names else None
        return Int8Linear(
            choice.pack(read(f"{name}.rows"), read(f"{name}.scale")), bias
        )

    def layer(index: int) -> Layer[Linear, Norm]:
        return Layer(
            **{name: matrix(f"{index}.{name}") for name in MATRICES},
            attention_norm=Norm(read(f"{index}.attention_norm"), arch.norm_eps),
            mlp_norm=Norm(read(f"{index}.mlp_norm"), arch.norm_eps),
        )

    pool = ThreadPoolExecutor(max(2, torch.get_num_threads()), "codekv-pack")
    layers = pool.map(layer, range(arch.num_layers))
    # The head is needed last, at the end of the first prompt: nobody waits for it here.
    head = _pack_head(pool, choice, read)
    pool.shutdown(wait=False)
    return list(layers), Norm(read("norm"), arch.norm_eps), head


def _pack_head(
    pool: Executor, choice: KernelChoice, read: Callable[[str], Tensor]
) -> Callable[[], Linear]:
    rows, scale = pool.submit(read, "head.rows"), read("head.scale")

    def pack(start: int) -> Product:
        stop = start + HEAD_ROWS
        return choice.pack(rows.result()[start:stop], scale[start:stop])

    parts = [pool.submit(pack, start) for start in range(0, len(scale), HEAD_ROWS)]

    @cache
    def head() -> Linear:
        return Int8Linear(Stacked([part.result() for part in parts]), None)

    return head


def _int8_reader(
    folder: Path, weights: WeightsFile, arch: Architecture
) -> tuple[Callable[[str], Tensor], set[str]]:
    """How to get a tensor of the int8 form, and the names there are."""
    file = _int8_file(folder, weights)
    if file is None:
        tensors = dict(int8_tensors(weights, arch))
        return tensors.__getitem__, set(tensors)
    return file.read, set(file.names)


def _int8_file(folder: Path, weights: WeightsFile) -> WeightsFile | None:
    """The int8 form of the weights, written first if need be; None on a full disk."""
    file = open_int8(folder, weights)
    if file is None:
        try:
            write_int8(folder)
            file = open_int8(folder, weights)
        except OSError:
            file = None
    return file


def _load_dense(
    weights: WeightsFile, arch: Architecture, dtype: torch.dtype, device: str
) -> _Parts:
    def linear(dense: Dense) -> Linear:
        bias = None if dense.bias is None else dense.bias.to(device)
        return DenseLinear(dense.weight.to(device, dtype), bias)

    def norm(weight_E: Tensor) -> Norm:
        return Norm(weight_E.to(device, torch.float32), arch.norm_eps)

    layers: list[Layer[Linear, Norm]] = []
    for index in range(arch.num_layers):
        layer = read_layer(weights, arch, index)
        layers.append(
            Layer(
                **{name: linear(getattr(layer, name)) for name in MATRICES},
                attention_norm=norm(layer.attention_norm),
                mlp_norm=norm(layer.mlp_norm),
            )
        )
    head = linear(Dense(weights.read(head_name(weights, arch)), None))
    return layers, norm(weights.read("model.norm.weight")), lambda: head


def _key_bias(
    weights: WeightsFile, arch: Architecture, device: str
) -> list[Tensor] | None:
    names = [
        f"model.layers.{index}.self_attn.k_proj.bias"
        for index in range(arch.num_layers)
    ]
    if any(name not in weights for name in names):
        return None
    return [
        neighbours(weights.read(name).to(torch.float32), arch.head_dim)
        .view(arch.num_kv_heads, arch.head_dim)
        .to(device)
        for name in names
    ]
