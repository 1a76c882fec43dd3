import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from codekv.model.runtime import architecture, int8
from codekv.model.runtime.int8 import INT8_FILE, open_int8, quantise_rows, write_int8
from codekv.model.runtime.layers import neighbours
from codekv.model.runtime.weights import WeightsFile

CONFIG = {
    "model_type": "qwen2",
    "vocab_size": 40,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "tie_word_embeddings": True,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}


@pytest.fixture
def folder(tmp_path):
    torch.manual_seed(0)
    tensors = {
        "model.embed_tokens.weight": torch.randn(40, 16),
        "model.norm.weight": torch.ones(16),
    }
    for index in range(2):
        base = f"model.layers.{index}."
        for name, rows in (("q", 16), ("k", 8), ("v", 8)):
            tensors[f"{base}self_attn.{name}_proj.weight"] = torch.randn(rows, 16)
            tensors[f"{base}self_attn.{name}_proj.bias"] = torch.randn(rows)
        tensors[f"{base}self_attn.o_proj.weight"] = torch.randn(16, 16)
        tensors[f"{base}mlp.gate_proj.weight"] = torch.randn(24, 16)
        tensors[f"{base}mlp.up_proj.weight"] = torch.randn(24, 16)
        tensors[f"{base}mlp.down_proj.weight"] = torch.randn(16, 24)
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{base}{name}.weight"] = torch.ones(16)
    half = {name: tensor.half() for name, tensor in tensors.items()}
    save_file(half, tmp_path / "weights.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


@settings(max_examples=30, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), bits=st.sampled_from([4, 7, 8]))
def test_rounding_errs_by_at_most_half_a_step(seed, bits):
    weight = torch.randn(5, 33, generator=torch.Generator().manual_seed(seed))
    weight[3] = 0.0
    rows, scale = quantise_rows(weight, bits)
    assert rows.dtype == torch.int8
    assert rows.abs().max() <= 2 ** (bits - 1) - 1
    error = (rows * scale[:, None] - weight).abs()
    assert (error <= scale[:, None] * 0.5001).all()


def test_the_file_holds_every_matrix_once_and_no_embedding(folder):
    write_int8(folder)
    file = WeightsFile(folder / INT8_FILE)
    weights = WeightsFile(folder / "weights.safetensors")
    assert len(file.names) == 2 * (4 * 2 + 1 + 2) + 1 + 2
    assert file.read("0.qkv.rows").shape == (32, 16)
    assert file.read("1.gate_up.rows").shape == (48, 16)
    head, _ = quantise_rows(weights.read("model.embed_tokens.weight"))
    assert torch.equal(file.read("head.rows"), head)
    assert not list(folder.glob(".*partial*"))


def test_the_file_of_other_weights_is_not_used(folder):
    write_int8(folder)
    weights = WeightsFile(folder / "weights.safetensors")
    assert open_int8(folder, weights) is not None
    tensors = {name: weights.read(name) for name in weights.names}
    save_file(tensors | {"more": torch.ones(3)}, weights.path)
    assert open_int8(folder, WeightsFile(weights.path)) is None


@pytest.mark.parametrize("data", [b"", b"rubbish", b"\xff" * 100])
def test_a_damaged_file_is_not_used(folder, data):
    (folder / INT8_FILE).write_bytes(data)
    assert open_int8(folder, WeightsFile(folder / "weights.safetensors")) is None


def test_a_full_disk_leaves_nothing_behind(folder, monkeypatch):
    def full(writer, *_args):
        assert list(folder.glob(".*partial"))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(int8.TensorWriter, "add", full)
    with pytest.raises(OSError, match="No space"):
        write_int8(folder)
    assert sorted(p.name for p in folder.iterdir()) == [
        "config.json",
        "weights.safetensors",
    ]


def test_a_model_the_own_decoder_does_not_run_gets_no_file(folder):
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    write_int8(folder)
    assert not (folder / INT8_FILE).exists()


def test_neighbours_are_what_a_rotation_mixes():
    rows = torch.arange(16).view(16, 1)
    assert neighbours(rows, 8).flatten().tolist() == [
        *(0, 4, 1, 5, 2, 6, 3, 7),
        *(8, 12, 9, 13, 10, 14, 11, 15),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "gemma2"},
        {"hidden_act": "gelu"},
        {"rope_parameters": {"rope_type": "yarn", "factor": 4.0}},
        {"rope_parameters": {"rope_type": "dynamic", "factor": 4.0}},
        {"layer_types": ["full_attention", "sliding_attention"]},
        {"use_sliding_window": True, "sliding_window": 32},
        {"model_type": "mistral", "sliding_window": 4096},
        {"hidden_size": None},
        {"num_attention_heads": 0},
    ],
)
def test_what_is_not_fully_understood_is_left_to_transformers(change):
    assert architecture.parse(CONFIG) is not None
    assert architecture.parse(CONFIG | change) is None


def test_scaled_frequencies_are_those_of_transformers():
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    for scaling in (
        {"rope_type": "linear", "factor": 4.0},
        {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 512,
        },
    ):
        given_ = {"rope_theta": 50000.0, **scaling}
        values = CONFIG | {"model_type": "llama", "rope_parameters": given_}
        parsed = architecture.parse(values)
        sizes = {k: v for k, v in values.items() if k != "model_type"}
        theirs = LlamaRotaryEmbedding(LlamaConfig(**sizes)).inv_freq
        assert torch.allclose(parsed.rope.inv_freq, theirs, rtol=1e-6)
