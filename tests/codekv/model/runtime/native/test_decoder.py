import sys

import pytest
import torch

from codekv.config import ModelConfig
from codekv.model.library import store
from codekv.model.runtime.attention_probe import AttentionMeter
from codekv.model.runtime.loader import describe_runtime, load_runtime
from codekv.model.runtime.native.decoder import NativeDecoder
from codekv.model.runtime.native.layers import MAX_TOKENS
from codekv.testing.models import write_tiny_gguf

KINDS = ("Q5_0", "Q8_0", "Q4_0", "Q5_1", "Q4_1")
MODELS = ("llama-blocks", "qwen2-blocks", "llama-rows", "qwen2-rows")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Per kind of model, the native runtime and the torch twin at float32."""
    made = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("share")))
        for name in MODELS:
            architecture, kind = name.split("-")
            path = tmp_path_factory.mktemp("gguf") / f"{name}.gguf"
            kinds = KINDS if kind == "blocks" else ("F32",)
            write_tiny_gguf(path, architecture=architecture, kinds=kinds)
            folder = store.import_gguf(path, name, "a test", None).folder
            native = load_runtime(folder, ModelConfig(runtime="native"))
            twin = load_runtime(folder, ModelConfig(runtime="own", compute="fp32"))
            made[name] = native, twin
        yield made


@pytest.fixture(params=MODELS)
def pair(request, pairs):
    return pairs[request.param]


def prompt(count, seed=3):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(8, 199, (count,), generator=generator).tolist()


def all_logits(runtime, tokens):
    kv = runtime.new_kv(len(tokens))
    return runtime.forward(kv, tokens, 0, "all"), kv


def test_it_computes_what_the_torch_decoder_computes(pair):
    native, twin = pair
    assert isinstance(native, NativeDecoder)
    tokens = prompt(120)
    (ours, kv), (plain, plain_kv) = (all_logits(each, tokens) for each in pair)
    divergence = torch.nn.functional.kl_div(
        ours.log_softmax(-1), plain.log_softmax(-1), log_target=True, reduction="none"
    ).sum(-1)
    assert divergence.mean() < 1e-3
    assert (ours - plain).abs().max() < 0.3 * plain.std()
    for layer in range(native.spec.num_layers):
        assert (kv.keys[layer] - plain_kv.keys[layer]).abs().max() < 0.15
        assert (kv.values[layer] - plain_kv.values[layer]).abs().max() < 0.15
    assert native.spec.key_bias == twin.spec.key_bias
    for ours_HD, plain_HD in zip(
        native.key_bias_LHD or (), twin.key_bias_LHD or (), strict=True
    ):
        assert torch.allclose(ours_HD, plain_HD, atol=1e-3)


def test_names_of_the_stored_blocks_tell_the_arithmetics_apart(pairs):
    blocks = pairs["llama-blocks"]
    assert blocks[0].spec.fingerprint != blocks[1].spec.fingerprint


def test_a_prompt_of_several_programs_is_one_prompt(pairs):
    native, _ = pairs["qwen2-blocks"]
    tokens = prompt(2 * MAX_TOKENS + 5)
    whole, kv = all_logits(native, tokens)
    assert whole.shape[0] == len(tokens)
    other = native.new_kv(len(tokens))
    for start in range(0, len(tokens), 37):
        native.forward(other, tokens[start : start + 37], start, "none")
    for ours, theirs in zip(
        kv.keys + kv.values, other.keys + other.values, strict=True
    ):
        assert torch.equal(ours, theirs)
    assert torch.equal(native.forward(other, tokens[-1:], len(tokens) - 1), whole[-1:])


def test_far_context_is_attended_in_ranges_like_near(pairs):
    native, twin = pairs["llama-blocks"]
    tokens = prompt(600)
    ours, _ = all_logits(native, tokens)
    plain, _ = all_logits(twin, tokens)
    assert (ours - plain).abs()[-50:].max() < 0.3 * plain.std()


def test_a_large_tree_is_what_its_branches_are(pairs):
    native, _ = pairs["qwen2-rows"]
    tokens, start = prompt(MAX_TOKENS + 60), 20
    kv = native.new_kv(len(tokens))
    native.forward(kv, tokens[:start], 0, "none")
    tree = tokens[start:]
    parents = list(range(-1, len(tree) - 1))
    whole, _ = all_logits(native, tokens)
    assert torch.equal(native.forward_tree(kv, tree, parents, start), whole[start:])


def test_the_attention_meter_sees_what_it_sees_in_torch(pair):
    tokens = prompt(90)
    masses = []
    for runtime in pair:
        kv = runtime.new_kv(90)
        runtime.forward(kv, tokens[:50], 0, "none")
        before = [tensor.clone() for tensor in kv.keys]
        meter = AttentionMeter()
        with meter:
            runtime.forward(kv, tokens[50:], 50, "none")
        assert len(meter.far_LK) == runtime.spec.num_layers
        assert torch.equal(kv.keys[0][:, :50], before[0][:, :50])
        masses.append(meter.mass_S)
    assert torch.allclose(*masses, rtol=0.05, atol=0.05)
    assert AttentionMeter.num_active == 0


def test_kernels_in_a_damaged_object_are_compiled_again(pairs, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path, kinds=("Q8_0",))
    folder = store.import_gguf(path, "tiny", "a test", None).folder
    expected, _ = all_logits(
        load_runtime(folder, ModelConfig(runtime="native")), prompt(9)
    )
    (kept,) = (tmp_path / "codekv" / "native").glob("*.o")
    assert kept.stat().st_mode & 0o077 == 0
    whole = kept.read_bytes()
    for damaged in (whole[:-1], b"", whole[:100] + b"\xcc" + whole[101:]):
        kept.write_bytes(damaged)
        again = load_runtime(folder, ModelConfig(runtime="native"))
        assert torch.equal(all_logits(again, prompt(9))[0], expected)
        assert kept.read_bytes() == whole
    kept.write_bytes(whole)
    kept.chmod(0o666)
    assert isinstance(
        load_runtime(folder, ModelConfig(runtime="native")), NativeDecoder
    )
    assert kept.stat().st_mode & 0o077 == 0


def test_without_a_compiler_the_torch_path_is_taken(pairs, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path)
    folder = store.import_gguf(path, "tiny", "a test", None).folder
    for name in list(sys.modules):
        if name.startswith("codekv.model.runtime.native"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    for config in (ModelConfig(), ModelConfig(runtime="native")):
        assert type(load_runtime(folder, config)).__name__ == "LlamaDecoder"
        assert describe_runtime(folder, config).startswith("own, int8: ")


def test_the_native_step_is_what_auto_takes_on_a_processor(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path)
    folder = store.import_gguf(path, "tiny", "a test", None).folder
    cpu = {"device": "cpu"}
    for options, is_native in (
        ({}, True),
        ({"compute": "int8"}, True),
        ({"runtime": "own"}, False),
        ({"compute": "fp32"}, False),
    ):
        config = ModelConfig(**cpu, **options)
        assert isinstance(load_runtime(folder, config), NativeDecoder) is is_native
        told = describe_runtime(folder, config)
        assert told.startswith("native, " if is_native else "own, "), told
