"""One hostile file per rule of docs/format.md, each otherwise sound."""

import os
import struct
import zlib
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgpack
import pytest

from codekv.cache.events import Event
from codekv.cache.key import chain_of
from codekv.storage.blockfile import (
    MAX_DATA,
    MAX_HEADER,
    BrokenRuleError,
    Rule,
    parse,
)
from codekv.testing.blocks import is_same, make_store, planes_for, put_all

MAGIC = b"\x89ckvb\r\n\x1a"
FIELDS: dict[str, Any] = {
    "fingerprint": "model",
    "codec": "fp32",
    "parent": None,
    "tokens": b"\x01\0\0\0",
    "cost_s": 0.5,
    "planes": [3],
    "body": {},
}
DATA = b"abc" + bytes(61)


def forge(
    header: bytes | None = None,
    data: bytes = DATA,
    magic: bytes = MAGIC,
    version: int = 1,
    zeros: tuple[int, int, bytes] = (0, 0, bytes(16)),
    header_size: int | None = None,
    data_size: int | None = None,
    crc: int | None = None,
    padding: bytes | None = None,
) -> bytes:
    """Build a file from the specification alone, with a digest that fits."""
    header = msgpack.packb(FIELDS) if header is None else header
    signed = struct.pack(
        "<8sHHIQII",
        magic,
        version,
        zeros[0],
        len(header) if header_size is None else header_size,
        len(data) if data_size is None else data_size,
        zlib.crc32(data) if crc is None else crc,
        zeros[1],
    )
    digest = blake2b(signed + header, digest_size=16, person=b"codekv-file").digest()
    padding = bytes(-len(header) % 64) if padding is None else padding
    return signed + digest + zeros[2] + header + padding + data


def with_fields(**changes: Any) -> bytes:
    return forge(msgpack.packb(FIELDS | changes))


def raw_map(*pairs: bytes) -> bytes:
    """A header of the good fields and some packed pairs of anything."""
    good = b"".join(msgpack.packb(k) + msgpack.packb(v) for k, v in FIELDS.items())
    return bytes([0x80 + len(FIELDS) + len(pairs)]) + good + b"".join(pairs)


def nested(depth: int) -> bytes:
    body = b"\x81\xa1a" * depth + b"\x01"
    fields = [(k, v) for k, v in FIELDS.items() if k != "body"]
    packed = b"".join(msgpack.packb(k) + msgpack.packb(v) for k, v in fields)
    return bytes([0x80 + len(FIELDS)]) + packed + msgpack.packb("body") + body


HOSTILE: list[tuple[str, Rule, Callable[[], bytes]]] = [
    ("empty", Rule.PREAMBLE, lambda: b""),
    ("63 bytes", Rule.PREAMBLE, lambda: forge()[:63]),
    ("a pickle", Rule.MAGIC, lambda: b"\x80\x04\x95" + bytes(100)),
    ("line ends converted", Rule.MAGIC, lambda: forge().replace(b"\r\n", b"\n")),
    ("another magic", Rule.MAGIC, lambda: forge(magic=b"\x89PNG\r\n\x1a\n")),
    ("version 0", Rule.VERSION, lambda: forge(version=0)),
    ("version 2", Rule.VERSION, lambda: forge(version=2)),
    ("big-endian version", Rule.VERSION, lambda: forge(version=256)),
    ("first reserved", Rule.RESERVED, lambda: forge(zeros=(1, 0, bytes(16)))),
    ("second reserved", Rule.RESERVED, lambda: forge(zeros=(0, 1, bytes(16)))),
    ("last reserved", Rule.RESERVED, lambda: forge(zeros=(0, 0, bytes(15) + b"x"))),
    (
        "payload after the header",
        Rule.RESERVED,
        lambda: forge(padding=b"x" * (-len(msgpack.packb(FIELDS)) % 64)),
    ),
    ("payload after a plane", Rule.RESERVED, lambda: forge(data=b"abc" + b"x" * 61)),
    ("no header", Rule.HEADER_SIZE, lambda: forge(b"")),
    ("huge header", Rule.HEADER_SIZE, lambda: forge(header_size=MAX_HEADER + 1)),
    ("4 GiB header", Rule.HEADER_SIZE, lambda: forge(header_size=2**32 - 1)),
    ("huge data", Rule.DATA_SIZE, lambda: forge(data_size=MAX_DATA + 64)),
    ("sizes that overflow", Rule.DATA_SIZE, lambda: forge(data_size=2**64 - 64)),
    ("data not aligned", Rule.DATA_SIZE, lambda: forge(data_size=63)),
    ("one byte more", Rule.FILE_SIZE, lambda: forge() + b"\0"),
    ("one byte less", Rule.FILE_SIZE, lambda: forge()[:-1]),
    ("data missing", Rule.FILE_SIZE, lambda: forge(data_size=MAX_DATA)),
    ("header past the end", Rule.FILE_SIZE, lambda: forge(header_size=MAX_HEADER)),
    (
        "changed header",
        Rule.HEADER_DIGEST,
        lambda: forge().replace(b"model", b"nodel"),
    ),
    (
        "digest without personalisation",
        Rule.HEADER_DIGEST,
        lambda: (
            forge()[:32]
            + blake2b(forge()[:32] + msgpack.packb(FIELDS), digest_size=16).digest()
            + forge()[48:]
        ),
    ),
    ("a list", Rule.HEADER_PACKING, lambda: forge(msgpack.packb(list(FIELDS)))),
    ("not msgpack", Rule.HEADER_PACKING, lambda: forge(b"\xc1")),
    ("json", Rule.HEADER_PACKING, lambda: forge(b'{"tokens": 1}')),
    (
        "two maps",
        Rule.HEADER_PACKING,
        lambda: forge(msgpack.packb(FIELDS) + msgpack.packb({})),
    ),
    ("cut", Rule.HEADER_PACKING, lambda: forge(msgpack.packb(FIELDS)[:-1])),
    (
        "key twice",
        Rule.HEADER_PACKING,
        lambda: forge(raw_map(msgpack.packb("tokens") + msgpack.packb(b"\2\0\0\0"))),
    ),
    (
        "key twice below",
        Rule.HEADER_PACKING,
        lambda: forge(raw_map(b"\xa1b\x82\xa1a\x01\xa1a\x02")),
    ),
    ("bytes as key", Rule.HEADER_PACKING, lambda: forge(raw_map(b"\xc4\x01a\x01"))),
    ("number as key", Rule.HEADER_PACKING, lambda: forge(raw_map(b"\x01\x01"))),
    (
        "extension type",
        Rule.HEADER_PACKING,
        lambda: with_fields(body={"a": msgpack.ExtType(4, b"x")}),
    ),
    (
        "timestamp in a map",
        Rule.HEADER_PACKING,
        lambda: with_fields(body={"a": msgpack.Timestamp(1)}),
    ),
    (
        "timestamp in a list",
        Rule.HEADER_PACKING,
        lambda: with_fields(body={"a": [[msgpack.Timestamp(1)]]}),
    ),
    (
        "string that is not UTF-8",
        Rule.HEADER_PACKING,
        lambda: forge(raw_map(b"\xa1\xff\x01")),
    ),
    ("nested too deep", Rule.HEADER_PACKING, lambda: forge(nested(5000))),
    (
        "array that claims 4 G items",
        Rule.HEADER_PACKING,
        lambda: forge(raw_map(b"\xa1x\xdd\xff\xff\xff\xff")),
    ),
    (
        "arrays of arrays that claim 65,536 items each",
        Rule.HEADER_PACKING,
        lambda: forge(raw_map(b"\xa1x" + b"\xdd\0\1\0\0" * 1000 + bytes(1 << 17))),
    ),
    (
        "map that claims 4 G keys",
        Rule.HEADER_PACKING,
        lambda: forge(raw_map(b"\xa1x\xdf\xff\xff\xff\xff")),
    ),
    ("unknown key", Rule.HEADER_KEYS, lambda: with_fields(more=1)),
    (
        "missing key",
        Rule.HEADER_KEYS,
        lambda: forge(msgpack.packb({k: v for k, v in FIELDS.items() if k != "body"})),
    ),
    ("no keys", Rule.HEADER_KEYS, lambda: forge(b"\x80")),
    ("fingerprint of bytes", Rule.FINGERPRINT, lambda: with_fields(fingerprint=b"m")),
    ("empty fingerprint", Rule.FINGERPRINT, lambda: with_fields(fingerprint="")),
    ("long fingerprint", Rule.FINGERPRINT, lambda: with_fields(fingerprint="é" * 257)),
    ("no codec", Rule.CODEC, lambda: with_fields(codec=None)),
    ("long codec", Rule.CODEC, lambda: with_fields(codec="c" * 65)),
    ("short parent", Rule.PARENT, lambda: with_fields(parent=bytes(15))),
    ("parent as text", Rule.PARENT, lambda: with_fields(parent="p" * 16)),
    ("no tokens", Rule.TOKENS, lambda: with_fields(tokens=b"")),
    ("three bytes of tokens", Rule.TOKENS, lambda: with_fields(tokens=b"abc")),
    ("tokens as list", Rule.TOKENS, lambda: with_fields(tokens=[1])),
    ("too many tokens", Rule.TOKENS, lambda: with_fields(tokens=bytes(4 * 65537))),
    ("cost not a number", Rule.COST, lambda: with_fields(cost_s=float("nan"))),
    ("endless cost", Rule.COST, lambda: with_fields(cost_s=float("inf"))),
    ("negative cost", Rule.COST, lambda: with_fields(cost_s=-1.0)),
    ("whole cost", Rule.COST, lambda: with_fields(cost_s=1)),
    ("planes as map", Rule.PLANES, lambda: with_fields(planes={"a": 3})),
    ("negative plane", Rule.PLANES, lambda: with_fields(planes=[67, -3])),
    ("overlapping planes", Rule.PLANES, lambda: with_fields(planes=[3, 3])),
    ("hole behind the planes", Rule.PLANES, lambda: with_fields(planes=[])),
    ("plane past the end", Rule.PLANES, lambda: with_fields(planes=[2**62])),
    ("true as a length", Rule.PLANES, lambda: with_fields(planes=[True])),
    ("too many planes", Rule.PLANES, lambda: with_fields(planes=[3] + [0] * 8192)),
    ("body as list", Rule.BODY, lambda: with_fields(body=[])),
    ("no body", Rule.BODY, lambda: with_fields(body=None)),
    ("changed data", Rule.DATA_DIGEST, lambda: forge(crc=1)),
]
IDS = [name for name, _, _ in HOSTILE]


@pytest.mark.parametrize(("name", "rule", "make"), HOSTILE, ids=IDS)
def test_hostile_file_breaks_its_rule(name, rule, make):
    with pytest.raises(BrokenRuleError) as caught:
        parse(memoryview(make()))

    assert caught.value.rule is rule
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_the_forger_makes_sound_files():
    block = parse(memoryview(forge()))

    assert (block.fingerprint, bytes(block.planes[0])) == ("model", b"abc")
    assert parse(memoryview(forge(nested(900)))).body


def test_every_rule_has_an_attack():
    assert {rule for _, rule, _ in HOSTILE} == set(Rule)


@pytest.fixture
def victim(tmp_path: Path):
    """A folder with two blocks, the first of which is about to be replaced."""
    store = make_store(tmp_path)
    refs = chain_of(store.fingerprint, [[1, 2], [3]])
    put_all(store, refs)
    store.flush(10_000)
    path = next(tmp_path.rglob(f"{refs[0].chain.hex()}-*"))
    return tmp_path, refs, path


def assert_only_the_victim_is_lost(folder: Path, refs, path: Path, event: Event):
    store = make_store(folder)
    loaded = [store.load(hit) for hit in store.match(refs) if hit]

    assert not any(is_same(planes, planes_for(refs[0])) for planes in loaded)
    assert is_same(loaded[-1], planes_for(refs[1]))
    if event in store.counters.as_dict():
        assert store.counters[event] == 1
    assert store.match(refs)[0] is None
    store.check()
    # And the place is free again.
    put_all(store, refs)
    store.flush(10_000)
    again = make_store(folder)
    if not path.is_dir():
        assert is_same(again.load(again.match(refs)[0]), planes_for(refs[0]))


@pytest.mark.parametrize(("name", "rule", "make"), HOSTILE, ids=IDS)
def test_store_drops_a_hostile_file_and_goes_on(victim, name, rule, make):
    folder, refs, path = victim
    path.write_bytes(make())

    assert_only_the_victim_is_lost(folder, refs, path, Event.CORRUPT)


@pytest.mark.parametrize(
    "changes",
    [
        {"tokens": [1]},
        {"tokens": 3},
        {"shapes": []},
        {"shapes": [[1, 4, 4]]},
        {"shapes": [[2, 4, 8], [1, 4, 4]]},
        {"shapes": [[1, 4, 4], [2, 8, 4]]},
        {"shapes": "x"},
    ],
    ids=str,
)
def test_store_drops_a_sound_file_whose_codec_header_lies(victim, changes):
    folder, refs, path = victim
    block = parse(memoryview(path.read_bytes()))
    planes = [bytes(plane) for plane in block.planes]
    fields = {
        "fingerprint": block.fingerprint,
        "codec": block.codec,
        "parent": block.parent,
        "tokens": block.tokens,
        "cost_s": block.cost_s,
        "planes": [len(plane) for plane in planes],
        "body": block.body | changes,
    }
    data = b"".join(plane + bytes(-len(plane) % 64) for plane in planes)
    path.write_bytes(forge(msgpack.packb(fields), data))

    assert_only_the_victim_is_lost(folder, refs, path, Event.CORRUPT)


def test_link_under_a_blocks_name_is_not_followed(victim):
    folder, refs, path = victim
    secret = folder / "secret"
    path.rename(secret)
    path.symlink_to(secret)

    assert_only_the_victim_is_lost(folder, refs, path, Event.MISS)
    assert secret.exists()


def test_link_that_appears_after_the_index_was_built_is_not_followed(victim):
    folder, refs, path = victim
    store = make_store(folder)
    secret = folder / "secret"
    path.rename(secret)
    path.symlink_to(secret)

    assert store.load(store.match(refs)[0]) is None
    assert store.counters[Event.READ_FAILED] == 1
    assert secret.exists()


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_not_read(victim, kind):
    folder, refs, path = victim
    store = make_store(folder)
    path.unlink()
    path.mkdir() if kind == "folder" else os.mkfifo(path)

    assert store.load(store.match(refs)[0]) is None
    assert store.counters[Event.CORRUPT] == 1
    store.check()


def test_sparse_file_of_a_gigabyte_is_not_read_to_its_end(victim):
    folder, refs, path = victim
    os.truncate(path, 64 + (1 << 20) + (1 << 30))
    store = make_store(folder, disk_bytes=1 << 40)

    assert store.load(store.match(refs)[0]) is None
    assert store.counters[Event.CORRUPT] == 1
