"""Read a GGUF file: its config, and where each tensor stands in it.

Only the Llama and Qwen families, whose layout is known to the last bias; any other
architecture is refused, and its original folder can be added instead. A GGUF file is
an import format here: it is read once and never mapped at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gguf
import numpy as np

from codekv.errors import ModelFormatError
from codekv.model.runtime.blocks import BlockTensor

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}

_TOP = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_IN_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}

_ROPE_FACTORS = "rope_freqs.weight"

_MAGIC = b"GGUF"
_HEADER_BYTES = 24
"""Magic and version of four bytes each, counts of tensors and of fields of eight."""

_SAME_MATRIX = 0.05
"""Two quantisations of one matrix differ by less than this share of its norm."""


class GgufModel:
    """An opened GGUF file; nothing is converted before it is asked for."""

    def __init__(self, path: Path) -> None:
        """Open `path`.

        Raises:
            ModelFormatError: It is not a complete GGUF file.
        """
        self._path = path
        _check_start(path)
        try:
            reader = gguf.GGUFReader(path)
            self.fields = {k: f.contents() for k, f in reader.fields.items()}
        except Exception as error:  # the library raises whatever numpy raised
            line = " ".join(str(error).split())[:120]
            message = f"{path} is not a complete GGUF file ({line}); fetch it again"
            raise ModelFormatError(message) from error
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}
        self.architecture = str(self.fields.get("general.architecture"))
        if self.architecture not in ARCHITECTURES:
            line = f"{path}: architecture {self.architecture!r} is not supported"
            message = f"{line} as GGUF; add the model's original folder instead"
            raise ModelFormatError(message)

    def config(self) -> dict[str, Any]:
        """What transformers' `config.json` says about this model."""
        heads = self._int("attention.head_count")
        hidden = self._int("embedding_length")
        eos = self.fields.get("tokenizer.ggml.eos_token_id")
        return {
            "architectures": [ARCHITECTURES[self.architecture]],
            "model_type": self.architecture,
            "hidden_size": hidden,
            "intermediate_size": self._int("feed_forward_length"),
            "num_hidden_layers": self._int("block_count"),
            "num_attention_heads": heads,
            "num_key_value_heads": self._int("attention.head_count_kv", heads),
            "head_dim": self._int("attention.key_length", hidden // heads),
            "hidden_act": "silu",
            "rms_norm_eps": self._get("attention.layer_norm_rms_epsilon"),
            "rope_parameters": self._rope(),
            "max_position_embeddings": self._int("context_length"),
            "vocab_size": int(self._tensors["token_embd.weight"].shape[1]),
            "attention_bias": "blk.0.attn_q.bias" in self._tensors,
            "tie_word_embeddings": self.is_tied(),
            "bos_token_id": self.fields.get("tokenizer.ggml.bos_token_id"),
            "eos_token_id": eos,
            "add_bos_token": bool(self.fields.get("tokenizer.ggml.add_bos_token")),
            "dtype": "float16",
        }

    def is_tied(self) -> bool:
        """Whether input and output embeddings are one matrix.

        Some files hold it twice, at two precisions; a few hundred rows tell.
        """
        if "output.weight" not in self._tensors:
            return True
        embedding = self._rows("token_embd.weight", 256)
        output = self._rows("output.weight", 256)
        distance = np.linalg.norm(embedding - output)
        return bool(distance < _SAME_MATRIX * np.linalg.norm(output))

    def places(self) -> dict[str, BlockTensor]:
        """Where each tensor stands in the file, under transformers' names.

        Raises:
            ModelFormatError: A tensor has no known place in a model, or a type that
                nothing here can read.
        """
        self._check_kinds()
        tied = self.is_tied()
        out: dict[str, BlockTensor] = {}
        for name in self._tensors:
            if name == _ROPE_FACTORS or (tied and name == "output.weight"):
                continue
            # Of a matrix held twice the output's copy is the more precise one.
            twice = tied and "output.weight" in self._tensors
            read = "output.weight" if twice and name == "token_embd.weight" else name
            tensor = self._tensors[read]
            out[self._hf_name(name)] = BlockTensor(
                tensor.tensor_type.name,
                tuple(int(n) for n in reversed(tensor.shape)),
                int(tensor.data_offset),
                int(tensor.n_bytes),
            )
        return out

    def _check_kinds(self) -> None:
        """Take one row of every type of tensor apart."""
        kinds = {tensor.tensor_type: tensor.name for tensor in self._tensors.values()}
        for kind, name in kinds.items():
            try:
                self._rows(name, 1)
            except NotImplementedError as error:
                line = f"{self._path}: {name} has type {kind.name}, which cannot be"
                raise ModelFormatError(f"{line} read; take another file") from error

    def _rope(self) -> dict[str, Any]:
        """Rotary settings as transformers writes them."""
        base: dict[str, Any] = {
            "rope_type": "default",
            "rope_theta": float(self._get("rope.freq_base", 10000.0)),
        }
        kind = self.fields.get(f"{self.architecture}.rope.scaling.type", "none")
        if _ROPE_FACTORS in self._tensors:
            return base | self._llama3_rope(base["rope_theta"])
        if kind in ("linear", "yarn"):
            base |= {"rope_type": kind, "factor": self._get("rope.scaling.factor")}
            if kind == "yarn":
                trained = self._int("rope.scaling.original_context_length")
                base["original_max_position_embeddings"] = trained
        elif kind != "none":
            raise ModelFormatError(f"{self._path}: rotary scaling {kind!r} is unknown")
        return base

    def _llama3_rope(self, theta: float) -> dict[str, Any]:
        """Llama 3 files hold one factor per frequency; the rule behind them is known.

        Raises:
            ModelFormatError: The factors do not follow the rule.
        """
        factors = self._rows(_ROPE_FACTORS, None)
        wave = 2 * np.pi * theta ** (np.arange(factors.size) / factors.size)
        factor, low, high, trained = float(factors.max()), 1.0, 4.0, 8192
        smooth = np.clip((trained / wave - low) / (high - low), 0, 1)
        if not np.allclose(1 / ((1 - smooth) / factor + smooth), factors, rtol=1e-2):
            raise ModelFormatError(f"{self._path}: its rotary factors are unknown")
        return {
            "rope_type": "llama3",
            "factor": factor,
            "low_freq_factor": low,
            "high_freq_factor": high,
            "original_max_position_embeddings": trained,
        }

    def _hf_name(self, name: str) -> str:
        stem, _, kind = name.rpartition(".")
        if stem in _TOP:
            return f"{_TOP[stem]}.{kind}"
        parts = stem.split(".")
        if len(parts) == 3 and parts[0] == "blk" and parts[2] in _IN_LAYER:
            return f"model.layers.{parts[1]}.{_IN_LAYER[parts[2]]}.{kind}"
        line = f"{self._path}: tensor {name!r} has no place in a {self.architecture}"
        raise ModelFormatError(f"{line} model; add the original folder instead")

    def _rows(self, name: str, count: int | None) -> NDArray[np.float32]:
        tensor = self._tensors[name]
        values = gguf.quants.dequantize(tensor.data[:count], tensor.tensor_type)
        return np.asarray(values, dtype=np.float32)

    def _get(self, key: str, default: Any = None) -> Any:
        value = self.fields.get(f"{self.architecture}.{key}", default)
        if value is None:
            raise ModelFormatError(f"{self._path} lacks {self.architecture}.{key}")
        return value

    def _int(self, key: str, default: int | None = None) -> int:
        return int(self._get(key, default))


def _check_start(path: Path) -> None:
    """See that a file begins as a GGUF file does; the reader's own errors are riddles.

    Raises:
        ModelFormatError: It does not.
    """
    with path.open("rb") as file:
        start = file.read(_HEADER_BYTES)
    if not start.startswith(_MAGIC):
        raise ModelFormatError(f"{path} is not a GGUF file; give one, or a folder")
    if len(start) < _HEADER_BYTES:
        line = f"{path} is cut short: it has {len(start)} bytes"
        raise ModelFormatError(f"{line}, not even a GGUF header; fetch it again")
