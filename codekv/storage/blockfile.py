"""Bytes of one block file: the rules of docs/format.md, and nothing of folders.

Knows neither torch nor which codec is in use. Reading believes no length before it
is checked, and makes no copy of the planes.
"""

from __future__ import annotations

import math
import reprlib
import struct
import zlib
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgpack

from codekv.cache.key import KEY_BYTES, TOKEN_BYTES
from codekv.errors import BlockFormatError

if TYPE_CHECKING:
    from codekv.units import ChainKey

MAGIC = b"\x89ckvb\r\n\x1a"
VERSION = 1
# A cache line, and what vector loads want.
ALIGN = 64
# Limits of a reader that trusts no file; the largest real block is far below each.
MAX_HEADER = 1 << 20
# Bytes: 16 bits for each of 18,000 tokens of a 7B model.
MAX_DATA = 1 << 30
MAX_FILE = ALIGN + MAX_HEADER + MAX_DATA
# Twice the longest context that a prompt may have.
MAX_TOKENS = 1 << 16
# Keys and values of 128 layers in 32 planes each.
MAX_PLANES = 1 << 13
# A digest and the arithmetic's name take under 200 bytes.
MAX_FINGERPRINT = 512
# Names of codecs are words.
MAX_CODEC = 64
# One entry per token at most.
MAX_ARRAY = 1 << 16
# The header has under 20 keys, and tables a few hundred.
MAX_MAP = 1 << 12

PREAMBLE = struct.Struct("<8sHHIQII16s16s")
_SIGNED = 32  # the digest covers the bytes before it
_PERSON = b"codekv-file"
_KEYS = {"fingerprint", "codec", "parent", "tokens", "cost_s", "planes", "body"}


class Rule(StrEnum):
    """A rule of docs/format.md; the order is the order of checking."""

    PREAMBLE = "preamble"
    MAGIC = "magic"
    VERSION = "version"
    RESERVED = "reserved"
    HEADER_SIZE = "header-size"
    DATA_SIZE = "data-size"
    FILE_SIZE = "file-size"
    HEADER_DIGEST = "header-digest"
    HEADER_PACKING = "header-packing"
    HEADER_KEYS = "header-keys"
    FINGERPRINT = "fingerprint"
    CODEC = "codec"
    PARENT = "parent"
    TOKENS = "tokens"
    COST = "cost"
    PLANES = "planes"
    BODY = "body"
    DATA_DIGEST = "data-digest"


class BrokenRuleError(BlockFormatError):
    """A file breaks one rule of docs/format.md."""

    def __init__(self, rule: Rule, value: object) -> None:
        # reprlib, because a hostile value may be nested deeper than repr can go.
        shown = " ".join(reprlib.repr(value).split())
        super().__init__(f"rule {rule.value} of docs/format.md is broken: {shown}")
        self.rule = rule


@dataclass(frozen=True, slots=True, eq=False)
class BlockFile:
    """Content of one file; `planes` are views of the buffer it was read from."""

    fingerprint: str
    codec: str
    parent: ChainKey | None
    tokens: bytes
    cost_s: float
    body: dict[str, Any]
    planes: list[memoryview]


def serialize(block: BlockFile) -> list[bytes | memoryview]:
    """Make the bytes of a file, as parts to be written one after the other.

    Raises:
        BlockFormatError: The block is beyond the format's limits.
    """
    data: list[bytes | memoryview] = []
    for plane in block.planes:
        data += (plane, bytes(-plane.nbytes % ALIGN))
    data_size = sum(len(part) for part in data)
    header = _pack_header(block)
    _expect(len(header) <= MAX_HEADER, Rule.HEADER_SIZE, len(header))
    _expect(data_size <= MAX_DATA, Rule.DATA_SIZE, data_size)
    # What is written must be readable, whatever a codec put into its body.
    _check_fields(_unpack_header(header), data_size)
    crc = 0
    for part in data:
        crc = zlib.crc32(part, crc)
    fields = (MAGIC, VERSION, 0, len(header), data_size, crc, 0)
    signed = PREAMBLE.pack(*fields, b"", b"")[:_SIGNED]
    preamble = PREAMBLE.pack(*fields, _digest(signed, header), b"")
    return [preamble, header, bytes(-len(header) % ALIGN), *data]


def file_size(preamble: memoryview) -> int:
    """Tell from the first 64 bytes how long the whole file is.

    Raises:
        BrokenRuleError: A rule about these bytes is broken.
    """
    header_size, data_size, _ = _check_preamble(preamble)
    return ALIGN + header_size + -header_size % ALIGN + data_size


def parse(buffer: memoryview) -> BlockFile:
    """Check every rule and view the content of a whole file.

    Args:
        buffer: All bytes of the file; the result's planes point into it.

    Raises:
        BrokenRuleError: A rule of docs/format.md is broken.
    """
    header_size, data_size, crc = _check_preamble(buffer[:ALIGN])
    header_stop = ALIGN + header_size
    data_start = header_stop + -header_stop % ALIGN
    _expect(len(buffer) == data_start + data_size, Rule.FILE_SIZE, len(buffer))
    header = bytes(buffer[ALIGN:header_stop])
    signed, digest = bytes(buffer[:_SIGNED]), bytes(buffer[_SIGNED : _SIGNED + 16])
    _expect(_digest(signed, header) == digest, Rule.HEADER_DIGEST, digest)
    _check_zeros(buffer[header_stop:data_start])
    fields = _unpack_header(header)
    sizes = _check_fields(fields, data_size)
    data = buffer[data_start:]
    _expect(zlib.crc32(data) == crc, Rule.DATA_DIGEST, crc)
    return BlockFile(
        fingerprint=fields["fingerprint"],
        codec=fields["codec"],
        parent=fields["parent"],
        tokens=fields["tokens"],
        cost_s=fields["cost_s"],
        body=fields["body"],
        planes=_cut(data, sizes),
    )


def _check_preamble(preamble: memoryview) -> tuple[int, int, int]:
    """Check the first 64 bytes.

    Returns:
        Header size, data size, and the data's checksum.
    """
    _expect(len(preamble) == ALIGN, Rule.PREAMBLE, len(preamble))
    magic, version, zero_2, header_size, data_size, crc, zero_4, _, zeros = (
        PREAMBLE.unpack(preamble)
    )
    _expect(magic == MAGIC, Rule.MAGIC, magic)
    _expect(version == VERSION, Rule.VERSION, version)
    is_zero = not (zero_2 or zero_4 or any(zeros))
    _expect(is_zero, Rule.RESERVED, (zero_2, zero_4, zeros))
    _expect(0 < header_size <= MAX_HEADER, Rule.HEADER_SIZE, header_size)
    is_aligned = data_size % ALIGN == 0
    _expect(data_size <= MAX_DATA and is_aligned, Rule.DATA_SIZE, data_size)
    return header_size, data_size, crc


def _check_fields(fields: dict[str, Any], data_size: int) -> list[int]:
    """Check the header's keys and values and return the plane sizes."""
    _expect(fields.keys() == _KEYS, Rule.HEADER_KEYS, sorted(fields))
    name, codec = fields["fingerprint"], fields["codec"]
    _expect(_is_text(name, MAX_FINGERPRINT), Rule.FINGERPRINT, name)
    _expect(_is_text(codec, MAX_CODEC), Rule.CODEC, codec)
    parent, tokens = fields["parent"], fields["tokens"]
    is_key = isinstance(parent, bytes) and len(parent) == KEY_BYTES
    _expect(parent is None or is_key, Rule.PARENT, parent)
    _expect(_is_tokens(tokens), Rule.TOKENS, tokens)
    cost = fields["cost_s"]
    is_cost = type(cost) is float and math.isfinite(cost) and cost >= 0
    _expect(is_cost, Rule.COST, cost)
    sizes = fields["planes"]
    _expect(_is_tiling(sizes, data_size), Rule.PLANES, sizes)
    _expect(isinstance(fields["body"], dict), Rule.BODY, fields["body"])
    return list(sizes)


def _is_text(value: Any, limit: int) -> bool:
    return isinstance(value, str) and 0 < len(value.encode()) <= limit


def _is_tokens(value: Any) -> bool:
    if not isinstance(value, bytes) or len(value) % TOKEN_BYTES:
        return False
    return 0 < len(value) <= MAX_TOKENS * TOKEN_BYTES


def _is_tiling(sizes: Any, data_size: int) -> bool:
    """Tell whether planes of these sizes fill the data exactly."""
    if not isinstance(sizes, list) or len(sizes) > MAX_PLANES:
        return False
    if not all(type(size) is int and size >= 0 for size in sizes):
        return False
    return sum(size + -size % ALIGN for size in sizes) == data_size


def _pack_header(block: BlockFile) -> bytes:
    fields = {
        "fingerprint": block.fingerprint,
        "codec": block.codec,
        "parent": block.parent,
        "tokens": block.tokens,
        "cost_s": float(block.cost_s),
        "planes": [plane.nbytes for plane in block.planes],
        "body": block.body,
    }
    try:
        return bytes(msgpack.packb(fields))
    except (TypeError, ValueError, OverflowError) as error:
        raise BlockFormatError(f"a codec's header cannot be packed: {error}") from error


def _unpack_header(header: bytes) -> dict[str, Any]:
    try:
        fields = msgpack.unpackb(
            header,
            object_pairs_hook=_read_map,
            list_hook=_read_list,
            ext_hook=_refuse_ext,
            max_array_len=MAX_ARRAY,
            max_map_len=MAX_MAP,
        )
    except ValueError as error:
        raise BrokenRuleError(Rule.HEADER_PACKING, error) from error
    _expect(isinstance(fields, dict), Rule.HEADER_PACKING, fields)
    return fields


def _read_map(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs) or not all(isinstance(key, str) for key in result):
        raise ValueError("a key given twice, or not a string")
    _read_list(list(result.values()))
    return result


def _read_list(items: list[Any]) -> list[Any]:
    # The one extension type that msgpack decodes without asking.
    if any(isinstance(item, msgpack.Timestamp) for item in items):
        raise ValueError("a timestamp")
    return items


def _refuse_ext(code: int, data: bytes) -> None:
    raise ValueError(f"extension type {code} of {len(data)} bytes")


def _cut(data: memoryview, sizes: list[int]) -> list[memoryview]:
    planes = []
    start = 0
    for size in sizes:
        stop = start + size
        planes.append(data[start:stop])
        start = stop + -stop % ALIGN
        _check_zeros(data[stop:start])
    return planes


def _check_zeros(padding: memoryview) -> None:
    _expect(not any(padding), Rule.RESERVED, bytes(padding))


def _digest(signed: bytes, header: bytes) -> bytes:
    return blake2b(signed + header, digest_size=16, person=_PERSON).digest()


def _expect(is_kept: bool, rule: Rule, value: object) -> None:
    if not is_kept:
        raise BrokenRuleError(rule, value)
