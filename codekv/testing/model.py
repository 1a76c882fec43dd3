"""A tiny real transformer for tests: random weights, bytes as tokens, no downloads.

Two layers with rotary attention, a key bias and grouped heads, written as plainly as
possible: it is a slow twin of the engine's runtimes, not a fast path.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch

from codekv.cooperative import finish
from codekv.model.runtime.interface import Logits, ModelSpec
from codekv.model.runtime.rope import Rope
from codekv.storage.tensors import KVTensors
from codekv.tokens.tokenizer import Encoding, Fim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from codekv.cooperative import Cooperative

# As small as grouped attention allows; a token for each byte and four more.
WIDTH, HEADS, KV_HEADS, HEAD, LAYERS, VOCAB = 32, 4, 2, 8, 2, 260
# The four tokens behind the bytes.
PRE, SUF, MID, END = 256, 257, 258, 259


class ByteTokenizer:
    """One token per byte, and four markers."""

    vocab_size = VOCAB
    fim: Fim | None = Fim(PRE, SUF, MID, (END,))
    bos_id: int | None = None
    special_ids = frozenset({PRE, SUF, MID, END})
    fingerprint = "bytes"

    def encode(self, data: bytes) -> Encoding:
        """One token per byte."""
        return Encoding(tuple(data), tuple(range(1, len(data) + 1)))

    def token_bytes(self, token: int) -> bytes:
        """The byte, or nothing for a marker."""
        return bytes([token]) if token < PRE else b""

    def decode(self, tokens: Sequence[int]) -> bytes:
        """Concatenate."""
        return b"".join(map(self.token_bytes, tokens))

    def allowed(self, need: bytes) -> Sequence[int]:
        """The one token that begins what is needed."""
        return list(need[:1]) if need else list(range(PRE))


DEVICE_VARIABLE = "CODEKV_TINY_DEVICE"
"""Environment variable: the device on which tiny models run by default."""


class TinyRuntime:
    """A `Runtime` of two random layers in float32."""

    def __init__(self, seed: int = 0, device: str | None = None) -> None:
        """Draw the weights.

        Args:
            seed: The same seed gives the same model.
            device: Where it runs; by default what `CODEKV_TINY_DEVICE` names, or the
                CPU. See `codekv.testing.other_device` for a device to test with.
        """
        self.device = torch.device(device or os.environ.get(DEVICE_VARIABLE, "cpu"))
        make = torch.Generator().manual_seed(seed)

        def random(*shape: int) -> Tensor:
            drawn = torch.randn(*shape, generator=make) / shape[-1] ** 0.5
            return drawn.to(self.device)

        self.spec = ModelSpec(
            name="tiny",
            family="tiny",
            kv_shapes=((KV_HEADS, HEAD, HEAD),) * LAYERS,
            vocab_size=VOCAB,
            max_positions=4096,
            compute="fp32",
            device=self.device.type,
            fingerprint=f"tiny-{seed}",
            movable=(True,) * LAYERS,
            key_bias=True,
            eos_ids=(END,),
        )
        self.rope: Rope | None = Rope(
            1.0 / 100.0 ** (torch.arange(0, HEAD, 2, device=self.device).float() / HEAD)
        )
        self._embedding = random(VOCAB, WIDTH) * WIDTH**0.5
        self._layers = [
            (
                random(HEADS * HEAD, WIDTH) * 2,
                random(KV_HEADS * HEAD, WIDTH) * 2,
                random(KV_HEADS * HEAD, WIDTH),
                random(WIDTH, HEADS * HEAD),
            )
            for _ in range(LAYERS)
        ]
        self.key_bias_LHD: list[Tensor] | None = [
            random(KV_HEADS, HEAD) * 5 for _ in range(LAYERS)
        ]
        self.num_forward = 0

    def new_kv(self, capacity: int) -> KVTensors:
        """Allocate working tensors."""
        shapes = list(self.spec.kv_shapes)
        return KVTensors(shapes, capacity, torch.float32, self.device)

    def forward(
        self, kv: KVTensors, tokens: Sequence[int], start: int, logits: Logits = "last"
    ) -> Tensor | None:
        """See `Runtime.forward`."""
        return finish(self.forward_in_steps(kv, tokens, start, logits))

    def forward_in_steps(
        self, kv: KVTensors, tokens: Sequence[int], start: int, logits: Logits = "last"
    ) -> Cooperative[Tensor | None]:
        """See `Runtime.forward_in_steps`."""
        slots = torch.arange(start, start + len(tokens), device=self.device)
        rows = yield from self._run(kv, tokens, slots, slots, None)
        if logits == "none":
            return None
        return rows[-1:] if logits == "last" else rows

    def forward_scattered(
        self,
        kv: KVTensors,
        tokens: Sequence[int],
        slots: Sequence[int],
        logits: Logits = "none",
    ) -> Tensor | None:
        """See `Runtime.forward_scattered`."""
        places = torch.tensor(slots, device=self.device)
        rows = finish(self._run(kv, tokens, places, places, None))
        if logits == "none":
            return None
        return rows[-1:] if logits == "last" else rows

    def forward_tree(
        self,
        kv: KVTensors,
        tokens: Sequence[int],
        parents: Sequence[int],
        start: int,
        known: int = 0,
    ) -> Tensor:
        """See `Runtime.forward_tree`."""
        count = len(tokens)
        visible = torch.zeros(
            count, start + count, dtype=torch.bool, device=self.device
        )
        visible[:, :start] = True
        positions = torch.zeros(count, dtype=torch.long, device=self.device)
        for i, parent in enumerate(parents):
            positions[i] = start if parent < 0 else positions[parent] + 1
            if parent >= 0:
                visible[i] |= visible[parent]
            visible[i, start + i] = True
        slots = torch.arange(start + known, start + count, device=self.device)
        rest = tokens[known:]
        part = positions[known:], visible[known:]
        return finish(self._run(kv, rest, slots, *part))

    def keep_path(self, kv: KVTensors, start: int, path: Sequence[int]) -> None:
        """See `Runtime.keep_path`."""
        index = torch.tensor([start + i for i in path], device=self.device)
        for store in (*kv.keys, *kv.values):
            store[:, start : start + len(path)] = store[:, index].clone()

    def _run(
        self,
        kv: KVTensors,
        tokens: Sequence[int],
        slots: Tensor,
        positions: Tensor,
        visible: Tensor | None,
    ) -> Cooperative[Tensor]:
        self.num_forward += len(tokens)
        assert self.rope is not None
        assert self.key_bias_LHD is not None
        x = self._embedding[torch.tensor(list(tokens), device=self.device)]
        end = int(slots.max()) + 1
        if visible is None:
            visible = torch.arange(end, device=self.device)[None, :] <= slots[:, None]
        for layer, (wq, wk, wv, wo) in enumerate(self._layers):
            h = x / x.pow(2).mean(-1, keepdim=True).sqrt()
            q = (h @ wq.T).view(-1, HEADS, HEAD).transpose(0, 1)
            k = (h @ wk.T).view(-1, KV_HEADS, HEAD).transpose(0, 1)
            k = k + self.key_bias_LHD[layer][:, None]
            v = (h @ wv.T).view(-1, KV_HEADS, HEAD).transpose(0, 1)
            kv.keys[layer][:, slots] = self.rope.rotate(k, positions)
            kv.values[layer][:, slots] = v
            group = HEADS // KV_HEADS
            keys = kv.keys[layer][:, :end].repeat_interleave(group, 0)
            values = kv.values[layer][:, :end].repeat_interleave(group, 0)
            scores = self.rope.rotate(q, positions) @ keys.transpose(1, 2) / HEAD**0.5
            scores = scores.masked_fill(~visible, -torch.inf)
            mixed = (scores.softmax(-1) @ values).transpose(0, 1).flatten(1)
            x = x + mixed @ wo.T
            yield
        return x @ self._embedding.T
