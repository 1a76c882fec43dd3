import json

import gguf
import numpy as np
import pytest
from safetensors.numpy import load_file

from codekv.errors import ModelFormatError
from codekv.model.library import store
from codekv.model.runtime.blocks import INDEX_FILE, open_blocks
from codekv.model.runtime.half import half_weights
from codekv.testing.models import write_tiny_gguf


@pytest.fixture(params=["llama", "qwen2"])
def folder(request, home, tmp_path):
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path, architecture=request.param)
    return store.import_gguf(path, "tiny", "a test", None).folder


def test_the_blocks_are_the_weights(folder):
    blocks = open_blocks(folder)
    weights = load_file(half_weights(folder))
    assert set(blocks.tensors) == set(weights)
    assert blocks.pairs == ("llama" in (folder / "config.json").read_text())
    for name, expected in weights.items():
        raw = blocks.read(name)
        if len(expected.shape) == 1:
            assert np.array_equal(raw.astype(np.float16), expected)
            continue
        kind = gguf.GGMLQuantizationType[blocks.tensors[name].kind]
        values = gguf.quants.dequantize(raw, kind)
        assert values.shape == expected.shape
        if not (blocks.pairs and ("q_proj" in name or "k_proj" in name)):
            assert np.array_equal(values.astype(np.float16), expected)
        part = blocks.read(name, 3, 7)
        assert np.array_equal(part, raw[3:7])


def test_a_changed_or_missing_file_is_not_used(folder):
    index = folder / INDEX_FILE
    values = json.loads(index.read_text())
    first = next(iter(values["tensors"].values()))
    for change in ({"layout": 99}, {"size": 1}, {"tensors": {"a": {}}}, {"pairs": 1}):
        index.write_text(json.dumps(values | change))
        assert (open_blocks(folder) is None) == ("pairs" not in change)
    for wrong in (values["size"] + 1, -1):
        first["offset"] = wrong
        index.write_text(json.dumps(values))
        assert open_blocks(folder) is None
    index.write_text("[]")
    assert open_blocks(folder) is None
    index.unlink()
    assert open_blocks(folder) is None


def test_a_file_cut_while_it_is_open_says_so(folder):
    blocks = open_blocks(folder)
    blocks.path.write_bytes(blocks.path.read_bytes()[:100])
    with pytest.raises(ModelFormatError, match="cut short"):
        blocks.read("model.embed_tokens.weight")
