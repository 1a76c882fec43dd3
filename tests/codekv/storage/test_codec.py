"""Codec: what comes back, what it costs, and that hostile blocks are refused."""

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.errors import BlockFormatError
from codekv.storage.codec import ClassCodec
from codekv.storage.encoded import EncodedBlock
from codekv.storage.presets import (
    BALANCED,
    PRESETS,
    SEED,
    SMALL,
    BitPolicy,
    pin_first,
    uniform,
    with_heads,
)

FP16 = uniform("fp16", 16, 16)
INT8 = uniform("int8", 8, 8)
HALF_ERROR = 2.0**-10

GQA = ((2, 16, 16),) * 5
MHA = ((4, 8, 8),) * 3
UNEQUAL = ((1, 24, 16), (2, 8, 12), (1, 24, 16))


def make_planes(shapes, num_tokens, seed=0):
    torch.manual_seed(seed)
    return [
        (
            torch.randn(h, num_tokens, k) + torch.randn(h, 1, k),
            torch.randn(h, num_tokens, v),
        )
        for h, k, v in shapes
    ]


def make_classes(num_tokens, seed=0):
    source = random.Random(seed)
    return bytes(source.choices(range(4), (5, 3, 1, 2), k=num_tokens))


def flat(planes):
    return torch.cat([part.reshape(-1) for pair in planes for part in pair])


def slow_twin(planes, classes, policy):
    """Quantise element by element, straight from the description of a policy."""
    num_layers = len(planes)
    restored = []
    for layer, pair in enumerate(planes):
        is_edge = min(layer, num_layers - 1 - layer) < policy.edge_layers
        least = policy.edge_bits if is_edge else 0
        outs = []
        for is_key, data in ((True, pair[0]), (False, pair[1])):
            per_class = policy.key_bits if is_key else policy.value_bits
            tiers = {}
            for token, kind in enumerate(classes):
                pinned = token < policy.num_first or kind & 0x80
                tiers.setdefault(16 if pinned else per_class[kind], []).append(token)
            out = torch.empty_like(data)
            for width, tokens in tiers.items():
                for head in range(data.shape[0]):
                    bits = 16 if (layer, head) in policy.heads else max(width, least)
                    part = data[head, tokens]
                    if bits < 16 and is_key and len(tokens) >= policy.min_group:
                        num_groups = max(1, round(len(tokens) / policy.group))
                        chunks = torch.tensor_split(part, num_groups)
                        part = torch.cat([affine(c, bits, 0) for c in chunks])
                    elif bits < 16:
                        part = affine(part, max(bits, 8) if is_key else bits, 1)
                    out[head, tokens] = part.half().float() if bits == 16 else part
            outs.append(out)
        restored.append(tuple(outs))
    return restored


def affine(part, bits, dim):
    low = part.amin(dim, keepdim=True)
    step = ((part.amax(dim, keepdim=True) - low) / (2**bits - 1)).clamp(min=2.0**-14)
    low, step = low.half().float(), step.half().float()
    codes = ((part - low) / step + 0.5).floor().clamp(0, 2**bits - 1)
    return codes * step + low


@pytest.mark.parametrize("shapes", [GQA, MHA, UNEQUAL])
@pytest.mark.parametrize(
    "policy",
    [
        FP16,
        INT8,
        *PRESETS.values(),
        with_heads(BALANCED, ((1, 0), (2, 0))),
        BitPolicy("odd", (3, 6, 16, 2), (7, 4, 8, 5), num_first=0, min_group=9),
    ],
    ids=["fp16", "int8", "balanced", "small", "seed", "heads", "odd"],
)
def test_equals_the_description_of_its_policy(shapes, policy):
    planes, classes = make_planes(shapes, 150), pin_first(make_classes(150), 4)
    codec = ClassCodec(policy)
    restored = codec.decode(codec.encode(planes, classes))
    expected = slow_twin(planes, classes, policy)
    # Codes on a rounding edge may fall either way; a handful of elements at most.
    gap = (flat(restored) - flat(expected)).abs()
    assert (gap > 1e-4).float().mean() < 1e-3
    for (keys, values), (h, k, v) in zip(restored, shapes, strict=True):
        assert keys.shape == (h, 150, k)
        assert values.shape == (h, 150, v)
        assert keys.dtype == values.dtype == torch.float32


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    num_tokens=st.integers(1, 90),
    widths=st.lists(st.sampled_from([2, 3, 4, 5, 6, 7, 8, 16]), min_size=8, max_size=8),
    group=st.sampled_from([1, 16, 64]),
    seed=st.integers(0, 99),
)
def test_no_element_is_further_off_than_half_a_step(num_tokens, widths, group, seed):
    policy = BitPolicy(
        "any", tuple(widths[:4]), tuple(widths[4:]), group=group, edge_layers=0
    )
    planes = make_planes(UNEQUAL, num_tokens, seed)
    classes = make_classes(num_tokens, seed)
    codec = ClassCodec(policy)
    restored = codec.decode(codec.encode(planes, classes))
    span = max(p.max() - p.min() for pair in planes for p in pair)
    largest_step = span / (2 ** min(widths) - 1)
    assert (flat(planes) - flat(restored)).abs().max() <= largest_step * 0.52 + 0.01


def test_more_bits_never_hurt():
    planes, classes = make_planes(GQA, 130), make_classes(130)
    errors = []
    for width in (2, 3, 4, 5, 6, 7, 8, 16):
        codec = ClassCodec(uniform("any", width, width, edge_layers=0))
        restored = codec.decode(codec.encode(planes, classes))
        errors.append((flat(planes) - flat(restored)).square().mean().item())
    assert errors == sorted(errors, reverse=True)


def test_bytes_are_what_the_widths_say():
    shapes, num_tokens = ((2, 64, 64),) * 24, 256
    planes = make_planes(shapes, num_tokens)
    elements = num_tokens * 24 * 2 * 128
    for policy, most in ((SMALL, 5.0), (BALANCED, 6.0), (INT8, 8.6), (FP16, 16.0)):
        encoded = ClassCodec(policy).encode(planes, bytes(num_tokens))
        assert encoded.num_bytes * 8 / elements <= most


def test_pinned_and_first_tokens_keep_half_precision():
    planes, classes = make_planes(GQA, 100), make_classes(100)
    restored = ClassCodec(SMALL).decode(
        ClassCodec(SMALL).encode(planes, pin_first(classes, 4))
    )
    for pair, back in zip(planes, restored, strict=True):
        for original, copy in zip(pair, back, strict=True):
            gap = (original - copy)[:, :4].abs()
            assert (gap <= original[:, :4].abs() * HALF_ERROR).all()


def test_important_heads_keep_half_precision():
    codec = ClassCodec(with_heads(SMALL, ((2, 1),)))
    planes = make_planes(GQA, 100)
    restored = codec.decode(codec.encode(planes, bytes(100)))
    gap = (planes[2][0][1] - restored[2][0][1]).abs()
    assert (gap <= planes[2][0][1].abs() * HALF_ERROR).all()


def test_hadamard_saves_keys_with_one_large_token():
    planes = make_planes(GQA, 64)
    for keys, _ in planes:
        keys[:, 10, 3] = 60.0
    errors = []
    for hadamard in (False, True):
        policy = uniform("any", 4, 16, min_group=1000, edge_layers=0, hadamard=hadamard)
        codec = ClassCodec(policy)
        restored = codec.decode(codec.encode(planes, bytes(64)))
        errors.append((planes[1][0] - restored[1][0])[:, 10].square().mean())
    assert errors[1] < errors[0]


def test_constant_huge_and_empty_ranges_survive():
    planes = [(torch.full((1, 40, 8), 1e6), torch.zeros(1, 40, 8)) for _ in range(3)]
    codec = ClassCodec(BALANCED)
    for keys, values in codec.decode(codec.encode(planes, bytes(40))):
        assert keys.isfinite().all()
        assert (values == 0).all()


def test_equal_policies_read_each_other_and_others_are_refused():
    planes = make_planes(GQA, 30)
    encoded = ClassCodec(BALANCED).encode(planes, bytes(30))
    renamed = BitPolicy.from_dict(BALANCED.to_dict() | {"name": "mine"})
    assert ClassCodec(renamed).fingerprint == ClassCodec(BALANCED).fingerprint
    ClassCodec(renamed).decode(encoded)
    with pytest.raises(BlockFormatError):
        ClassCodec(SMALL).decode(encoded)


def test_the_original_is_not_touched():
    planes = make_planes(GQA, 70)
    before = flat(planes).clone()
    encoded = ClassCodec(SEED).encode(planes, make_classes(70))
    plane_bytes = [plane.clone() for plane in encoded.planes]
    for keys, values in ClassCodec(SEED).decode(encoded):
        keys.zero_()
        values.zero_()
    assert torch.equal(flat(planes), before)
    assert all(map(torch.equal, encoded.planes, plane_bytes))


@pytest.mark.parametrize(
    "change",
    [
        {"shapes": None},
        {"shapes": []},
        {"shapes": [[2, 16]]},
        {"shapes": [[2, 16, True]]},
        {"shapes": [[2, 16, -1]] * 5},
        {"shapes": [[1 << 19, 16, 16]]},
        {"shapes": [[2, 16, "16"]]},
        {"classes": "text"},
        {"classes": b""},
        {"classes": bytes(31)},
        {"classes": bytes(70_000)},
        {"policy": None},
    ],
)
def test_hostile_headers_are_refused(change):
    codec = ClassCodec(BALANCED)
    encoded = codec.encode(make_planes(GQA, 30), bytes(30))
    with pytest.raises(BlockFormatError):
        codec.decode(EncodedBlock(encoded.header | change, encoded.planes))


def test_missing_longer_and_odd_planes_are_refused():
    codec = ClassCodec(BALANCED)
    encoded = codec.encode(make_planes(GQA, 30), bytes(30))
    longer = [torch.cat((plane, plane[:1])) for plane in encoded.planes]
    odd = [plane.view(torch.int8) for plane in encoded.planes]
    for planes in ([], encoded.planes[1:], longer, odd):
        with pytest.raises(BlockFormatError):
            codec.decode(EncodedBlock(encoded.header, planes))


def test_any_bytes_of_the_right_length_decode():
    codec = ClassCodec(BALANCED)
    encoded = codec.encode(make_planes(GQA, 30), bytes(30))
    noise = [torch.randint_like(plane, 0, 256) for plane in encoded.planes]
    assert len(codec.decode(EncodedBlock(encoded.header, noise))) == len(GQA)
