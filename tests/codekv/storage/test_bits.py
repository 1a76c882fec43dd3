"""Bit planes: packing is lossless and as small as it says."""

import pytest
import torch

from codekv.storage import bits


@pytest.mark.parametrize("width", [2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("num", [0, 8, 24, 4096])
def test_what_is_packed_comes_back(width, num):
    codes = torch.randint(0, 1 << width, (num,), dtype=torch.uint8)
    before = codes.clone()
    packed = bits.pack(codes, width)
    assert packed.numel() == bits.packed_bytes(num, width) == num * width // 8
    assert torch.equal(bits.unpack(packed, num, width), codes)
    assert torch.equal(codes, before)


def test_a_plane_of_four_holds_two_halves_side_by_side():
    codes = torch.arange(16, dtype=torch.uint8)
    packed = bits.pack(codes, 4)
    assert packed.tolist() == [low | (low + 8) << 4 for low in range(8)]


def test_unpacking_leaves_the_packed_bytes_alone():
    packed = torch.randint(0, 256, (15,), dtype=torch.uint8)
    before = packed.clone()
    bits.unpack(packed, 24, 5)
    assert torch.equal(packed, before)
