"""Entropy coding of blocks at rest on a disk: smaller files for some decode time.

Lossless, and never used in memory. Codes are written one per byte before they are
entropy coded, because codes of 5 bits do not line up with bytes. Values may be
written as differences from token to token. Blocks of plain codecs are coded byte plane
by byte plane. A file says how it is coded, so files of all codings may lie in one
folder. docs/compression.md tells what each of these is worth.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import torch
import zstandard

from codekv.errors import BlockFormatError, UsageError
from codekv.storage import bits
from codekv.storage.codec import ClassCodec, read_plan
from codekv.storage.encoded import EncodedBlock
from codekv.storage.layout import HALF

if TYPE_CHECKING:
    from torch import Tensor

    from codekv.storage.encoded import Codec
    from codekv.storage.layout import BlockLayout
    from codekv.storage.presets import BitPolicy

Entropy = Literal["plain", "zstd", "huffman"]

CODINGS: dict[str, tuple[Entropy, bool]] = {
    "plain": ("plain", False),
    "zstd": ("zstd", False),
    "huffman": ("huffman", False),
    "differences": ("zstd", True),
}
"""By the names that `kvcache.disk_coding` takes: a coder, and whether value codes are
written as differences."""

_LEVEL = 1  # higher levels look for repetitions that codes do not have
_KEY = "disk"

_NUMBER = 4
"""Bytes that are told apart: those of float32; float16 has two such numbers in them."""

MAX_PLANE = 1 << 28
"""No plane of a sound file is longer: a small hostile file must not fill the memory."""

_PACKED, _CODED = 0, 1


class DiskCoding(Protocol):
    """Turns blocks into what lies on the disk and back."""

    def squeeze(self, encoded: EncodedBlock) -> EncodedBlock:
        """Make the block that goes to disk."""

    def expand(self, stored: EncodedBlock) -> EncodedBlock:
        """Undo `squeeze`, whatever coding it was made with.

        Raises:
            BlockFormatError: The block is damaged.
        """


def disk_coding(name: str, codec: Codec) -> DiskCoding:
    """Make the coding that `kvcache.disk_coding` names, for blocks of one codec.

    Raises:
        UsageError: No coding has this name.
    """
    if name not in CODINGS:
        known = ", ".join(CODINGS)
        raise UsageError(f"no disk coding is called {name!r}; known: {known}")
    entropy, difference = CODINGS[name]
    if isinstance(codec, ClassCodec):
        return DiskForm(codec.policy, entropy, difference)
    return PlainDiskForm(entropy)


@dataclass(frozen=True, slots=True)
class DiskForm:
    """How blocks of one policy are written to a disk.

    Attributes:
        entropy: The coder; `huffman` is deflate without its search for repetitions.
        difference: Write value codes as differences, modulo their width, from the
            token before.
    """

    policy: BitPolicy
    entropy: Entropy = "zstd"
    difference: bool = False

    def squeeze(self, encoded: EncodedBlock) -> EncodedBlock:
        """Make the block that goes to disk; planes that do not shrink stay."""
        if self.entropy == "plain":
            return encoded
        _, layout = read_plan(encoded, self.policy)
        planes, kinds = [], []
        for index, plane in enumerate(encoded.planes):
            coded = _press(self._spread(plane, index, layout), self.entropy)
            shrinks = len(coded) < plane.numel()
            kinds.append(_CODED if shrinks else _PACKED)
            planes.append(_tensor(coded) if shrinks else plane)
        note = {
            "entropy": self.entropy,
            "difference": self.difference,
            "kinds": bytes(kinds),
        }
        return EncodedBlock(encoded.header | {_KEY: note}, planes)

    def expand(self, stored: EncodedBlock) -> EncodedBlock:
        """Undo `squeeze`, whatever form it was made with.

        Raises:
            BlockFormatError: The block is damaged.
        """
        if _KEY not in stored.header:
            return stored
        form, kinds = self._read_note(stored.header[_KEY])
        header = {name: v for name, v in stored.header.items() if name != _KEY}
        _, layout = read_plan(
            EncodedBlock(header, stored.planes), self.policy, is_whole=False
        )
        sizes = layout.plane_bytes
        if not len(kinds) == len(stored.planes) == len(sizes):
            raise BlockFormatError("block has another number of planes than due")
        planes = []
        for index, (kind, plane) in enumerate(zip(kinds, stored.planes, strict=True)):
            if kind == _CODED:
                size = _spread_size(index, layout)
                raw = _release(plane, size, form.entropy)
                planes.append(form._gather(raw, index, layout))  # noqa: SLF001
            else:
                planes.append(plane)
        return EncodedBlock(header, planes)

    def _read_note(self, note: Any) -> tuple[DiskForm, bytes]:
        try:
            entropy, difference = note["entropy"], note["difference"]
            kinds = note["kinds"]
        except (TypeError, KeyError) as error:
            raise BlockFormatError("block's disk form is not readable") from error
        known = entropy in ("zstd", "huffman") and isinstance(difference, bool)
        if not known or not isinstance(kinds, bytes):
            raise BlockFormatError("block's disk form is not known")
        return DiskForm(self.policy, entropy, difference), kinds

    def _spread(self, plane: Tensor, index: int, layout: BlockLayout) -> Tensor:
        """A plane in the order that codes best."""
        if _is_half(index, layout):
            # Sign and exponent repeat, fractions do not.
            return plane.view(-1, 2).t().contiguous().view(-1)
        width, num = layout.widths[index - 1]
        codes = bits.unpack(plane, bits.padded(num), width)
        if self.difference:
            codes = codes.clone()
            for part in _value_parts(codes, width, layout):
                part[1:] = (part[1:] - part[:-1]) & ((1 << width) - 1)
        return codes

    def _gather(self, spread: Tensor, index: int, layout: BlockLayout) -> Tensor:
        """Undo `_spread`."""
        if _is_half(index, layout):
            return spread.view(2, -1).t().contiguous().view(-1)
        width, _ = layout.widths[index - 1]
        codes = spread
        if self.difference:
            for part in _value_parts(codes, width, layout):
                part[:] = part.cumsum(0, dtype=torch.int32) & ((1 << width) - 1)
        return bits.pack(codes & ((1 << width) - 1), width)


@dataclass(frozen=True, slots=True)
class PlainDiskForm:
    """How blocks of the plain codecs are written to a disk.

    Attributes:
        entropy: See `DiskForm`. Differences are not made: these codecs keep numbers,
            not codes of a width.
    """

    entropy: Entropy = "zstd"

    def squeeze(self, encoded: EncodedBlock) -> EncodedBlock:
        """Make the block that goes to disk; planes that do not shrink stay."""
        if self.entropy == "plain":
            return encoded
        planes, sizes = [], []
        for plane in encoded.planes:
            coded = _press(_by_significance(plane), self.entropy)
            shrinks = len(coded) < plane.numel()
            sizes.append(plane.numel() if shrinks else 0)
            planes.append(_tensor(coded) if shrinks else plane)
        note = {"entropy": self.entropy, "sizes": sizes}
        return EncodedBlock(encoded.header | {_KEY: note}, planes)

    def expand(self, stored: EncodedBlock) -> EncodedBlock:
        """Undo `squeeze`, whatever form it was made with.

        Raises:
            BlockFormatError: The block is damaged.
        """
        if _KEY not in stored.header:
            return stored
        note = stored.header[_KEY]
        try:
            entropy, sizes = note["entropy"], list(note["sizes"])
        except (TypeError, KeyError) as error:
            raise BlockFormatError("block's disk form is not readable") from error
        is_known = entropy in ("zstd", "huffman")
        are_sizes = all(type(n) is int and 0 <= n <= MAX_PLANE for n in sizes)
        if not (is_known and are_sizes) or len(sizes) != len(stored.planes):
            raise BlockFormatError("block's disk form is not known")
        planes = [
            _to_numbers(_release(plane, size, entropy)) if size else plane
            for plane, size in zip(stored.planes, sizes, strict=True)
        ]
        header = {name: v for name, v in stored.header.items() if name != _KEY}
        return EncodedBlock(header, planes)


def _by_significance(plane: Tensor) -> Tensor:
    """First all lowest bytes of 4, and so on: exponents repeat, fractions do not."""
    whole = plane.numel() // _NUMBER * _NUMBER
    turned = plane[:whole].view(-1, _NUMBER).t().reshape(-1)
    return torch.cat([turned, plane[whole:]])


def _to_numbers(turned: Tensor) -> Tensor:
    """Undo `_by_significance`."""
    whole = turned.numel() // _NUMBER * _NUMBER
    plane = turned[:whole].view(_NUMBER, -1).t().reshape(-1)
    return torch.cat([plane, turned[whole:]])


def _press(data: Tensor, entropy: Entropy) -> bytes:
    raw = data.numpy().tobytes()
    if entropy == "zstd":
        return zstandard.ZstdCompressor(level=_LEVEL).compress(raw)
    coder = zlib.compressobj(
        zlib.Z_DEFAULT_COMPRESSION,
        zlib.DEFLATED,
        -zlib.MAX_WBITS,
        zlib.DEF_MEM_LEVEL,
        zlib.Z_HUFFMAN_ONLY,
    )
    return coder.compress(raw) + coder.flush()


def _release(plane: Tensor, size: int, entropy: Entropy) -> Tensor:
    data = plane.numpy().tobytes()
    try:
        if entropy == "zstd":
            found = zstandard.get_frame_parameters(data).content_size
            # The size is checked first: a small plane must not fill the memory.
            raw = b"" if found != size else _unzstd(data, size)
        else:
            raw = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, size + 1)
    except (zstandard.ZstdError, zlib.error) as error:
        raise BlockFormatError(f"a plane cannot be decoded ({error})") from error
    if len(raw) != size:
        raise BlockFormatError(f"a plane holds {len(raw)} bytes, not {size}")
    return _tensor(raw)


def _unzstd(data: bytes, size: int) -> bytes:
    return zstandard.ZstdDecompressor().decompress(data, max_output_size=size)


def _tensor(raw: bytes) -> Tensor:
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8)


def _is_half(index: int, layout: BlockLayout) -> bool:
    """Whether a plane holds half-precision numbers: scales, or 16-bit elements."""
    return index == 0 or layout.widths[index - 1][0] == HALF


def _spread_size(index: int, layout: BlockLayout) -> int:
    if _is_half(index, layout):
        return layout.plane_bytes[index]
    return bits.padded(layout.widths[index - 1][1])


def _value_parts(codes: Tensor, width: int, layout: BlockLayout) -> list[Tensor]:
    """Views [tokens, channels] of the codes that belong to values."""
    return [
        codes[section.offset : section.offset + section.num_elements].view(
            section.num_rows, section.num_columns
        )
        for section in layout.values.sections
        if section.width == width
    ]
