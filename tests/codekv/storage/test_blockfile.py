import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codekv.errors import BlockFormatError
from codekv.storage.blockfile import (
    ALIGN,
    MAX_ARRAY,
    MAX_DATA,
    MAX_FILE,
    MAX_HEADER,
    MAX_MAP,
    MAX_PLANES,
    MAX_TOKENS,
    PREAMBLE,
    VERSION,
    BlockFile,
    BrokenRuleError,
    Rule,
    file_size,
    parse,
    serialize,
)
from codekv.units import ChainKey

FORMAT = (Path(__file__).parents[3] / "docs" / "format.md").read_text("utf-8")

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=10),
    st.binary(max_size=10),
)
bodies = st.dictionaries(
    st.text(max_size=8),
    st.recursive(
        scalars,
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.text(max_size=4), inner, max_size=4)
        ),
        max_leaves=10,
    ),
    max_size=5,
)
blocks = st.builds(
    BlockFile,
    fingerprint=st.text(min_size=1, max_size=40),
    codec=st.text(min_size=1, max_size=16),
    parent=st.none() | st.binary(min_size=16, max_size=16).map(ChainKey),
    tokens=st.integers(1, 40).flatmap(
        lambda n: st.binary(min_size=4 * n, max_size=4 * n)
    ),
    cost_s=st.floats(0, 1e6),
    body=bodies,
    planes=st.lists(st.binary(max_size=200).map(memoryview), max_size=5),
)
PLAIN = BlockFile("f", "c", None, b"\x01\0\0\0", 0.5, {}, [memoryview(b"abc")])


def whole(block: BlockFile) -> memoryview:
    return memoryview(b"".join(serialize(block)))


@given(blocks)
def test_what_is_written_is_read(block):
    read = parse(whole(block))

    for name in ("fingerprint", "codec", "parent", "tokens", "cost_s", "body"):
        assert getattr(read, name) == getattr(block, name)
    assert [bytes(p) for p in read.planes] == [bytes(p) for p in block.planes]


@given(blocks)
def test_preamble_tells_the_size(block):
    raw = whole(block)

    assert file_size(raw[:ALIGN]) == len(raw)


@given(blocks, st.data())
def test_any_changed_byte_is_noticed(block, data):
    raw = bytearray(whole(block))
    position = data.draw(st.integers(0, len(raw) - 1))
    raw[position] ^= data.draw(st.integers(1, 255))

    with pytest.raises(BrokenRuleError):
        parse(memoryview(raw))


@given(blocks, st.data())
def test_any_shorter_file_is_noticed(block, data):
    raw = whole(block)

    with pytest.raises(BrokenRuleError):
        parse(raw[: data.draw(st.integers(0, len(raw) - 1))])


@given(st.binary(max_size=300))
def test_any_bytes_break_a_rule_and_nothing_else(raw):
    with pytest.raises(BrokenRuleError):
        parse(memoryview(raw))


def test_planes_are_views_and_start_at_multiples_of_64():
    block = replace(PLAIN, planes=[memoryview(b"a" * 70), memoryview(b"b")])
    raw = bytearray(whole(block))
    first, second = parse(memoryview(raw)).planes

    start = raw.index(b"a" * 70)
    raw[start : start + 1] = b"x"

    assert (start % ALIGN, raw.index(b"b\0") % ALIGN) == (0, 0)
    assert bytes(first[:2]) == b"xa"
    assert bytes(second) == b"b"


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"fingerprint": ""}, Rule.FINGERPRINT),
        ({"codec": "c" * 65}, Rule.CODEC),
        ({"tokens": b""}, Rule.TOKENS),
        ({"tokens": bytes(4 * (MAX_TOKENS + 1))}, Rule.TOKENS),
        ({"cost_s": float("nan")}, Rule.COST),
        ({"planes": [memoryview(b"")] * (MAX_PLANES + 1)}, Rule.PLANES),
        ({"body": {"a": [0] * (MAX_ARRAY + 1)}}, Rule.HEADER_PACKING),
        ({"body": {"a": bytes(MAX_HEADER)}}, Rule.HEADER_SIZE),
    ],
)
def test_block_beyond_the_limits_is_not_written(change, rule):
    with pytest.raises(BrokenRuleError) as caught:
        serialize(replace(PLAIN, **change))

    assert caught.value.rule is rule


def test_body_that_msgpack_cannot_write_is_refused():
    with pytest.raises(BlockFormatError, match="cannot be packed"):
        serialize(replace(PLAIN, body={"a": object()}))


def test_specification_names_every_rule_in_order_of_checking():
    documented = re.findall(r"^\| `([a-z-]+)` \| [^|]+\|$", FORMAT, re.MULTILINE)

    assert documented == [rule.value for rule in Rule]


def test_specification_has_the_limits_of_the_code():
    for limit in (MAX_HEADER, MAX_DATA, MAX_FILE, MAX_TOKENS, MAX_PLANES):
        assert f"{limit:,}" in FORMAT
    for limit in (MAX_ARRAY, MAX_MAP):
        assert f"more than {limit:,}" in FORMAT
    assert f"Version {VERSION}." in FORMAT
    assert PREAMBLE.size == ALIGN == 64
