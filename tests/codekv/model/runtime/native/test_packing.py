import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.model.runtime.native.formats import BLOCK, FORMATS
from codekv.model.runtime.native.kernels import worst
from codekv.model.runtime.native.packing import fields, pack, rows_of_int8
from codekv.testing.tiles import unpack

FILE_FORMATS = [name for name in FORMATS if name != "I8"]


def file_bytes(kind, rows, width, seed):
    """Any bytes are a matrix; only the halves must be numbers."""
    form = FORMATS[kind]
    rng = np.random.default_rng(seed)
    count = rows * width // form.file_block
    raw = rng.integers(0, 256, (count, form.file_bytes), dtype=np.uint8)
    halves = {"Q6_K": [208]}.get(kind, [0])
    if form.scales in ("half_min", "k_min"):
        halves.append(2)
    for place in halves:
        number = rng.standard_normal(count).astype(np.float16)
        raw[:, place : place + 2] = number.view(np.uint8).reshape(count, 2)
    return raw.reshape(rows, -1)


@pytest.mark.parametrize("kind", FILE_FORMATS)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 9))
def test_taken_apart_a_matrix_is_what_the_library_reads(kind, seed, rows):
    raw = file_bytes(kind, rows, 512, seed)
    expected = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[kind])
    assert np.array_equal(fields(kind, raw).dense(), expected)


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("kind", list(FORMATS))
def test_tiles_hold_what_was_packed(kind, lanes):
    parts = worst(FORMATS[kind], 2 * lanes + 3, 512)
    tiles = pack(parts, lanes)
    assert tiles.shape == (3, parts.form.tile_bytes(lanes, 512 // BLOCK))
    found = unpack(tiles, parts.form, lanes, 512 // BLOCK)
    dense = parts.dense()
    assert np.array_equal(found.dense()[: len(dense)], dense)
    # Missing rows must not give numbers that are not finite.
    assert not found.dense()[len(dense) :].any()


@given(rows=st.integers(1, 5), width=st.integers(1, 100), seed=st.integers(0, 99))
def test_own_rows_are_filled_up_with_zeros(rows, width, seed):
    rng = np.random.default_rng(seed)
    numbers = rng.integers(-128, 128, (rows, width)).astype(np.int8)
    scale = rng.random(rows, dtype=np.float32)
    dense = rows_of_int8(numbers, scale).dense()
    assert dense.shape == (rows, -(-width // BLOCK) * BLOCK)
    assert np.array_equal(dense[:, :width], numbers * scale[:, None])
    assert not dense[:, width:].any()


@pytest.mark.parametrize("kind", FILE_FORMATS)
def test_a_tile_is_little_larger_than_its_rows_in_the_file(kind):
    form = FORMATS[kind]
    tile = form.tile_bytes(8, 8)
    assert tile <= 8 * 256 // form.file_block * form.file_bytes * 1.03
