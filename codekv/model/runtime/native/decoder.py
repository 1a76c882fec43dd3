"""The `Runtime` whose whole step is native code.

The same operations serve prompts, steps of one, trees of drafts and repairs, and every
token's sums have an order of their own: what is computed does not depend on how a text
was cut into calls, nor on the number of threads. `tests/codekv/model/runtime/native`
compares each operation with numpy and the whole with the torch decoder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

from codekv.cooperative import finish
from codekv.model.runtime.attention_probe import AttentionMeter
from codekv.model.runtime.decoder import keep_path
from codekv.model.runtime.native.layers import (
    ATTENTION_FROM,
    MAX_TOKENS,
    PER_LAYER,
    LayersProgram,
)
from codekv.storage.tensors import KVTensors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from codekv.cooperative import Cooperative
    from codekv.model.runtime.architecture import Architecture
    from codekv.model.runtime.interface import Logits, ModelSpec
    from codekv.model.runtime.native.matrices import Source
    from codekv.model.runtime.native.pool import Pool
    from codekv.model.runtime.rope import Rope


class NativeDecoder:
    """The `Runtime` of the Llama and Qwen2 family, in native code."""

    def __init__(
        self,
        spec: ModelSpec,
        arch: Architecture,
        source: Source,
        program: LayersProgram,
        pool: Pool,
        key_bias_LHD: list[Tensor] | None,
    ) -> None:
        """Take loaded parts; `load.py` makes them."""
        self.spec = spec
        self.rope: Rope | None = arch.rope
        self.key_bias_LHD = key_bias_LHD
        self._arch = arch
        self._source = source
        self._program = program
        self._pool = pool
        self._tables_P2D = np.zeros((0, 2, arch.head_dim), np.float32)
        self._listed = np.zeros(1, np.int64)

    @property
    def num_weight_bytes(self) -> int:
        """Bytes of packed weights that a step reads."""
        return self._program.num_bytes

    def new_kv(self, capacity: int) -> KVTensors:
        """Allocate working tensors for one sequence."""
        shapes = list(self.spec.kv_shapes)
        return KVTensors(shapes, capacity, torch.float32, torch.device("cpu"))

    def forward(
        self,
        kv: KVTensors,
        tokens: Sequence[int],
        start: int,
        logits: Logits = "last",
    ) -> Tensor | None:
        """Compute tokens at slots [start, start + n); see `Runtime`."""
        return finish(self._forward(kv, tokens, start, logits, pauses=False))

    def forward_in_steps(
        self, kv: KVTensors, tokens: Sequence[int], start: int, logits: Logits = "last"
    ) -> Cooperative[Tensor | None]:
        """The same, set aside after every layer; see `Runtime`."""
        return (yield from self._forward(kv, tokens, start, logits, pauses=True))

    def _forward(
        self,
        kv: KVTensors,
        tokens: Sequence[int],
        start: int,
        logits: Logits,
        *,
        pauses: bool,
    ) -> Cooperative[Tensor | None]:
        rows: list[Tensor] = []
        for first in range(0, len(tokens), MAX_TOKENS):
            part = tokens[first : first + MAX_TOKENS]
            slots = np.arange(start + first, start + first + len(part))
            straight = slots + 1
            last = first + len(part) == len(tokens)
            want = logits if last or logits == "all" else "none"
            found = yield from self._step(
                kv, part, (slots, slots), (straight, []), want, pauses=pauses
            )
            if found is not None:
                rows.append(found)
        if logits == "none":
            return None
        return rows[0] if len(rows) == 1 else torch.cat(rows)

    def forward_scattered(
        self,
        kv: KVTensors,
        tokens: Sequence[int],
        slots: Sequence[int],
        logits: Logits = "none",
    ) -> Tensor | None:
        """Recompute tokens in place at ascending slots; see `Runtime`."""
        rows: list[Tensor] = []
        for first in range(0, len(tokens), MAX_TOKENS):
            part = tokens[first : first + MAX_TOKENS]
            at = np.array(slots[first : first + MAX_TOKENS], np.int64)
            last = first + len(part) == len(tokens)
            want = logits if last or logits == "all" else "none"
            found = finish(
                self._step(kv, part, (at, at), (at + 1, []), want, pauses=False)
            )
            if found is not None:
                rows.append(found)
        if logits == "none":
            return None
        return rows[0] if len(rows) == 1 else torch.cat(rows)

    def forward_tree(
        self,
        kv: KVTensors,
        tokens: Sequence[int],
        parents: Sequence[int],
        start: int,
        known: int = 0,
    ) -> Tensor:
        """Compute a tree of continuations in one step; see `Runtime`."""
        paths: list[list[int]] = []
        for index, parent in enumerate(parents):
            before = paths[parent] if parent >= 0 else []
            paths.append([*before, start + index])
        rows: list[Tensor] = []
        # A token's ancestors stand before it, so a large tree may be cut anywhere.
        for first in range(known, len(tokens), MAX_TOKENS):
            stop = min(first + MAX_TOKENS, len(tokens))
            own = paths[first:stop]
            slots = np.arange(start + first, start + stop)
            positions = np.array([start + len(path) - 1 for path in own], np.int64)
            straight = np.full(len(own), start)
            step = self._step(
                kv,
                tokens[first:stop],
                (slots, positions),
                (straight, own),
                "all",
                pauses=False,
            )
            found = finish(step)
            assert found is not None, "all logits were asked for"
            rows.append(found)
        return rows[0] if len(rows) == 1 else torch.cat(rows)

    def keep_path(self, kv: KVTensors, start: int, path: Sequence[int]) -> None:
        """Move the tree's tokens `path` to slots from `start`; see `Runtime`."""
        keep_path(kv, start, path)

    def _step(
        self,
        kv: KVTensors,
        tokens: Sequence[int],
        places: tuple[NDArray[np.int64], NDArray[np.int64]],
        seen: tuple[NDArray[np.int64], list[list[int]]],
        logits: Logits,
        *,
        pauses: bool,
    ) -> Cooperative[Tensor | None]:
        """Run all layers over at most `MAX_TOKENS` tokens.

        Args:
            kv: Working tensors.
            tokens: What to compute.
            places: Slots and positions of the tokens.
            seen: How many slots from 0 on each token sees, and, for a tree, the list
                of the further slots it sees.
            logits: Which rows are wanted.
            pauses: Whether to be set aside after every layer. Another step may then
                come between, so what the buffers held is saved and put back.
        """
        count = len(tokens)
        state = self._source.embed(tokens)
        program, pool = self._program, self._pool
        for layer in range(self._arch.num_layers):
            if layer == 0 or pauses:
                self._fill(kv, count, places, seen)
                program.buffers.x[:count] = state
            first = layer * PER_LAYER
            if AttentionMeter.num_active:
                pool.run(program.rows, first, first + ATTENTION_FROM)
                self._show_attention(kv, layer, count, places[0])
                pool.run(program.rows, first + ATTENTION_FROM, first + PER_LAYER)
            elif pauses:
                pool.run(program.rows, first, first + PER_LAYER)
            if pauses:
                state = program.buffers.x[:count].copy()
                yield
        if pauses:
            program.buffers.x[:count] = state
        elif not AttentionMeter.num_active:
            pool.run(program.rows, 0, len(program.rows))
        if logits == "none":
            return None
        first = 0 if logits == "all" else count - 1
        out_TV = torch.empty(count - first, self.spec.vocab_size)
        rows = program.head(first, count - first, out_TV.data_ptr())
        pool.run(rows, 0, len(rows))
        return out_TV

    def _fill(
        self,
        kv: KVTensors,
        count: int,
        places: tuple[NDArray[np.int64], NDArray[np.int64]],
        seen: tuple[NDArray[np.int64], list[list[int]]],
    ) -> None:
        buffers = self._program.buffers
        slots, positions = places
        straight, paths = seen
        buffers.slots[:count], buffers.positions[:count] = slots, positions
        table = buffers.seen[:count]
        table[:, 0], table[:, 3] = straight, straight
        flat = [slot for path in paths for slot in path]
        self._listed = np.array(flat or [0], np.int64)
        table[:, 2] = self._listed.ctypes.data
        if paths:
            lengths = np.array([len(path) for path in paths])
            table[:, 2] += 8 * (np.cumsum(lengths) - lengths)
            table[:, 3] += lengths
        pointers = tuple(
            [tensor.data_ptr() for tensor in tensors]
            for tensors in (kv.keys, kv.values)
        )
        stride = kv.capacity * self._arch.head_dim
        tables = self._tables(int(positions.max()) + 1)
        self._program.fill(count, (pointers[0], pointers[1]), stride, tables)

    def _tables(self, count: int) -> NDArray[np.float32]:
        """Cosines and sines [P, 2, D], each number twice, for neighbouring pairs."""
        if len(self._tables_P2D) < count:
            size = max(2 * len(self._tables_P2D), count, 2048)
            cos, sin = self._arch.rope.tables(torch.arange(size))
            both = np.empty((size, 2, self._arch.head_dim), np.float32)
            both[:, 0, 0::2] = both[:, 0, 1::2] = cos.numpy()
            both[:, 1, 0::2], both[:, 1, 1::2] = -sin.numpy(), sin.numpy()
            self._tables_P2D = both
        return self._tables_P2D

    def _show_attention(
        self, kv: KVTensors, layer: int, count: int, slots: NDArray[np.int64]
    ) -> None:
        """Let the meter see this layer's attention, through torch's function."""
        arch, stop = self._arch, int(slots[-1]) + 1
        shape = (count, arch.num_kv_heads, arch.group_size, arch.head_dim)
        width = arch.num_heads * arch.head_dim
        query = torch.from_numpy(self._program.buffers.qkv[:count, :width])
        query_KGTD = query.view(shape).permute(1, 2, 0, 3)
        keys, values = (t[layer][:, None, :stop] for t in (kv.keys, kv.values))
        own = torch.from_numpy(slots)[:, None]
        mask_TS = torch.arange(stop)[None] <= own
        functional.scaled_dot_product_attention(
            query_KGTD,
            keys.expand(-1, arch.group_size, -1, -1),
            values.expand(-1, arch.group_size, -1, -1),
            attn_mask=mask_TS,
        )
