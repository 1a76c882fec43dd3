import json

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from codekv.config import ModelConfig
from codekv.cooperative import finish
from codekv.engine.background.idle import Chain, Chains
from codekv.engine.background.importance import weigh
from codekv.engine.live_sequence import LiveSequence
from codekv.engine.reuse.extend import extend
from codekv.engine.reuse.plan import PrefillRequest
from codekv.engine.reuse.prompt_blocks import PromptBlock
from codekv.errors import ModelFormatError
from codekv.model.library import check
from codekv.model.runtime.loader import load_runtime
from codekv.model.runtime.native.decoder import NativeDecoder
from codekv.model.runtime.reference import load_plain
from codekv.storage.blockstore import BlockStore, StoreBudget
from codekv.storage.plain import PlainCodec

LOGITS_TOLERANCE = 1e-4
KINDS = ("llama", "qwen2", "gpt2")


def tiny_config(kind):
    sizes = {
        "vocab_size": 199,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "eos_token_id": 7,
        "bos_token_id": 1,
    }
    if kind == "llama":
        return transformers.LlamaConfig(**sizes, tie_word_embeddings=True)
    if kind == "qwen2":
        return transformers.Qwen2Config(**sizes, tie_word_embeddings=False)
    return transformers.GPT2Config(
        vocab_size=199,
        n_embd=64,
        n_layer=3,
        n_head=4,
        n_positions=512,
        eos_token_id=7,
        bos_token_id=1,
    )


def write_tiny(kind, folder):
    torch.manual_seed(5)
    config = tiny_config(kind)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            spread = 0.3 if name.endswith("bias") else 1.5 / weight.shape[-1] ** 0.5
            if "norm" not in name and "ln_" not in name:
                weight.normal_(0, spread)
    tensors = {k: v.half().contiguous() for k, v in model.state_dict().items()}
    if config.tie_word_embeddings:
        tensors.pop("lm_head.weight", None)
    save_file(tensors, folder / "weights.safetensors")
    values = config.to_dict() | {"architectures": [type(model).__name__]}
    (folder / "config.json").write_text(json.dumps(values))
    return folder


@pytest.fixture(scope="module", autouse=True)
def _own_data_folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("share")))
        yield


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    # Threads wait for one another; on a busy machine tiny products then take long.
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {kind: write_tiny(kind, tmp_path_factory.mktemp(kind)) for kind in KINDS}


def runtime_of(folders, name):
    kind, _, how = name.partition("-")
    options = {
        "own": {"runtime": "own", "compute": "fp32"},
        "adapter": {"runtime": "transformers", "compute": "fp32"},
        "int8": {"runtime": "own", "compute": "int8"},
        "native": {"runtime": "native"},
    }
    return load_runtime(folders[kind], ModelConfig(device="cpu", **options[how]))


EXACT = ("llama-own", "qwen2-own", "llama-adapter", "qwen2-adapter", "gpt2-adapter")
NATIVE = ("llama-native", "qwen2-native")
ALL = (*EXACT, "llama-int8", "qwen2-int8", *NATIVE)


@pytest.fixture(scope="module", params=EXACT)
def exact(request, folders):
    return request.param.partition("-")[0], runtime_of(folders, request.param)


@pytest.fixture(scope="module", params=ALL)
def runtime(request, folders):
    return runtime_of(folders, request.param)


def prompt(length, seed=3):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(8, 199, (length,), generator=generator).tolist()


def straight(runtime, tokens):
    kv = runtime.new_kv(len(tokens))
    return runtime.forward(kv, tokens, 0, "all"), kv


def same_kv(left, right, slots, tolerance=LOGITS_TOLERANCE):
    for layer in range(len(left.keys)):
        for a, b in (
            (left.keys[layer], right.keys[layer]),
            (left.values[layer], right.values[layer]),
        ):
            assert (a[:, slots] - b[:, slots]).abs().max() <= tolerance


def kv_tolerance(runtime):
    if isinstance(runtime, NativeDecoder):
        return 0.0
    return 0.2 if runtime.spec.compute == "int8" else LOGITS_TOLERANCE


def close(runtime, left, right):
    assert left.shape == right.shape
    if isinstance(runtime, NativeDecoder):
        assert torch.equal(left, right)
        return
    # At int8 a sum's last bit may flip a rounding of an activation.
    tolerance = 0.15 if runtime.spec.compute == "int8" else LOGITS_TOLERANCE
    assert (left - right).abs().max() <= tolerance


def test_logits_are_those_of_plain_transformers(exact, folders):
    kind, runtime = exact
    tokens = prompt(90)
    model = load_plain(folders[kind], torch.float32)
    with torch.inference_mode():
        expected = model(input_ids=torch.tensor([tokens])).logits[0]
    logits, _ = straight(runtime, tokens)
    assert logits.dtype == torch.float32
    assert (logits - expected).abs().max() <= LOGITS_TOLERANCE
    assert expected.std() > 0.5


@pytest.mark.parametrize("how", ["int8", "native"])
@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_int8_diverges_little_from_float(kind, how, folders):
    tokens = prompt(90)
    exact, _ = straight(runtime_of(folders, f"{kind}-own"), tokens)
    rounded, _ = straight(runtime_of(folders, f"{kind}-{how}"), tokens)
    divergence = torch.nn.functional.kl_div(
        rounded.log_softmax(-1),
        exact.log_softmax(-1),
        log_target=True,
        reduction="none",
    ).sum(-1)
    assert divergence.mean() < 0.02


@settings(max_examples=12, deadline=None, derandomize=True)
@given(cuts=st.lists(st.integers(1, 89), max_size=6, unique=True))
def test_any_cutting_of_a_prompt_gives_the_same_logits(runtime, cuts):
    tokens = prompt(90)
    expected, whole = straight(runtime, tokens)
    kv = runtime.new_kv(128)
    edges = [0, *sorted(cuts), 90]
    parts = [
        runtime.forward(kv, tokens[begin:end], begin, "all")
        for begin, end in zip(edges, edges[1:], strict=False)
    ]
    close(runtime, torch.cat(parts), expected)
    if kv_tolerance(runtime) <= LOGITS_TOLERANCE:
        same_kv(kv, whole, slice(0, 90), kv_tolerance(runtime))


def greedy(runtime, kv, tokens, start, count):
    logits = runtime.forward(kv, tokens[start:], start, "last")
    text = []
    for slot in range(len(tokens), len(tokens) + count):
        text.append(int(logits.argmax()))
        logits = runtime.forward(kv, text[-1:], slot, "last")
    return text


def test_greedy_text_is_the_same_on_top_of_a_cached_prefix(runtime):
    tokens = prompt(60)
    expected = greedy(runtime, runtime.new_kv(128), tokens, 0, 12)
    kv = runtime.new_kv(128)
    runtime.forward(kv, tokens[:41], 0, "none")
    assert greedy(runtime, kv, tokens, 41, 12) == expected


def test_last_and_none_agree_with_all(runtime):
    tokens = prompt(33)
    every, kv = straight(runtime, tokens)
    other = runtime.new_kv(40)
    close(runtime, runtime.forward(other, tokens, 0, "last"), every[-1:])
    assert runtime.forward(other, tokens, 0, "none") is None
    same_kv(other, kv, slice(0, 33))


def test_work_in_steps_gives_the_same_whatever_comes_between(runtime):
    tokens, other = prompt(70), prompt(50, seed=8)
    kv, there = runtime.new_kv(80), runtime.new_kv(60)
    runtime.forward(kv, tokens[:4], 0, "none")
    whole, _ = straight(runtime, tokens)
    steps, rows, num_steps = runtime.forward_in_steps(kv, tokens[4:], 4, "all"), None, 0
    while rows is None:
        try:
            next(steps)
        except StopIteration as stop:
            rows = stop.value
        num_steps += 1
        runtime.forward(there, other[:num_steps], 0, "none")

    assert num_steps > 2
    close(runtime, rows, whole[4:])
    last = finish(runtime.forward_in_steps(kv, tokens[4:], 4))
    close(runtime, last, whole[-1:])
    assert finish(runtime.forward_in_steps(kv, tokens[4:], 4, "none")) is None


def test_slots_behind_a_call_are_neither_read_nor_changed(runtime):
    tokens = prompt(50)
    expected, _ = straight(runtime, tokens[:30])
    kv = runtime.new_kv(64)
    for tensor in (*kv.keys, *kv.values):
        tensor.fill_(float("nan"))
    close(runtime, runtime.forward(kv, tokens[:30], 0, "all"), expected)
    assert all(t[:, 30:].isnan().all() for t in (*kv.keys, *kv.values))


@pytest.mark.parametrize("slots", [[0], [49], [3, 4, 5], [0, 7, 8, 31, 49]])
def test_scattered_repair_restores_damaged_slots(runtime, slots):
    tokens = prompt(50)
    _, whole = straight(runtime, tokens)
    kv = runtime.new_kv(50)
    kv.copy_slots(whole, 0, 50)
    for layer in range(runtime.spec.num_layers):
        kv.keys[layer][:, slots] = 9.0
        kv.values[layer][:, slots] = 9.0
    runtime.forward_scattered(kv, [tokens[s] for s in slots], slots)
    same_kv(kv, whole, slice(0, 50), kv_tolerance(runtime))


@st.composite
def trees(draw):
    count = draw(st.integers(1, 9))
    return [draw(st.integers(-1, index - 1)) for index in range(count)]


def path_to(parents, index):
    path = []
    while index >= 0:
        path.insert(0, index)
        index = parents[index]
    return path


@settings(max_examples=12, deadline=None, derandomize=True)
@given(parents=trees(), data=st.data())
def test_a_tree_gives_what_each_branch_alone_gives(runtime, parents, data):
    tokens, start = prompt(40), 30
    kv = runtime.new_kv(64)
    runtime.forward(kv, tokens[:start], 0, "none")
    branch_tokens = prompt(len(parents), seed=11)
    logits = runtime.forward_tree(kv, branch_tokens, parents, start)
    chosen = data.draw(st.integers(0, len(parents) - 1))
    path = path_to(parents, chosen)
    text = tokens[:start] + [branch_tokens[i] for i in path]
    expected, whole = straight(runtime, text)
    close(runtime, logits[path], expected[start:])
    runtime.keep_path(kv, start, path)
    same_kv(kv, whole, slice(0, len(text)), kv_tolerance(runtime))


def test_facts_of_the_model_are_told(folders):
    own = runtime_of(folders, "qwen2-own")
    adapter = runtime_of(folders, "qwen2-adapter")
    assert own.spec.kv_shapes == adapter.spec.kv_shapes == ((2, 8, 8),) * 3
    assert own.spec.eos_ids == adapter.spec.eos_ids == (7,)
    assert own.spec.vocab_size == adapter.spec.vocab_size == 199
    assert own.spec.movable == adapter.spec.movable == (True,) * 3
    assert own.spec.key_bias
    assert adapter.spec.key_bias
    assert own.spec.fingerprint != adapter.spec.fingerprint


@pytest.mark.parametrize("name", ["llama-own", "qwen2-own", "qwen2-adapter", *NATIVE])
def test_keys_move_by_the_models_own_rotation(name, folders):
    runtime = runtime_of(folders, name)
    token, shift = prompt(1), 37
    first = runtime.new_kv(1)
    runtime.forward(first, token, 0, "none")
    # One token that sees only itself: all earlier slots hold the same token's values.
    keys = first.keys[0]
    plain = runtime.rope.unrotate(keys, torch.tensor([0]))
    moved = runtime.rope.rotate(plain, torch.tensor([shift]))
    later = runtime.new_kv(shift + 1)
    runtime.forward(later, token * (shift + 1), 0, "none")
    assert (later.keys[0][:, shift:] - moved).abs().max() <= LOGITS_TOLERANCE


def test_absolute_positions_are_not_movable(folders):
    runtime = runtime_of(folders, "gpt2-adapter")
    assert runtime.spec.movable == (False,) * 3
    assert runtime.rope is None


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_a_checked_model_is_close_to_plain_transformers(kind, folders, monkeypatch):
    class Bytes:
        def encode(self, data):
            return type("Encoding", (), {"ids": tuple(b % 190 + 8 for b in data)})

    monkeypatch.setattr(check, "load_tokenizer", lambda folder: Bytes())
    report = check.check_model(folders[kind])
    assert report.compute == "int8"
    assert 0 <= report.kl_mean < 0.02
    assert report.same_top > 0.8
    assert not report.is_good  # random weights: the loss gives them away
    assert report.reference_loss > check.MAX_LOSS


def test_a_model_with_an_unknown_state_is_refused(tmp_path):
    config = transformers.MambaConfig(
        vocab_size=64, hidden_size=16, num_hidden_layers=1, state_size=4
    )
    model = transformers.AutoModelForCausalLM.from_config(config)
    tensors = {k: v.contiguous() for k, v in model.state_dict().items()}
    tensors.pop("lm_head.weight", None)
    save_file(tensors, tmp_path / "weights.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict()))
    with pytest.raises(ModelFormatError, match="choose another model"):
        load_runtime(tmp_path, ModelConfig(device="cpu"))


def test_what_cannot_run_is_refused_in_one_line(folders, tmp_path):
    for options, folder in (
        ({"runtime": "own"}, folders["gpt2"]),
        ({}, tmp_path),
        ({} if torch.cuda.is_available() else {"device": "cuda"}, tmp_path),
    ):
        with pytest.raises(ModelFormatError) as caught:
            load_runtime(folder, ModelConfig(**options))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("compute", ["bf16", "fp16"])
@pytest.mark.parametrize("runtime_name", ["own", "transformers"])
def test_half_precision_stays_close_to_float(folders, compute, runtime_name):
    device = "cpu"
    if torch.cuda.is_available():
        device = "cuda"
    elif torch.backends.mps.is_available():
        device = "mps"
    tokens = prompt(60)
    expected, _ = straight(runtime_of(folders, "qwen2-own"), tokens)
    options = {"device": device, "compute": compute, "runtime": runtime_name}
    half = load_runtime(folders["qwen2"], ModelConfig(**options))
    assert half.spec.device == device
    whole, kv = straight(half, tokens)
    divergence = torch.nn.functional.kl_div(
        whole.cpu().log_softmax(-1),
        expected.log_softmax(-1),
        log_target=True,
        reduction="none",
    )
    assert divergence.sum(-1).mean() < 0.02
    other = half.new_kv(64)
    half.forward(other, tokens[:41], 0, "none")
    tail = half.forward(other, tokens[41:], 41, "all")
    assert (tail - whole[41:]).abs().max() < 0.5
    half.forward_scattered(other, [tokens[3]], [3])
    tree = half.forward_tree(other, [9, 10, 11], [-1, 0, 0], 60)
    assert tree.shape == (3, 199)
    assert tree.dtype == torch.float32


def test_each_block_is_told_its_share_of_attention(exact) -> None:
    _, runtime = exact
    store = BlockStore(
        fingerprint="tiny", budget=StoreBudget(64 << 20), codec=PlainCodec("fp32")
    )
    blocks = [tuple(range(10, 60)), tuple(range(60, 110))]
    tokens = (1, *blocks[0], *blocks[1])
    chain = Chain("doc", tokens, (1, 51, 101), bytes(101), persist=False)
    finish(Chains(runtime, store).warm(chain))
    seq = LiveSequence(runtime.new_kv(4))
    finish(extend(runtime, seq, tokens))
    before = [plane[:, :101].clone() for plane in seq.kv.values]
    pieces = [
        PromptBlock(1, 51, blocks[0], 0, 0),
        PromptBlock(51, 101, blocks[1], 0, 50),
    ]
    noted = []
    store.note_attention = lambda ref, share: noted.append(share)
    finish(weigh(runtime, store, seq, PrefillRequest(tokens, pieces)))

    assert len(noted) == 2
    assert 0 < sum(noted) < 1
    for mine, old in zip(seq.kv.values, before, strict=True):
        assert torch.allclose(mine[:, :101], old, atol=LOGITS_TOLERANCE)
