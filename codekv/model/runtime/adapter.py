"""Any causal model of transformers as a `Runtime`, slowly.

The path for architectures that the own decoder does not run, and the slow twin it is
tested against: the plain forward of the library, whose cache is replaced by one that
writes into working KV tensors. Trees and scattered repairs are done one branch or one
run at a time, so no mask of ours is involved.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from codekv.model.runtime.decoder import keep_path
from codekv.storage.tensors import KVTensors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from codekv.cooperative import Cooperative
    from codekv.model.runtime.interface import Logits, ModelSpec
    from codekv.model.runtime.rope import Rope


STEP_TOKENS = 32
"""Tokens of one step of idle work."""


class KVLayer(CacheLayerMixin):  # type: ignore[misc]
    """One layer of `KVCache`."""

    is_sliding = False
    supports_early_init = False

    def __init__(self, kv: KVTensors, layer: int, start: int) -> None:
        super().__init__()
        self._kv = kv
        self._layer = layer
        self._start = start
        self.is_initialized = True
        self.keys, self.values = kv.keys[layer][None], kv.values[layer][None]

    def lazy_initialization(self, *_: Any) -> None:
        """Nothing to do: the tensors exist."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Write this call's slots; return everything up to them."""
        stop = self._start + key_states.shape[-2]
        self._kv.write(self._layer, self._start, key_states[0], value_states[0])
        keys_HSD, values_HSD = self._kv.read(self._layer, 0, stop)
        return keys_HSD[None], values_HSD[None]

    def get_mask_sizes(self, query_length: Any) -> tuple[int, int]:
        """Visible length and its offset; older versions pass a tensor of positions."""
        count = query_length if isinstance(query_length, int) else len(query_length)
        return self._start + count, 0

    def get_seq_length(self, *_: Any) -> int:
        """Slots before this call."""
        return self._start

    def get_max_length(self) -> int:
        """Unbounded, as far as masks are concerned."""
        return -1

    get_max_cache_shape = get_max_length


class KVCache(Cache):  # type: ignore[misc]
    """A transformers cache over working KV tensors, good for one call at `start`."""

    def __init__(self, kv: KVTensors, start: int) -> None:
        super().__init__(layers=[KVLayer(kv, i, start) for i in range(len(kv.shapes))])


class Adapter:
    """The `Runtime` of every causal model that transformers can run."""

    def __init__(
        self,
        spec: ModelSpec,
        model: Any,
        rope: Rope | None,
        key_bias_LHD: list[Tensor] | None,
    ) -> None:
        """Take a loaded model in evaluation mode; `loader.py` makes it."""
        self.spec = spec
        self.rope = rope
        self.key_bias_LHD = key_bias_LHD
        self._model = model
        self._device = torch.device(spec.device)
        # The library renamed the argument; both spellings are in use.
        renamed = accepts(model, "cache")
        self._cache_argument = "cache" if renamed else "past_key_values"
        self._can_skip_logits = accepts(model, "logits_to_keep")

    def new_kv(self, capacity: int) -> KVTensors:
        """Allocate working tensors for one sequence."""
        shapes = list(self.spec.kv_shapes)
        return KVTensors(shapes, capacity, self._model.dtype, self._device)

    @torch.inference_mode()
    def forward(
        self,
        kv: KVTensors,
        tokens: Sequence[int],
        start: int,
        logits: Logits = "last",
    ) -> Tensor | None:
        """Compute tokens at slots [start, start + n); see `Runtime`."""
        extra: dict[str, Any] = {}
        if self._can_skip_logits:
            extra["logits_to_keep"] = 0 if logits == "all" else 1
        out = self._model(
            input_ids=torch.tensor([list(tokens)], device=self._device),
            use_cache=True,
            **{self._cache_argument: KVCache(kv, start)},
            **extra,
        )
        if logits == "none":
            return None
        rows: Tensor = out.logits[0].to(torch.float32)
        return rows if logits == "all" else rows[-1:]

    def forward_in_steps(
        self, kv: KVTensors, tokens: Sequence[int], start: int, logits: Logits = "last"
    ) -> Cooperative[Tensor | None]:
        """The same a few tokens at a time: the library's layers cannot be left."""
        rows = []
        for begin in range(0, len(tokens), STEP_TOKENS):
            part = tokens[begin : begin + STEP_TOKENS]
            is_last = begin + len(part) == len(tokens)
            wanted = logits if logits == "all" or is_last else "none"
            row = self.forward(kv, part, start + begin, wanted)
            rows += [] if row is None else [row]
            yield
        return torch.cat(rows) if rows else None

    def forward_scattered(
        self,
        kv: KVTensors,
        tokens: Sequence[int],
        slots: Sequence[int],
        logits: Logits = "none",
    ) -> Tensor | None:
        """Recompute tokens in place, one run of neighbouring slots at a time."""
        begin = 0
        rows: list[Tensor | None] = []
        for end in range(1, len(slots) + 1):
            if end == len(slots) or slots[end] != slots[end - 1] + 1:
                rows.append(self.forward(kv, tokens[begin:end], slots[begin], logits))
                begin = end
        found = [row for row in rows if row is not None]
        if not found:
            return None
        return torch.cat(found) if logits == "all" else found[-1]

    def forward_tree(
        self,
        kv: KVTensors,
        tokens: Sequence[int],
        parents: Sequence[int],
        start: int,
        known: int = 0,
    ) -> Tensor:
        """Compute a tree token by token, each after its own ancestors."""
        paths: list[list[int]] = []
        done = KVTensors(kv.shapes, len(tokens), self._model.dtype, self._device)
        for layer in range(self.spec.num_layers):
            done.write(layer, 0, *kv.read(layer, start, start + known))
        rows = []
        for index, parent in enumerate(parents):
            above = paths[parent] if parent >= 0 else []
            paths.append([*above, index])
            if index < known:
                continue
            slot = start + len(above)
            for layer in range(self.spec.num_layers):
                keys_HSD, values_HSD = done.keys[layer], done.values[layer]
                kv.write(layer, start, keys_HSD[:, above], values_HSD[:, above])
            rows.append(self.forward(kv, [tokens[index]], slot, "last"))
            for layer in range(self.spec.num_layers):
                done.write(layer, index, *kv.read(layer, slot, slot + 1))
        for layer in range(self.spec.num_layers):
            kv.write(layer, start, done.keys[layer], done.values[layer])
        return torch.cat([row for row in rows if row is not None])

    def keep_path(self, kv: KVTensors, start: int, path: Sequence[int]) -> None:
        """Move the tree's tokens `path` to slots from `start`; see `Runtime`."""
        keep_path(kv, start, path)


def accepts(model: Any, argument: str) -> bool:
    """Whether the model's forward takes the argument."""
    return argument in inspect.signature(model.forward).parameters
