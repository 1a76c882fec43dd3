import json

import pytest
import torch
from safetensors.torch import save_file

from codekv.errors import ModelFormatError
from codekv.model.runtime.weights import WeightsFile

TENSORS = {
    "a": torch.arange(12, dtype=torch.float32).view(3, 4),
    "b": torch.arange(-5, 5, dtype=torch.int8),
    "c": torch.arange(6).view(2, 3).to(torch.float16),
}


@pytest.fixture
def path(tmp_path):
    save_file(TENSORS, tmp_path / "x.safetensors", metadata={"made": "here"})
    return tmp_path / "x.safetensors"


@pytest.mark.parametrize("name", TENSORS)
def test_reading_and_mapping_give_what_was_written(path, name):
    file = WeightsFile(path)
    assert name in file
    for tensor in (file.read(name), file.map(name)):
        assert tensor.dtype == TENSORS[name].dtype
        assert torch.equal(tensor, TENSORS[name])
    assert file.metadata == {"made": "here"}
    assert sorted(file.names) == sorted(TENSORS)


def test_a_tensor_that_is_not_there_is_named(path):
    with pytest.raises(ModelFormatError, match="no usable tensor z"):
        WeightsFile(path).read("z")


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(ModelFormatError, match="cannot be read") as caught:
        WeightsFile(tmp_path / "none")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01",
        b"\xff" * 64,
        (2**40).to_bytes(8, "little") + b"{}",
        (4).to_bytes(8, "little") + b"nope",
        (2).to_bytes(8, "little") + b"[]",
    ],
)
def test_a_hostile_header_is_refused(tmp_path, data):
    path = tmp_path / "bad"
    path.write_bytes(data)
    with pytest.raises(ModelFormatError):
        WeightsFile(path)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 47]},
        {"dtype": "F32", "shape": [3, 4], "data_offsets": [-48, 0]},
        {"dtype": "F32", "shape": [30, 40], "data_offsets": [0, 4800]},
        {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": "x", "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1]},
        7,
    ],
)
def test_an_entry_outside_the_file_is_refused(tmp_path, entry):
    header = json.dumps({"a": entry}).encode()
    path = tmp_path / "bad"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(48))
    with pytest.raises(ModelFormatError):
        WeightsFile(path).read("a")


def test_a_file_cut_short_is_refused(path):
    path.write_bytes(path.read_bytes()[:-8])
    file = WeightsFile(path)
    last = max(TENSORS, key=lambda n: file._entries[n]["data_offsets"][1])
    with pytest.raises(ModelFormatError, match="cut short"):
        file.read(last)
