"""One step of a Llama-like decoder over working KV tensors.

The matrices come as `Linear`s, so int8, float32 and half precision run the same code.
Dimension key: T tokens of this step, H heads, K kv heads, G heads per kv head, S slots,
D head width, E hidden size, V vocabulary. Knows nothing of prompts or blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from codekv.model.attention import Attention, CausalAttention, MaskedAttention
from codekv.storage.tensors import KVTensors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from codekv.model.architecture import Architecture
    from codekv.model.layers import Layer
    from codekv.model.linear import Linear
    from codekv.model.rope import Rope
    from codekv.model.runtime import Logits, ModelSpec


class Decoder:
    """The `Runtime` of the Llama and Qwen2 family."""

    def __init__(
        self,
        spec: ModelSpec,
        arch: Architecture,
        layers: list[Layer[Linear]],
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
        stop = start + len(tokens)
        turns_T1C = self._turns(stop)[start:stop]
        attention = CausalAttention(self._arch, start, stop)
        x_TE = self._run(kv, tokens, turns_T1C, attention)
        if logits == "none":
            return None
        return self._logits(x_TE if logits == "all" else x_TE[-1:])

    @torch.inference_mode()
    def forward_scattered(
        self, kv: KVTensors, tokens: Sequence[int], slots: Sequence[int]
    ) -> None:
        """Recompute tokens in place at ascending slots; see `Runtime`."""
        slots_T = torch.tensor(slots, device=self._device)
        stop = slots[-1] + 1
        turns_T1C = self._turns(stop)[slots_T]
        every_S = torch.arange(stop, device=self._device)
        mask_TS = every_S[None, :] <= slots_T[:, None]
        self._run(kv, tokens, turns_T1C, MaskedAttention(self._arch, slots_T, mask_TS))

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
        slots_T = torch.arange(start + known, start + count, device=self._device)
        mask_TS = mask_TS[known:].to(self._device)
        attention = MaskedAttention(self._arch, slots_T, mask_TS)
        return self._logits(self._run(kv, tokens[known:], turns_T1C, attention))

    def keep_path(self, kv: KVTensors, start: int, path: Sequence[int]) -> None:
        """Move the tree's tokens `path` to slots from `start`; see `Runtime`."""
        keep_path(kv, start, path)

    def _run(
        self,
        kv: KVTensors,
        tokens: Sequence[int],
        turns_T1C: Tensor,
        attention: Attention,
    ) -> Tensor:
        arch, eps = self._arch, self._arch.norm_eps
        count, num_turned = len(tokens), arch.num_heads + arch.num_kv_heads
        x_TE = self._ends.embed(tokens)
        for index, layer in enumerate(self._layers):
            h_TE = functional.rms_norm(
                x_TE, (arch.hidden_size,), layer.attention_norm, eps
            )
            qkv_THD = layer.qkv(h_TE).view(count, -1, arch.head_dim)
            pairs_THCP = qkv_THD[:, :num_turned].unflatten(-1, (-1, 2))
            turned_THC = torch.view_as_complex(pairs_THCP) * turns_T1C
            qk_THD = torch.view_as_real(turned_THC).flatten(-2)
            mixed_TE = attention(
                qk_THD[:, : arch.num_heads],
                (qk_THD[:, arch.num_heads :], qkv_THD[:, num_turned:]),
                (kv.keys[index], kv.values[index]),
            )
            x_TE = x_TE + layer.out(mixed_TE)
            h_TE = functional.rms_norm(x_TE, (arch.hidden_size,), layer.mlp_norm, eps)
            gate_TM, up_TM = layer.gate_up(h_TE).chunk(2, dim=-1)
            x_TE += layer.down(functional.silu(gate_TM) * up_TM)
        return x_TE

    def _logits(self, x_TE: Tensor) -> Tensor:
        arch = self._arch
        h_TE = functional.rms_norm(
            x_TE, (arch.hidden_size,), self._ends.norm, arch.norm_eps
        )
        return self._ends.head(h_TE)

    def _turns(self, count: int) -> Tensor:
        """Unit complex numbers [P, 1, D / 2] for at least `count` positions."""
        if self._turns_PC.shape[0] < count:
            size = max(2 * self._turns_PC.shape[0], count, 2048)
            positions_P = torch.arange(size, device=self._device)
            cos, sin = self._arch.rope.tables(positions_P)
            self._turns_PC = torch.complex(cos, sin)[:, None, :]
        return self._turns_PC


class Ends:
    """What stands before the first layer and after the last."""

    def __init__(
        self,
        embedding_VE: Tensor,
        norm: Tensor,
        head: Linear,
        key_bias_LHD: list[Tensor] | None,
    ) -> None:
        self._embedding_VE = embedding_VE
        self.norm = norm
        self.head = head
        self.key_bias_LHD = key_bias_LHD

    def embed(self, tokens: Sequence[int]) -> Tensor:
        """Rows of the embedding in float32 [T, E], new."""
        ids_T = torch.tensor(tokens, device=self._embedding_VE.device)
        return self._embedding_VE[ids_T].to(torch.float32)


def keep_path(kv: KVTensors, start: int, path: Sequence[int]) -> None:
    """Copy slots `start + path[i]` to `start + i` in every layer."""
    if list(path) == list(range(len(path))):
        return
    source = [start + index for index in path]
    for tensors in (kv.keys, kv.values):
        for tensor_HSD in tensors:
            tensor_HSD[:, start : start + len(source)] = tensor_HSD[:, source]
