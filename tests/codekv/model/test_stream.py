import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from codekv.model.runtime.weights import WeightsFile
from codekv.model.stream import TensorWriter

KINDS = ("float32", "float16", "int8", "uint8")


@given(
    tensors=st.dictionaries(
        st.text("abc.0", min_size=1),
        st.tuples(st.sampled_from(KINDS), st.integers(1, 9), st.integers(1, 5)),
        max_size=6,
    ),
    run=st.integers(1, 4),
)
def test_both_readers_find_what_was_written_in_runs(tmp_path_factory, tensors, run):
    path = tmp_path_factory.mktemp("stream") / "some.safetensors"
    values = {
        name: np.arange(rows * columns).reshape(rows, columns).astype(kind)
        for name, (kind, rows, columns) in tensors.items()
    }
    with TensorWriter(path, {"by": "a test"}) as out:
        for name, array in values.items():
            runs = [array[at : at + run] for at in range(0, len(array), run)]
            out.add(name, str(array.dtype), array.shape, runs)
    own, theirs = WeightsFile(path), load_file(path)
    assert own.metadata == {"by": "a test"}
    assert set(own.names) == set(theirs) == set(values)
    for name, array in values.items():
        assert torch.equal(own.read(name), torch.from_numpy(array))
        assert torch.equal(theirs[name], torch.from_numpy(array))


def test_a_failure_leaves_what_was_there_before(tmp_path):
    path = tmp_path / "some.safetensors"
    path.write_bytes(b"old")

    def write():
        with TensorWriter(path, {}) as out:
            out.add("a", "float32", (2,), [np.zeros(2, np.float32)])
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write()
    assert [p.name for p in tmp_path.iterdir()] == ["some.safetensors"]
    assert path.read_bytes() == b"old"
