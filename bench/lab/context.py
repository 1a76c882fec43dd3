"""A text as the laboratory sees it: tokens, classes, blocks, keys and values.

Dimension key: H kv head, T token, D head width, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from bench.lab.corpus import LANGUAGE, LabText
from codekv.engine.live_sequence import LiveSequence
from codekv.engine.reuse.kv_transfer import read_block
from codekv.structure.blocks import blocks_of
from codekv.structure.classes import token_classes
from codekv.structure.parser import Parser
from codekv.structure.segment import segments
from codekv.text.snapshot import Snapshot

if TYPE_CHECKING:
    from torch import Tensor

    from codekv.model.runtime.interface import Runtime
    from codekv.storage.encoded import Planes
    from codekv.storage.tensors import KVTensors
    from codekv.tokens.tokenizer import Tokenizer

NUM_CONTEXT = 1024
"""Tokens that are stored: what a prompt of the product has on an ordinary machine."""

NUM_PROBE = 128
"""Tokens behind the context on which divergence is measured."""

BLOCK_TOKENS = 256
"""The product's largest block (`kvcache.chunk_size`)."""


@dataclass(frozen=True, slots=True)
class Text:
    """A tokenised sample.

    Attributes:
        tokens: Context and probe.
        classes: Syntax class of every context token.
        blocks: Runs of context tokens that are stored together.
    """

    name: str
    tokens: tuple[int, ...]
    classes: bytes
    blocks: tuple[tuple[int, int], ...]

    @property
    def num_context(self) -> int:
        """Tokens that are stored; the others are the probe."""
        return len(self.classes)


@dataclass(frozen=True, slots=True, eq=False)
class Exact:
    """What the unharmed model makes of a text.

    Attributes:
        planes: Canonical keys and values of the context, as the codec takes them.
        cached: Per layer keys (rotated) and values as attention uses them.
        logits: float32 [probe tokens, V].
        probs: Their softmax.
    """

    planes: Planes
    cached: Planes
    logits: Tensor
    probs: Tensor


def read_text(
    tokenizer: Tokenizer, sample: LabText, num_context: int, num_probe: int
) -> Text:
    """Tokenise, class and cut a sample as the server would."""
    snapshot = Snapshot.from_bytes(f"file:///{sample.name}", 0, LANGUAGE, sample.data)
    encoding = tokenizer.encode(snapshot.data)
    tree = Parser().parse(snapshot, None)
    classes = token_classes(tree, encoding.ends)[:num_context]
    found = blocks_of(tree, segments(tree), encoding.ends, BLOCK_TOKENS)
    blocks = [(start, min(stop, num_context)) for start, stop in found]
    return Text(
        sample.name,
        tuple(encoding.ids[: num_context + num_probe]),
        classes,
        tuple((start, stop) for start, stop in blocks if start < stop),
    )


def compute_exact(runtime: Runtime, kv: KVTensors, text: Text) -> Exact:
    """Run the model over a text; `kv` is **overwritten**."""
    size = text.num_context
    runtime.forward(kv, text.tokens[:size], 0, "none")
    logits = probe(runtime, kv, text)
    cached = [
        (keys.clone(), values.clone())
        for keys, values in (kv.read(layer, 0, size) for layer in layers(runtime))
    ]
    planes = read_block(runtime, LiveSequence(kv), 0, size)
    return Exact(planes, cached, logits, torch.softmax(logits, dim=-1))


def probe(runtime: Runtime, kv: KVTensors, text: Text) -> Tensor:
    """Logits [P, V] over the probe tokens, given the context in `kv`.

    The tokens behind the context are computed and written to `kv`.
    """
    logits = runtime.forward(
        kv, text.tokens[text.num_context :], text.num_context, "all"
    )
    assert logits is not None
    return logits


def layers(runtime: Runtime) -> range:
    """Indices of the model's layers."""
    return range(runtime.spec.num_layers)
