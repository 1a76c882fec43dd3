"""A model's matrices, packed for this processor, and its vectors.

They come from the blocks of a GGUF file where the store has them, else from the int8
rows that the store writes for every model. Packing reads a matrix in runs of rows, so
that little more than the packed form is in memory at any time.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from codekv.model.runtime.native.formats import BLOCK, FORMATS, Format
from codekv.model.runtime.native.packing import Fields, fields, pack, rows_of_int8
from codekv.model.runtime.native.pool import aligned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from codekv.model.runtime.architecture import Architecture
    from codekv.model.runtime.blocks import BlocksFile
    from codekv.model.runtime.weights import WeightsFile

    Floats = NDArray[np.float32]

RUN_ROWS = 1024
"""Rows that are packed at once: a few megabytes, which stay in the cache."""

MATRICES = ("q", "k", "v", "out", "gate", "up", "down")


@dataclass(frozen=True, slots=True, eq=False)
class PackedMatrix:
    """A packed matrix.

    Attributes:
        form: Its format.
        rows: Output numbers.
        blocks: Blocks of 32 inputs.
        tiles: uint8 [tiles, bytes of a tile].
        bias: float32 [rows], or None.
    """

    form: Format
    rows: int
    blocks: int
    tiles: NDArray[np.uint8]
    bias: Floats | None


class Source(Protocol):
    """Where matrices, vectors and embedding rows come from."""

    fingerprint: str
    """Tells sources apart that give different numbers for one model."""

    def form(self, layer: int, name: str) -> Format:
        """Format of a layer's matrix; layer -1 has only the `head`."""

    def shape(self, layer: int, name: str) -> tuple[int, int]:
        """Rows and columns of a matrix."""

    def fields(self, layer: int, name: str, start: int, stop: int) -> Fields:
        """Rows [start, stop) taken apart, both multiples of a head's rows."""

    def bias(self, layer: int, name: str) -> Floats | None:
        """The bias of a matrix in the order of its rows."""

    def norm(self, layer: int, name: str) -> Floats:
        """Weights of a norm: `attention`, `mlp`, and for layer -1 `last`."""

    def embed(self, tokens: Sequence[int]) -> Floats:
        """Rows of the embedding [T, E]."""


_HF = {
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "out": "self_attn.o_proj",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
    "attention": "input_layernorm",
    "mlp": "post_attention_layernorm",
}
_EMBEDDING = "model.embed_tokens.weight"


class BlocksSource:
    """The blocks of a GGUF file, with not a bit changed."""

    fingerprint = "blocks"

    def __init__(self, file: BlocksFile, arch: Architecture) -> None:
        self._file = file
        self._arch = arch

    @staticmethod
    def takes(file: BlocksFile, arch: Architecture) -> bool:
        """Whether every matrix has a format that the kernels know."""
        source = BlocksSource(file, arch)
        names = [
            source._name(layer, name)
            for layer in range(arch.num_layers)
            for name in MATRICES
        ]
        return all(
            name in file and file.tensors[name].kind in FORMATS
            for name in [*names, source._name(-1, "head"), _EMBEDDING]
        )

    def form(self, layer: int, name: str) -> Format:
        """See Source."""
        return FORMATS[self._file.tensors[self._name(layer, name)].kind]

    def shape(self, layer: int, name: str) -> tuple[int, int]:
        """See Source."""
        rows, columns = self._file.tensors[self._name(layer, name)].shape
        return rows, columns

    def fields(self, layer: int, name: str, start: int, stop: int) -> Fields:
        """See Source."""
        raw = self._file.read(self._name(layer, name), start, stop)
        if name in ("q", "k") and not self._file.pairs:
            raw = paired(raw, self._arch.head_dim)
        return fields(self.form(layer, name).name, raw)

    def bias(self, layer: int, name: str) -> Floats | None:
        """See Source."""
        full = self._name(layer, name).removesuffix("weight") + "bias"
        if full not in self._file:
            return None
        bias: Floats = self._file.read(full)
        if name in ("q", "k") and not self._file.pairs:
            bias = paired(bias, self._arch.head_dim)
        return bias

    def norm(self, layer: int, name: str) -> Floats:
        """See Source."""
        full = "model.norm.weight" if layer < 0 else self._name(layer, name)
        weight: Floats = self._file.read(full)
        return weight

    def embed(self, tokens: Sequence[int]) -> Floats:
        """See Source."""
        kind = self._file.tensors[_EMBEDDING].kind
        rows = [self._file.read(_EMBEDDING, token, token + 1) for token in tokens]
        return fields(kind, np.concatenate(rows)).dense()

    def _name(self, layer: int, name: str) -> str:
        if layer < 0:
            untied = "lm_head.weight"
            return untied if untied in self._file else _EMBEDDING
        return f"model.layers.{layer}.{_HF[name]}.weight"


class RowsSource:
    """The int8 rows of a store folder, and its half-precision embedding."""

    fingerprint = "rows"

    def __init__(
        self, int8: WeightsFile, weights: WeightsFile, arch: Architecture
    ) -> None:
        self._file = int8
        self._arch = arch
        self._embedding = weights.map(_EMBEDDING)
        width = arch.head_dim
        heads = arch.num_heads * width
        kv = arch.num_kv_heads * width
        middle = arch.mlp_size
        self._places = {
            "q": ("qkv", 0, heads),
            "k": ("qkv", heads, heads + kv),
            "v": ("qkv", heads + kv, heads + 2 * kv),
            "out": ("out", 0, arch.hidden_size),
            "gate": ("gate_up", 0, middle),
            "up": ("gate_up", middle, 2 * middle),
            "down": ("down", 0, arch.hidden_size),
            "head": ("head", 0, arch.vocab_size),
        }

    def form(self, layer: int, name: str) -> Format:
        """See Source."""
        del layer, name
        return FORMATS["I8"]

    def shape(self, layer: int, name: str) -> tuple[int, int]:
        """See Source."""
        key, start, stop = self._place(layer, name)
        return stop - start, self._file.shape(f"{key}.rows")[1]

    def fields(self, layer: int, name: str, start: int, stop: int) -> Fields:
        """See Source."""
        key, first, _ = self._place(layer, name)
        rows = self._file.read(f"{key}.rows")[first + start : first + stop]
        scale = self._file.read(f"{key}.scale")[first + start : first + stop]
        return rows_of_int8(rows.numpy(), scale.numpy())

    def bias(self, layer: int, name: str) -> Floats | None:
        """See Source."""
        key, first, last = self._place(layer, name)
        if f"{key}.bias" not in self._file:
            return None
        bias: Floats = self._file.read(f"{key}.bias")[first:last].numpy()
        return bias

    def norm(self, layer: int, name: str) -> Floats:
        """See Source."""
        key = "norm" if layer < 0 else f"{layer}.{name}_norm"
        weight: Floats = self._file.read(key).numpy()
        return weight

    def embed(self, tokens: Sequence[int]) -> Floats:
        """See Source."""
        rows: Floats = self._embedding[list(tokens)].float().numpy()
        return rows

    def _place(self, layer: int, name: str) -> tuple[str, int, int]:
        key, start, stop = self._places[name]
        return (key if layer < 0 else f"{layer}.{key}"), start, stop


def fits(arch: Architecture) -> bool:
    """Whether the kernels run these sizes: whole blocks, whole vectors."""
    inside = (arch.hidden_size, arch.mlp_size, arch.num_heads * arch.head_dim)
    return (
        all(size % BLOCK == 0 for size in inside)
        and arch.head_dim % 8 == 0
        and arch.num_heads % arch.num_kv_heads == 0
    )


def forms(source: Source, arch: Architecture) -> list[Format]:
    """The formats that a model's matrices have, by name."""
    found = {
        source.form(layer, name).name
        for layer in range(arch.num_layers)
        for name in MATRICES
    }
    found.add(source.form(-1, "head").name)
    return [FORMATS[name] for name in sorted(found)]


def pack_matrix(source: Source, layer: int, name: str, lanes: int) -> PackedMatrix:
    """Pack one matrix."""
    rows, columns = source.shape(layer, name)
    blocks = -(-columns // BLOCK)
    form = source.form(layer, name)
    tiles = -(-rows // lanes)
    size = form.tile_bytes(lanes, blocks)
    out = aligned(tiles * size).reshape(tiles, size)
    # The rows of a query or key head are re-ordered together, so runs end with heads.
    run = RUN_ROWS if name in ("gate", "up", "down", "out", "head", "v") else rows
    if form.scales == "row":
        run = rows
    for start in range(0, rows, run):
        stop = min(start + run, rows)
        part = pack(source.fields(layer, name, start, stop), lanes)
        out[start // lanes : start // lanes + len(part)] = part
    bias = None if layer < 0 else source.bias(layer, name)
    return PackedMatrix(form, rows, blocks, out, bias)


def pack_all(
    source: Source, arch: Architecture, lanes: int, num_threads: int
) -> tuple[list[dict[str, PackedMatrix]], PackedMatrix]:
    """Pack the layers and the head, several at a time."""
    jobs = [(layer, name) for layer in range(arch.num_layers) for name in MATRICES]
    with ThreadPoolExecutor(num_threads, "codekv-pack") as pool:
        head = pool.submit(pack_matrix, source, -1, "head", lanes)
        packed = list(
            pool.map(lambda job: pack_matrix(source, job[0], job[1], lanes), jobs)
        )
    layers: list[dict[str, PackedMatrix]] = [{} for _ in range(arch.num_layers)]
    for (layer, name), matrix in zip(jobs, packed, strict=True):
        layers[layer][name] = matrix
    return layers, head.result()


def paired(rows: NDArray[Any], head_dim: int) -> NDArray[Any]:
    """Re-order rows of each head from halves (i, i + D/2) to pairs (2i, 2i + 1)."""
    heads = rows.reshape(-1, 2, head_dim // 2, *rows.shape[1:])
    return np.ascontiguousarray(heads.swapaxes(1, 2)).reshape(rows.shape)
