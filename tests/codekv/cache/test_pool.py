import pytest

from codekv.cache.block import Block
from codekv.cache.pool import BlockPool, BlockTable
from codekv.units import ChainKey, ContentKey


def add(pool: BlockPool, num_bytes: int = 10) -> Block:
    block_id = pool.new_id()
    name = bytes([block_id])
    block = Block(
        block_id, ChainKey(name), ContentKey(name), None, name, 1, num_bytes, 1.0, 0.0
    )
    pool.add(block)
    return block


def test_ids_are_never_used_twice():
    pool = BlockPool()
    first = add(pool)
    pool.remove(first.id)

    assert add(pool).id != first.id


def test_held_block_cannot_be_removed():
    pool = BlockPool()
    block = add(pool)
    pool.acquire(block.id)

    with pytest.raises(ValueError, match="held 1 times"):
        pool.remove(block.id)


def test_release_below_zero_is_refused():
    pool = BlockPool()
    block = add(pool)

    with pytest.raises(ValueError, match="more often than held"):
        pool.release(block.id)


def test_block_is_added_once():
    pool = BlockPool()
    block = add(pool)

    with pytest.raises(ValueError, match="not new"):
        pool.add(block)


def test_sums_follow_blocks_and_holders():
    pool = BlockPool()
    one, other = add(pool, 3), add(pool, 4)
    table = BlockTable(pool, [one.id, one.id])

    assert (pool.num_bytes, pool.num_held_bytes) == (7, 3)
    assert pool.evictable() == [other]
    pool.check([table])


def test_fork_shares_blocks_and_a_change_is_the_changers_own():
    pool = BlockPool()
    one, two, three = add(pool), add(pool), add(pool)
    document = BlockTable(pool, [one.id, two.id])

    request = document.fork()
    request.assign([one.id, three.id])

    assert document.ids == (one.id, two.id)
    assert request.ids == (one.id, three.id)
    assert [block.num_refs for block in (one, two, three)] == [2, 1, 1]
    pool.check([document, request])


def test_block_lives_as_long_as_one_owner_has_it():
    pool = BlockPool()
    block = add(pool)
    first = BlockTable(pool, [block.id])
    second = first.fork()

    first.close()
    first.close()
    assert pool.evictable() == []
    second.close()

    assert pool.evictable() == [block]
    pool.check([first, second])


def test_reassigning_a_shared_block_never_frees_it_in_between():
    pool = BlockPool()
    block = add(pool)
    table = BlockTable(pool, [block.id])

    table.assign([block.id])

    assert block.num_refs == 1
    pool.check([table])


def test_check_finds_a_wrong_count():
    pool = BlockPool()
    block = add(pool)
    table = BlockTable(pool, [block.id])
    block.num_refs = 2

    with pytest.raises(AssertionError, match="reference count"):
        pool.check([table])


def test_check_finds_a_wrong_sum():
    pool = BlockPool()
    add(pool).num_bytes += 1

    with pytest.raises(AssertionError, match="sum of bytes"):
        pool.check([])
