"""Tiny models and tokenizers, made on the spot: whole formats, no downloads.

The weights are random, so the text they write means nothing; files, shapes and
tokenizers are those of real models.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np
from tokenizers import Tokenizer as Backend
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

from codekv.model.library.gguf_vocab import SPLITTERS
from codekv.tokens.alphabet import SPACE_MARK

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MARKERS = ("<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")

# As small as grouped attention allows, and whole groups of 32 for quantised files.
HIDDEN, INNER, HEADS, KV_HEADS, LAYERS = 64, 128, 4, 2, 2


def train_byte_level(
    texts: Sequence[str], splitter: str, num_tokens: int = 1000
) -> dict[str, Any]:
    """Train the content of a byte-level `tokenizer.json`.

    Args:
        texts: To learn merges from.
        splitter: How text is split into words, by its name in GGUF files.
        num_tokens: Size of the vocabulary, markers included.
    """
    plain = {"version": "1.0", "added_tokens": [], "model": {"type": "BPE"}}
    plain["model"] = {"type": "BPE", "vocab": {}, "merges": []}
    rule = {"type": "Sequence", "pretokenizers": SPLITTERS[splitter]}
    backend = Backend.from_str(json.dumps(plain | {"pre_tokenizer": rule}))
    trainer = BpeTrainer(
        vocab_size=num_tokens,
        special_tokens=list(MARKERS),
        initial_alphabet=ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    spec: dict[str, Any] = json.loads(backend.to_str())
    return spec


def train_sentence_piece(
    texts: Sequence[str], num_tokens: int = 1000
) -> dict[str, Any]:
    """Train the content of a `tokenizer.json` with byte fallback, as Llama 2 has it."""
    backend = Backend(BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    specials = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = BpeTrainer(
        vocab_size=num_tokens, special_tokens=specials, show_progress=False
    )
    words = [
        word
        for text in texts
        for word in text.replace(" ", " " + SPACE_MARK).replace("\n", " ").split(" ")
    ]
    backend.train_from_iterator([[word] for word in words if word], trainer)
    spec: dict[str, Any] = json.loads(backend.to_str())
    spec["added_tokens"] = spec["added_tokens"][:3]
    spec["pre_tokenizer"] = {
        "type": "Metaspace",
        "replacement": SPACE_MARK,
        "prepend_scheme": "first",
        "split": False,
    }
    return spec


def write_tiny_gguf(
    path: Path,
    *,
    seed: int = 0,
    architecture: str = "llama",
    rope_scaling: tuple[str, float] | None = None,
    rope_factors: Any = None,
    kinds: Sequence[str] = ("F32",),
) -> None:
    """Write a GGUF file with a small random model and a byte-level tokenizer.

    Args:
        path: Of the new file.
        seed: Of the weights.
        architecture: `llama` or `qwen2`.
        rope_scaling: Kind and factor, if any.
        rope_factors: One number per frequency, if any.
        kinds: Types of the matrices, taken in turn.
    """
    spec = train_byte_level(["def f(x):\n    return x\n" * 9], "qwen2", 320)
    vocab: dict[str, int] = spec["model"]["vocab"]
    names = sorted(vocab, key=vocab.__getitem__)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(LAYERS)
    writer.add_context_length(512)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    if rope_scaling:
        writer.add_rope_scaling_type(gguf.RopeScalingType(rope_scaling[0]))
        writer.add_rope_scaling_factor(rope_scaling[1])
    if rope_factors is not None:
        writer.add_tensor("rope_freqs.weight", rope_factors)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(names)
    writer.add_token_types([3 if name in MARKERS else 1 for name in names])
    merges = [" ".join(merge) for merge in spec["model"]["merges"]]
    writer.add_token_merges(merges)
    writer.add_eos_token_id(0)
    tensors = _tensors(len(names), seed, architecture)
    for number, (name, values) in enumerate(tensors.items()):
        kind = gguf.GGMLQuantizationType[kinds[number % len(kinds)]]
        if values.ndim > 1 and kind != gguf.GGMLQuantizationType.F32:
            raw = gguf.quants.quantize(values, kind)
            writer.add_tensor(name, raw, raw_dtype=kind)
        else:
            writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _tensors(num_tokens: int, seed: int, architecture: str) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    head = HIDDEN // HEADS

    def matrix(rows: int, columns: int) -> Any:
        return random.normal(0, 0.1, (rows, columns)).astype(np.float32)

    def ones() -> Any:
        return np.ones(HIDDEN, dtype=np.float32)

    tensors = {"token_embd.weight": matrix(num_tokens, HIDDEN)}
    tensors["output_norm.weight"] = ones()
    for layer in range(LAYERS):
        rows = {
            "attn_q": (HIDDEN, HIDDEN),
            "attn_k": (KV_HEADS * head, HIDDEN),
            "attn_v": (KV_HEADS * head, HIDDEN),
            "attn_output": (HIDDEN, HIDDEN),
            "ffn_gate": (INNER, HIDDEN),
            "ffn_up": (INNER, HIDDEN),
            "ffn_down": (HIDDEN, INNER),
        }
        for name, shape in rows.items():
            tensors[f"blk.{layer}.{name}.weight"] = matrix(*shape)
        for name in ("attn_norm", "ffn_norm"):
            tensors[f"blk.{layer}.{name}.weight"] = ones()
        if architecture == "qwen2":
            for name in ("attn_q", "attn_k", "attn_v"):
                bias = matrix(1, rows[name][0])[0]
                tensors[f"blk.{layer}.{name}.bias"] = bias
    return tensors
