from dataclasses import replace

import pytest

from codekv.cache.block import Block
from codekv.cache.index import PrefixIndex
from codekv.cache.key import BlockRef, chain_of
from codekv.units import BlockId


def block_of(ref: BlockRef, number: int, tokens: bytes | None = b"") -> Block:
    known = ref.tokens if tokens == b"" else tokens
    return Block(
        id=BlockId(number),
        chain=ref.chain,
        content=ref.content,
        parent=ref.parent,
        tokens=known,
        num_tokens=ref.num_tokens,
        num_bytes=1,
        cost_s=1.0,
        used_at=0.0,
    )


def kinds(index: PrefixIndex, refs: list[BlockRef]) -> list[str | None]:
    matches = [index.match(ref) for ref in refs]
    return [match.kind if match else None for match in matches]


def fill(index: PrefixIndex, refs: list[BlockRef], first: int = 1) -> list[Block]:
    blocks = [block_of(ref, first + i) for i, ref in enumerate(refs)]
    for block in blocks:
        index.insert(block)
    return blocks


def test_same_text_is_exact():
    index = PrefixIndex()
    refs = chain_of("f", [[1], [2], [3]])
    blocks = fill(index, refs)

    assert kinds(index, refs) == ["chain", "chain", "chain"]
    index.check(blocks)


def test_after_an_edit_the_blocks_below_are_movable():
    index = PrefixIndex()
    fill(index, chain_of("f", [[1], [2], [3]]))

    edited = chain_of("f", [[1], [9], [3]])

    assert kinds(index, edited) == ["chain", None, "content"]


def test_a_hole_in_the_chain_does_not_hide_exact_blocks_behind_it():
    index = PrefixIndex()
    refs = chain_of("f", [[1], [2], [3]])
    blocks = fill(index, refs)
    index.remove(blocks[1])

    assert kinds(index, refs) == ["chain", None, "chain"]


def test_newest_variant_answers_for_a_content():
    index = PrefixIndex()
    first = fill(index, chain_of("f", [[1], [5]]))
    second = fill(index, chain_of("f", [[2], [5]]), first=10)

    match = index.match(chain_of("f", [[3], [5]])[1])

    assert match is not None
    assert match.block is second[1]
    assert index.is_superseded(first[1])
    assert not index.is_superseded(second[1])


def test_removing_the_newest_brings_back_the_older():
    index = PrefixIndex()
    first = fill(index, chain_of("f", [[1], [5]]))
    second = fill(index, chain_of("f", [[2], [5]]), first=10)
    index.remove(second[1])

    match = index.match(chain_of("f", [[3], [5]])[1])

    assert match is not None
    assert match.block is first[1]


def test_colliding_hash_with_other_tokens_is_a_miss():
    index = PrefixIndex()
    ref = chain_of("f", [[1]])[0]
    index.insert(block_of(ref, 1))

    liar = replace(ref, tokens=b"\x02\0\0\0")

    assert index.match(liar) is None


def test_colliding_hash_with_another_parent_is_not_exact():
    index = PrefixIndex()
    refs = chain_of("f", [[1], [2]])
    fill(index, refs)

    liar = replace(refs[1], parent=refs[1].chain)

    assert kinds(index, [liar]) == ["content"]


def test_colliding_content_falls_back_to_an_older_variant_that_fits():
    index = PrefixIndex()
    ref = chain_of("f", [[1]])[0]
    other = replace(chain_of("f", [[7]])[0], content=ref.content)
    index.insert(block_of(ref, 1))
    index.insert(block_of(other, 2))
    wanted = chain_of("f", [[8], [1]])[1]

    match = index.match(wanted)

    assert match is not None
    assert match.block.id == 1


def test_block_with_unknown_tokens_matches_and_is_left_to_its_reader():
    index = PrefixIndex()
    ref = chain_of("f", [[1]])[0]
    index.insert(block_of(ref, 1, tokens=None))

    assert kinds(index, [ref]) == ["chain"]


def test_chain_key_is_taken_once():
    index = PrefixIndex()
    ref = chain_of("f", [[1]])[0]
    index.insert(block_of(ref, 1))

    with pytest.raises(ValueError, match="indexed already"):
        index.insert(block_of(ref, 2))


def test_check_finds_a_lost_block():
    index = PrefixIndex()
    blocks = fill(index, chain_of("f", [[1], [2]]))

    with pytest.raises(AssertionError, match="differ"):
        index.check(blocks[:1])
