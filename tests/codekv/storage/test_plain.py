import pytest
import torch

from codekv.errors import BlockFormatError, UsageError
from codekv.storage.encoded import EncodedBlock, Planes
from codekv.storage.plain import PLAIN_NAMES, PlainCodec
from codekv.testing.blocks import is_same, make_planes


def worst_error(planes: Planes, others: Planes) -> float:
    return max(
        (mine - theirs).abs().max().item()
        for pair, other in zip(planes, others, strict=True)
        for mine, theirs in zip(pair, other, strict=True)
    )


def roundtrip(name: str, planes: Planes) -> Planes:
    codec = PlainCodec(name)
    return codec.decode(codec.encode(planes, bytes(planes[0][0].shape[1])))


def test_fp32_is_exact():
    planes = make_planes(7, 1)

    assert is_same(roundtrip("fp32", planes), planes)


def test_fp16_rounds_to_half_precision():
    planes = make_planes(7, 1)
    expected = [(k.half().float(), v.half().float()) for k, v in planes]

    assert is_same(roundtrip("fp16", planes), expected)


def test_int8_error_is_half_a_step_of_its_row():
    planes = make_planes(50, 1)

    for pair, restored in zip(planes, roundtrip("int8", planes), strict=True):
        for tensor, other in zip(pair, restored, strict=True):
            step = tensor.abs().amax(-1, keepdim=True) / 127
            assert ((tensor - other).abs() <= step * 0.501).all()


def test_int8_agrees_with_a_loop_over_rows():
    tensor = make_planes(5, 3)[1][1]
    restored = roundtrip("int8", [(tensor, tensor)])[0][0]

    for row, other in zip(tensor.view(-1, 8), restored.view(-1, 8), strict=True):
        scale = max(abs(x) for x in row.tolist()) / 127
        slow = [round(x / scale) * scale for x in row.tolist()]
        assert other.tolist() == pytest.approx(slow, abs=1e-6)


@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_rows_of_zeros_and_of_almost_nothing_stay_finite(name):
    planes = [(torch.zeros(1, 3, 4), torch.full((1, 3, 4), 1e-38))]

    assert worst_error(roundtrip(name, planes), planes) < 1e-30


def test_fp16_clamps_what_does_not_fit():
    planes = [(torch.full((1, 1, 2), 1e6), torch.full((1, 1, 2), -1e6))]

    keys, values = roundtrip("fp16", planes)[0]

    assert keys.tolist() == [[[65504.0, 65504.0]]]
    assert values.tolist() == [[[-65504.0, -65504.0]]]


@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_neither_input_nor_stored_bytes_are_shared_with_the_result(name):
    codec = PlainCodec(name)
    planes = make_planes(4, 1)
    encoded = codec.encode(planes, bytes(4))
    before = [plane.clone() for plane in encoded.planes]
    first = codec.decode(encoded)

    first[0][0].fill_(9.0)
    planes[0][1].fill_(9.0)

    assert all(map(torch.equal, encoded.planes, before))
    assert not (codec.decode(encoded)[0][0] == 9.0).any()


@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_views_that_are_not_contiguous_are_coded_right(name):
    whole = make_planes(10, 2)
    views = [(k[:, 2:7], v[:, 2:7]) for k, v in whole]
    copies = [(k.clone(), v.clone()) for k, v in views]

    assert is_same(roundtrip(name, views), roundtrip(name, copies))


def test_bytes_per_token_are_as_expected():
    planes = make_planes(10, 1)
    sizes = {
        name: PlainCodec(name).encode(planes, bytes(10)).num_bytes / 10
        for name in PLAIN_NAMES
    }

    # 32 elements in 6 rows: 4, 2 or 1 bytes each, and a float per row.
    assert sizes == {"fp32": 128, "fp16": 64, "int8": 32 + 6 * 4}


def test_unknown_codec_lists_the_known():
    with pytest.raises(UsageError, match="fp32, fp16, int8"):
        PlainCodec("int4")


def test_every_codec_has_its_own_fingerprint():
    assert len({PlainCodec(name).fingerprint for name in PLAIN_NAMES}) == 3


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"tokens": 0, "shapes": [[1, 4, 4]]},
        {"tokens": True, "shapes": [[1, 4, 4]]},
        {"tokens": 3, "shapes": None},
        {"tokens": 3, "shapes": [[1, 4]]},
        {"tokens": 3, "shapes": [[1, 4, -4]]},
        {"tokens": 3, "shapes": [[1, 4, 4.0]]},
        {"tokens": 3, "shapes": [[1, 4, 2**40]]},
        {"tokens": 4, "shapes": [[1, 4, 4]]},
        {"tokens": 3, "shapes": [[1, 4, 4], [1, 4, 4]]},
    ],
)
def test_header_that_does_not_fit_is_refused(header):
    codec = PlainCodec("int8")
    planes = [(torch.ones(1, 3, 4), torch.ones(1, 3, 4))]
    encoded = codec.encode(planes, bytes(3))

    with pytest.raises(BlockFormatError):
        codec.decode(EncodedBlock(header, encoded.planes))
