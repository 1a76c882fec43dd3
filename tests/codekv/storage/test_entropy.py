"""The disk's form of a block: lossless, never larger, and safe to read."""

import pytest
import torch

from codekv.errors import BlockFormatError, UsageError
from codekv.storage import entropy as entropy_module
from codekv.storage.codec import ClassCodec
from codekv.storage.encoded import EncodedBlock
from codekv.storage.entropy import CODINGS, DiskForm, PlainDiskForm, disk_coding
from codekv.storage.plain import PlainCodec
from codekv.storage.presets import BALANCED, SEED, SMALL, pin_first, with_heads

SHAPES = ((2, 16, 16), (1, 24, 16), (2, 16, 16))
POLICIES = (BALANCED, SMALL, SEED, with_heads(SMALL, ((1, 0),)))
FORMS = [("plain", False), ("zstd", False), ("zstd", True), ("huffman", True)]


def encode(policy, num_tokens=90):
    torch.manual_seed(1)
    planes = [
        # Walks, so that differences from token to token are small.
        (torch.randn(h, num_tokens, k), torch.randn(h, num_tokens, v).cumsum(1))
        for h, k, v in SHAPES
    ]
    classes = pin_first(bytes(i % 4 for i in range(num_tokens)), 4)
    return ClassCodec(policy).encode(planes, classes)


@pytest.mark.parametrize(("entropy", "difference"), FORMS)
@pytest.mark.parametrize("policy", POLICIES, ids=["balanced", "small", "seed", "heads"])
def test_what_is_squeezed_comes_back(policy, entropy, difference):
    encoded = encode(policy)
    form = DiskForm(policy, entropy, difference)
    stored = form.squeeze(encoded)
    assert stored.num_bytes <= encoded.num_bytes
    # Any form of the policy reads what another form wrote.
    back = DiskForm(policy).expand(stored)
    assert back.header == encoded.header
    assert all(map(torch.equal, back.planes, encoded.planes))


def test_differences_pay_for_values_that_change_slowly():
    encoded = encode(SMALL, 256)
    plain = DiskForm(SMALL, "zstd").squeeze(encoded).num_bytes
    assert DiskForm(SMALL, "zstd", difference=True).squeeze(encoded).num_bytes < plain


@pytest.mark.parametrize(
    "note",
    [
        None,
        {},
        {"entropy": "zstd", "difference": False, "kinds": b""},
        {"entropy": "zstd", "difference": False, "kinds": bytes(99)},
        {"entropy": "lzma", "difference": False, "kinds": bytes(3)},
        {"entropy": "zstd", "difference": 1, "kinds": bytes(3)},
        {"entropy": "zstd", "difference": False, "kinds": "text"},
    ],
)
def test_hostile_notes_are_refused(note):
    stored = DiskForm(BALANCED).squeeze(encode(BALANCED))
    with pytest.raises(BlockFormatError):
        DiskForm(BALANCED).expand(
            EncodedBlock(stored.header | {"disk": note}, stored.planes)
        )


@pytest.mark.parametrize("entropy", ["zstd", "huffman"])
def test_damaged_and_swollen_planes_are_refused_or_have_the_right_size(entropy):
    form = DiskForm(BALANCED, entropy)
    encoded = encode(BALANCED)
    stored = form.squeeze(encoded)
    swollen = entropy_module._press(torch.zeros(1 << 22, dtype=torch.uint8), entropy)
    coded = stored.header["disk"]["kinds"].index(1)
    for junk in (swollen, b"", b"junk", stored.planes[coded].numpy().tobytes()[:-9]):
        planes = list(stored.planes)
        planes[coded] = torch.tensor(list(junk), dtype=torch.uint8)
        with pytest.raises(BlockFormatError):
            form.expand(EncodedBlock(stored.header, planes))


@pytest.mark.parametrize("name", ["fp32", "fp16", "int8"])
@pytest.mark.parametrize("coding", sorted(CODINGS))
def test_plain_codecs_come_back_too(name, coding):
    torch.manual_seed(1)
    planes = [(torch.randn(2, 33, 5), torch.randn(2, 33, 7)) for _ in range(3)]
    codec = PlainCodec(name)
    encoded = codec.encode(planes, bytes(33))
    stored = disk_coding(coding, codec).squeeze(encoded)
    back = disk_coding("plain", codec).expand(stored)

    assert stored.num_bytes <= encoded.num_bytes
    assert back.header == encoded.header
    assert all(map(torch.equal, back.planes, encoded.planes))


@pytest.mark.parametrize(
    "note",
    [
        None,
        {},
        {"entropy": "zstd", "sizes": []},
        {"entropy": "zstd", "sizes": [1 << 40] * 4},
        {"entropy": "zstd", "sizes": [True] * 4},
        {"entropy": "lzma", "sizes": [0] * 4},
        {"entropy": "huffman", "sizes": [7] * 4},
        {"entropy": "zstd", "sizes": 4},
    ],
)
def test_hostile_notes_of_plain_blocks_are_refused(note):
    encoded = PlainCodec("fp16").encode([(torch.randn(2, 9, 4),) * 2] * 2, bytes(9))
    stored = EncodedBlock(encoded.header | {"disk": note}, encoded.planes)
    with pytest.raises(BlockFormatError):
        PlainDiskForm().expand(stored)


def test_an_unknown_coding_names_the_known():
    with pytest.raises(UsageError, match="plain, zstd, huffman, differences"):
        disk_coding("lzma", PlainCodec("fp16"))
