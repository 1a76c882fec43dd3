import pytest
from hypothesis import given
from hypothesis import strategies as st

from codekv.cache.key import KEY_BYTES, block_ref, chain_of, pack_tokens
from codekv.units import ChainKey

tokens = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=20)


def test_tokens_are_packed_little_endian():
    assert pack_tokens([1, 258]) == b"\x01\0\0\0\x02\x01\0\0"


@pytest.mark.parametrize("token", [-1, 2**32])
def test_token_ids_out_of_range_are_refused(token):
    with pytest.raises(OverflowError):
        pack_tokens([token])


def test_reference_knows_its_length():
    assert block_ref("f", None, [5, 6, 7]).num_tokens == 3


@given(tokens, tokens)
def test_same_text_from_the_start_gives_the_same_keys(first, second):
    assert chain_of("f", [first, second]) == chain_of("f", [first, second])


def test_same_tokens_after_another_text_share_the_content_key_alone():
    here = chain_of("f", [[1], [2, 3]])[1]
    there = chain_of("f", [[9], [2, 3]])[1]

    assert here.content == there.content
    assert here.chain != there.chain


def test_a_cut_at_another_place_gives_other_chain_keys():
    one = chain_of("f", [[1, 2], [3]])[-1]
    other = chain_of("f", [[1], [2, 3]])[-1]

    assert one.chain != other.chain


def test_fingerprint_is_part_of_both_keys():
    one, other = block_ref("f", None, [1]), block_ref("g", None, [1])

    assert one.chain != other.chain
    assert one.content != other.content


def test_fingerprint_and_tokens_cannot_be_confused():
    # "f" + 0x61... and "fa" + ...: the same bytes in a row, cut elsewhere.
    one = block_ref("f", None, [0x61616161, 1])
    other = block_ref("faaaa", None, [1])

    assert one.content != other.content


def test_tokens_that_spell_a_parent_do_not_make_a_child():
    parent = ChainKey(bytes(KEY_BYTES))
    child = block_ref("f", parent, [7])
    root = block_ref("f", None, [0, 0, 0, 0, 7])

    assert child.chain != root.chain


def test_keys_are_stable_between_versions():
    ref = chain_of("model/codec", [[1, 2, 3], [4]])[1]

    assert ref.chain.hex() == "74011598c58f76377a1543ef3eaa5a51"
    assert ref.content.hex() == "38f2ad2c88440bfd05a793356277dead"
