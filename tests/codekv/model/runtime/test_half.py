import tracemalloc

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFReader, quants
from safetensors.numpy import load_file

from codekv.errors import ModelFormatError
from codekv.model.library import store
from codekv.model.runtime import half
from codekv.model.runtime.half import half_weights
from codekv.testing.models import write_tiny_gguf


@pytest.fixture(params=["llama", "qwen2"])
def folder(request, home, tmp_path):
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path, architecture=request.param)
    return store.import_gguf(path, "tiny", "a test", None).folder


def test_nothing_is_written_before_it_is_wanted(folder):
    size = (folder / "source.gguf").stat().st_size
    extra = sum(p.stat().st_size for p in folder.iterdir()) - size
    assert extra < size / 2  # tokenizer, config, index
    assert not list(folder.glob("*.safetensors"))
    path = half_weights(folder)
    stamp = path.stat().st_mtime_ns
    assert half_weights(folder).stat().st_mtime_ns == stamp
    assert store.open_model("tiny").folder == folder


@pytest.mark.parametrize("numbers", [1, 100, 1 << 23])
def test_the_size_of_a_run_changes_nothing(folder, monkeypatch, numbers):
    monkeypatch.setattr(half, "_RUN_NUMBERS", numbers)
    weights = load_file(half_weights(folder))
    # The slow twin: every tensor at once, rows of a head re-ordered by hand.
    pairs = "llama" in (folder / "config.json").read_text()
    reader = GGUFReader(folder / "source.gguf")
    tensors = {t.name: t for t in reader.tensors}
    q = tensors["blk.0.attn_q.weight"]
    whole = quants.dequantize(q.data, GGMLQuantizationType(q.tensor_type))
    heads = whole.reshape(4, 16, 64)
    if pairs:
        heads = np.concatenate([heads[:, 0::2], heads[:, 1::2]], axis=1)
    found = weights["model.layers.0.self_attn.q_proj.weight"]
    assert np.array_equal(found, heads.reshape(64, 64).astype(np.float16))


def test_memory_is_bounded_by_a_run(folder, monkeypatch):
    monkeypatch.setattr(half, "_RUN_NUMBERS", 1024)
    half_weights(folder)
    (folder / "weights.safetensors").unlink()
    tracemalloc.start()
    half_weights(folder)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The header's room takes 1 MB twice, once padded and once on its way out.
    assert peak < (4 << 20)


def test_a_folder_without_any_weights_says_how_to_get_them(folder):
    (folder / "source.gguf").unlink()
    with pytest.raises(ModelFormatError, match="pull tiny --again"):
        half_weights(folder)


def test_a_download_is_linked_and_a_users_file_is_copied(home, tmp_path):
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path)
    for ours in (True, False):
        folder = store.import_gguf(path, "tiny", "a test", None, ours=ours).folder
        assert (folder / "source.gguf").samefile(path) == ours
