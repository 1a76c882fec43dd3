import errno
import json

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from codekv.errors import ModelFormatError, ModelNotFoundError, StorageError
from codekv.model.library import store
from codekv.model.library.gguf_import import GgufModel
from codekv.model.runtime import blocks
from codekv.model.runtime.half import half_weights
from codekv.testing.models import train_byte_level, write_tiny_gguf
from codekv.tokens.tokenizer import load_tokenizer


@pytest.fixture
def tiny(home, tiny_gguf):
    return store.import_gguf(tiny_gguf, "tiny", "a test", None)


def test_a_converted_model_is_whole(tiny, tiny_gguf):
    assert {path.name for path in tiny.folder.iterdir()} == {
        *("source.gguf", "blocks.json", "config.json"),
        *("tokenizer.json", "manifest.json"),
    }
    assert (tiny.name, tiny.family, tiny.source) == ("tiny", "llama", "a test")
    assert tiny.source_sha256 == store.sha256_of(tiny_gguf)
    assert store.verify_model("tiny") == tiny
    assert store.list_models() == [tiny]
    assert load_tokenizer(tiny.folder).fim is not None
    manifest = json.loads((tiny.folder / "manifest.json").read_bytes())
    assert manifest["format"] == store.FORMAT
    assert manifest["versions"]["torch"].startswith("2.")


def test_weights_are_fp16_under_the_names_transformers_uses(tiny):
    weights = load_file(half_weights(tiny.folder))
    assert {array.dtype for array in weights.values()} == {np.dtype(np.float16)}
    config = LlamaConfig(**json.loads((tiny.folder / "config.json").read_bytes()))
    model = LlamaForCausalLM(config)
    tensors = {name: torch.from_numpy(array) for name, array in weights.items()}
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    assert missing == ["lm_head.weight"]  # tied to the embedding
    assert unexpected == []


def test_converting_again_replaces_the_model(tiny, tmp_path):
    other = tmp_path / "other.gguf"
    write_tiny_gguf(other, seed=1)
    again = store.import_gguf(other, "tiny", "another test", None)
    assert store.list_models() == [again]
    assert again.source_sha256 != tiny.source_sha256


def test_qwen2_keeps_its_biases_and_the_order_of_its_rows(home, tmp_path):
    weights = {}
    for architecture in ("qwen2", "llama"):
        path = tmp_path / f"{architecture}.gguf"
        write_tiny_gguf(path, architecture=architecture)
        stored = store.import_gguf(path, architecture, "a test", None)
        weights[architecture] = load_file(half_weights(stored.folder))
    qwen, llama = weights["qwen2"], weights["llama"]
    for kind in ("q", "k", "v"):
        assert qwen[f"model.layers.1.self_attn.{kind}_proj.bias"].any()
    # The files hold the same numbers; only Llama files are written with paired rows.
    name = "model.layers.0.self_attn.q_proj.weight"
    rows = qwen[name].reshape(4, 8, 2, 64)
    assert np.array_equal(llama[name], rows.swapaxes(1, 2).reshape(64, 64))
    value = "model.layers.0.self_attn.v_proj.weight"
    assert np.array_equal(llama[value], qwen[value])


def test_a_name_that_is_not_here_says_how_to_get_it(home):
    with pytest.raises(ModelNotFoundError, match="codekv model pull nothing"):
        store.open_model("nothing")
    assert store.list_models() == []


@pytest.mark.parametrize("file", ["source.gguf", "tokenizer.json"])
def test_a_cut_file_is_noticed_at_once(tiny, file):
    path = tiny.folder / file
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelFormatError, match=f"{file} is missing or cut short"):
        store.open_model("tiny")
    assert store.list_models() == []


def test_a_changed_file_is_noticed_by_the_check(tiny):
    path = tiny.folder / "source.gguf"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert store.open_model("tiny") == tiny
    with pytest.raises(ModelFormatError, match=r"source\.gguf was changed"):
        store.verify_model("tiny")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"format": 999}', b"\xff"]
)
def test_a_damaged_manifest_is_one_line(tiny, content):
    (tiny.folder / "manifest.json").write_bytes(content)
    with pytest.raises(ModelFormatError, match="pull tiny --again") as caught:
        store.open_model("tiny")
    assert "\n" not in str(caught.value)


def test_another_layout_says_so(tiny):
    path = tiny.folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    path.write_text(json.dumps(manifest | {"format": store.FORMAT + 1}))
    with pytest.raises(ModelFormatError, match="another version"):
        store.open_model("tiny")


@pytest.mark.parametrize("part", ["places", "write_blocks", "_put_in_place"])
def test_a_failing_disk_leaves_nothing_that_looks_like_a_model(
    home, tiny_gguf, monkeypatch, part
):
    def full(*_, **_named):
        raise OSError(errno.ENOSPC, "No space left on device")

    owner = {
        "places": GgufModel,
        "write_blocks": blocks,
        "_put_in_place": store,
    }[part]
    monkeypatch.setattr(owner, part, full)
    with pytest.raises(StorageError, match="the disk is full at"):
        store.import_gguf(tiny_gguf, "tiny", "a test", None)
    assert list((home / "models").iterdir()) == []


def test_an_interrupted_conversion_keeps_the_old_model(tiny, tiny_gguf, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(GgufModel, "places", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.import_gguf(tiny_gguf, "tiny", "another", None)
    assert store.list_models() == [tiny]


def test_leftovers_of_a_killed_conversion_are_removed(home):
    leftover = home / "models" / ".partial-tiny-1"
    leftover.mkdir(parents=True)
    (leftover / "weights.safetensors").write_bytes(b"half")
    assert store.list_models() == []
    store.remove_partial()
    assert not leftover.exists()


@pytest.mark.parametrize(
    ("size", "fault"),
    [
        (0, "is not a GGUF file"),
        (3, "is not a GGUF file"),
        (8, "is cut short"),
        (100, "not a complete GGUF"),
        (5000, "not a complete GGUF"),
        (-1, "not a complete GGUF"),
    ],
)
def test_a_damaged_gguf_file_is_one_line(home, tiny_gguf, tmp_path, size, fault):
    path = tmp_path / "cut.gguf"
    path.write_bytes(tiny_gguf.read_bytes()[:size])
    with pytest.raises(ModelFormatError, match=fault) as caught:
        store.import_gguf(path, "cut", "a test", None)
    assert "\n" not in str(caught.value)


def test_an_unknown_architecture_says_what_to_do(home, tmp_path):
    path = tmp_path / "mamba.gguf"
    write_tiny_gguf(path, architecture="mamba")
    with pytest.raises(ModelFormatError, match="model's original folder"):
        store.import_gguf(path, "mamba", "a test", None)


def test_rotary_scaling_is_carried_over(tmp_path):
    path = tmp_path / "scaled.gguf"
    write_tiny_gguf(path, rope_scaling=("linear", 4.0))
    rope = GgufModel(path).config()["rope_parameters"]
    assert rope == {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}


def test_the_factors_of_llama_3_become_the_rule_they_follow(tmp_path):
    rule = {
        "rope_type": "llama3",
        "rope_theta": 10000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    config = LlamaConfig(hidden_size=64, num_attention_heads=1, rope_parameters=rule)
    scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    plain = 1.0 / 10000.0 ** (torch.arange(0, 64, 2) / 64)
    path = tmp_path / "llama3.gguf"
    write_tiny_gguf(path, rope_factors=(plain / scaled).numpy())
    model = GgufModel(path)
    assert model.config()["rope_parameters"] == rule
    assert "rope_freqs.weight" not in model.places()
    write_tiny_gguf(path, rope_factors=np.full(32, 3.0, dtype=np.float32))
    # All factors the same is no rule of Llama 3.
    with pytest.raises(ModelFormatError, match="rotary factors"):
        GgufModel(path).config()


@pytest.fixture
def hf_folder(tmp_path):
    """A model saved by transformers, in two shards."""
    folder = tmp_path / "saved"
    spec = train_byte_level(["def f(x): return x"], "qwen2", 300)
    config = LlamaConfig(
        vocab_size=300,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    LlamaForCausalLM(config).save_pretrained(folder, max_shard_size="100KB")
    (folder / "tokenizer.json").write_text(json.dumps(spec), "utf-8")
    return folder


def test_a_folder_saved_by_transformers_is_converted(home, hf_folder):
    assert len(list(hf_folder.glob("*.safetensors"))) > 1
    stored = store.import_folder(hf_folder, "saved", "a test")
    weights = load_file(half_weights(stored.folder))
    assert len(weights) == 3 + 2 * 9
    assert {array.dtype for array in weights.values()} == {np.dtype(np.float16)}
    assert (stored.family, stored.source_sha256) == ("llama", None)
    assert store.verify_model("saved") == stored


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (lambda f: (f / "config.json").unlink(), "config.json is missing"),
        (lambda f: (f / "config.json").write_text("{"), "config.json is missing or"),
        (lambda f: (f / "config.json").write_text("{}"), "names no model_type"),
        (lambda f: (f / "tokenizer.json").unlink(), "has no tokenizer.json"),
        (lambda f: [p.unlink() for p in f.glob("*.safetensors")], "no .safetensors"),
        (lambda f: next(f.glob("*.safetensors")).write_bytes(b"x" * 99), "is damaged"),
        (
            lambda f: (f / "config.json").write_text(
                '{"model_type": "llama", "auto_map": {"AutoModel": "x.Y"}}'
            ),
            "code of its own",
        ),
    ],
)
def test_an_unusable_folder_is_one_line(home, hf_folder, spoil, line):
    spoil(hf_folder)
    with pytest.raises(ModelFormatError, match=line) as caught:
        store.import_folder(hf_folder, "saved", "a test")
    assert "\n" not in str(caught.value)
    assert store.list_models() == []


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"GGUF\x03\0\0\0", "cut short: it has 8 bytes"),
        (b"GGUF", "cut short: it has 4 bytes"),
        (b"", "not a GGUF file"),
        (b"PK\x03\x04" + b"0" * 40, "not a GGUF file"),
        (b"GGUF\x03\0\0\0" + b"\xff" * 40, "not a complete GGUF file"),
    ],
)
def test_a_broken_gguf_says_so_in_one_line(home, tmp_path, content, line):
    path = tmp_path / "broken.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelFormatError, match=line) as caught:
        store.import_gguf(path, "broken", "a test", None)
    assert "\n" not in str(caught.value)
