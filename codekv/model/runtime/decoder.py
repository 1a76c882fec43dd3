"""One step of a Llama-like decoder over working KV tensors.

The matrices come as `Linear`s, so int8, float32 and half precision run the same code.
Dimension key: T tokens of this step, H heads, K kv heads, G heads per kv head, S slots,
D head width, E hidden size, V vocabulary. Knows nothing of prompts or blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from codekv.cooperative import finish
from codekv.model.runtime.attention import GroupedAttention, causal
from codekv.storage.tensors import KVTensors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from codekv.cooperative import Cooperative
    from codekv.model.runtime.architecture import Architecture
    from codekv.model.runtime.interface import Logits, ModelSpec
    from codekv.model.runtime.layers import Layer
    from codekv.model.runtime.linear import Linear, Norm
    from codekv.model.runtime.rope import Rope

MLP_ROWS = 128
"""Tokens at a time in the wide middle layer, so that its rows stay in the cache."""


class LlamaDecoder:
    """The `Runtime` of the Llama and Qwen2 family."""

    def __init__(
        self,
        spec: ModelSpec,
        arch: Architecture,
        layers: list[Layer[Linear, Norm]],
        ends: Ends,
        kv_dtype: torch.dtype,
    ) -> None:
        """Take loaded parts; `loader.py` makes them."""
        self.spec = spec
        self.rope: Rope | None = arch.rope
        self.key_bias_LHD: list[Tensor] | None = ends.key_bias_LHD
        self._arch = arch
        self._layers = layers
        self._ends = ends
        self._kv_dtype = kv_dtype
        self._device = torch.device(spec.device)
        self._turns_PC = torch.empty(0)

    def new_kv(self, capacity: int) -> KVTensors:
        """Allocate working tensors for one sequence."""
        shapes = list(self.spec.kv_shapes)
        return KVTensors(shapes, capacity, self._kv_dtype, self._device)

    @torch.inference_mode()
    def forward(
        self,
        kv: KVTensors,
        tokens: Sequence[int],
        start: int,
        logits: Logits = "last",
    ) -> Tensor | None:
        """Compute tokens at slots [start, start + n); see `Runtime`."""
        return finish(self._forward(kv, tokens, start, logits))

    @torch.inference_mode()
    def forward_in_steps(
        self, kv: KVTensors, tokens: Sequence[int], start: int, logits: Logits = "last"
    ) -> Cooperative[Tensor | None]:
        """The same, set aside after every layer; see `Runtime`."""
        return (yield from self._forward(kv, tokens, start, logits))

    def _forward(
        self, kv: KVTensors, tokens: Sequence[int], start: int, logits: Logits
    ) -> Cooperative[Tensor | None]:
        stop = start + len(tokens)
        turns_T1C = self._turns(stop)[start:stop]
        attention = causal(self._arch, start, stop, (self._kv_dtype, self._device))
        x_TE = yield from self._run(kv, tokens, turns_T1C, attention)
        if logits == "none":
            return None
        return self._logits(x_TE if logits == "all" else x_TE[-1:])

    @torch.inference_mode()
    def forward_scattered(
        self,
        kv: KVTensors,
        tokens: Sequence[int],
        slots: Sequence[int],
        logits: Logits = "none",
    ) -> Tensor | None:
        """Recompute tokens in place at ascending slots; see `Runtime`."""
        slots_T = torch.tensor(slots, device=self._device)
        stop = slots[-1] + 1
        turns_T1C = self._turns(stop)[slots_T]
        every_S = torch.arange(stop, device=self._device)
        mask_TS = every_S[None, :] <= slots_T[:, None]
        attention = GroupedAttention(self._arch, slots_T, mask_TS, self._kv_dtype)
        x_TE = finish(self._run(kv, tokens, turns_T1C, attention))
        if logits == "none":
            return None
        return self._logits(x_TE if logits == "all" else x_TE[-1:])

    @torch.inference_mode()
    def forward_tree(
        self,
        kv: KVTensors,
        tokens: Sequence[int],
        parents: Sequence[int],
        start: int,
        known: int = 0,
    ) -> Tensor:
        """Compute a tree of continuations in one step; see `Runtime`."""
        count = len(tokens)
        depth: list[int] = []
        mask_TS = torch.zeros(count, start + count, dtype=torch.bool)
        mask_TS[:, :start] = True
        for index, parent in enumerate(parents):
            depth.append(0 if parent < 0 else depth[parent] + 1)
            if parent >= 0:
                mask_TS[index, start:] = mask_TS[parent, start:]
            mask_TS[index, start + index] = True
        positions_T = torch.tensor(depth[known:], device=self._device) + start
        turns_T1C = self._turns(start + max(depth) + 1)[positions_T]
        slots = slice(start + known, start + count)
        seen_TS = mask_TS[known:].to(self._device)
        attention = GroupedAttention(self._arch, slots, seen_TS, self._kv_dtype)
        return self._logits(finish(self._run(kv, tokens[known:], turns_T1C, attention)))

    def keep_path(self, kv: KVTensors, start: int, path: Sequence[int]) -> None:
        """Move the tree's tokens `path` to slots from `start`; see `Runtime`."""
        keep_path(kv, start, path)

    def _run(
        self,
        kv: KVTensors,
        tokens: Sequence[int],
        turns_T1C: Tensor,
        attention: GroupedAttention,
    ) -> Cooperative[Tensor]:
        head_dim = self._arch.head_dim
        num_turned = self._arch.num_heads + self._arch.num_kv_heads
        shape = (len(tokens), -1, head_dim)
        turned_shape = (len(tokens), num_turned, head_dim // 2, 2)
        x_TE = self._ends.embed(tokens)
        for layer, keys, values in zip(self._layers, kv.keys, kv.values, strict=True):
            qkv_THD = layer.qkv.project(x_TE, layer.attention_norm).view(shape)
            pairs = qkv_THD[:, :num_turned].view(turned_shape)
            torch.view_as_complex(pairs).mul_(turns_T1C)
            layer.out.add_to(x_TE, attention(qkv_THD, keys, values), None)
            for part_TE in x_TE.split(MLP_ROWS):
                h_TM, factor_T1 = layer.gate_up.gate(part_TE, layer.mlp_norm)
                layer.down.add_to(part_TE, h_TM, factor_T1)
            yield
        return x_TE

    def _logits(self, x_TE: Tensor) -> Tensor:
        return self._ends.head().project(x_TE, self._ends.norm)

    def _turns(self, count: int) -> Tensor:
        """Unit complex numbers [P, 1, D / 2] for at least `count` positions."""
        if self._turns_PC.shape[0] < count:
            size = max(2 * self._turns_PC.shape[0], count, 2048)
            positions_P = torch.arange(size, device=self._device)
            cos, sin = self._arch.rope.tables(positions_P)
            self._turns_PC = torch.complex(cos, sin)[:, None, :]
        return self._turns_PC


@dataclass(frozen=True, slots=True)
class Ends:
    """What stands before the first layer and after the last.

    Attributes:
        embedding_VE: May be a mapped file in half precision.
        norm: Before the head.
        head: Gives the head's matrix; may wait until it is packed.
        key_bias_LHD: For storage; see `Runtime`.
    """

    embedding_VE: Tensor
    norm: Norm
    head: Callable[[], Linear]
    key_bias_LHD: list[Tensor] | None

    def embed(self, tokens: Sequence[int]) -> Tensor:
        """Rows of the embedding in float32 [T, E], new."""
        ids_T = torch.tensor(tokens, device=self.embedding_VE.device)
        return self.embedding_VE[ids_T].to(torch.float32)


def keep_path(kv: KVTensors, start: int, path: Sequence[int]) -> None:
    """Copy slots `start + path[i]` to `start + i` in every layer."""
    if list(path) == list(range(len(path))):
        return
    source = [start + index for index in path]
    for tensors in (kv.keys, kv.values):
        for tensor_HSD in tensors:
            tensor_HSD[:, start : start + len(source)] = tensor_HSD[:, source]
