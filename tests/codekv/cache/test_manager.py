import pytest

from codekv.cache.key import BlockRef, chain_of
from codekv.cache.manager import CacheManager, Insertion, NewBlock
from codekv.cache.policy import MemoryGuard, policy


def new(
    ref: BlockRef, num_bytes: int = 10, cost_s: float = 1.0, volatile: bool = False
):
    return NewBlock(
        chain=ref.chain,
        content=ref.content,
        parent=ref.parent,
        tokens=ref.tokens,
        num_tokens=ref.num_tokens,
        num_bytes=num_bytes,
        cost_s=cost_s,
        is_volatile=volatile,
    )


def refs_of(num: int) -> list[BlockRef]:
    return [chain_of("f", [[i]])[0] for i in range(num)]


def manager_of(budget: int = 100, name: str = "recency", guard=None) -> CacheManager:
    return CacheManager(budget, policy(name), guard)


def insert_all(manager: CacheManager, refs: list[BlockRef]) -> list[Insertion]:
    results = [manager.insert(new(ref), float(i)) for i, ref in enumerate(refs)]
    manager.check()
    return results


def present(manager: CacheManager, refs: list[BlockRef]) -> list[int]:
    return [i for i, ref in enumerate(refs) if manager.get(ref.chain) is not None]


def test_memory_guard_halves_the_pool_when_it_passes_80_percent():
    manager, refs = manager_of(), refs_of(9)

    results = insert_all(manager, refs)

    assert [len(result.evicted) for result in results] == [0] * 8 + [4]
    assert present(manager, refs) == [4, 5, 6, 7, 8]


def test_request_never_fails_when_everything_is_held():
    manager, refs = manager_of(), refs_of(11)
    insert_all(manager, refs[:8])
    manager.hold("a.py", [ref.chain for ref in refs[:8]], 0.0)
    ninth = manager.insert(new(refs[8]), 9.0)
    tenth = manager.insert(new(refs[9], num_bytes=30), 9.0)

    assert ninth.block is not None
    assert tenth.block is None
    assert present(manager, refs) == list(range(9))
    manager.check()


def test_block_larger_than_the_budget_does_not_fit():
    manager = manager_of()

    result = manager.insert(new(refs_of(1)[0], num_bytes=101), 0.0)

    assert result.block is None
    assert not result.evicted


def test_storing_again_is_idempotent_and_counts_as_use():
    manager, refs = manager_of(), refs_of(2)
    insert_all(manager, refs)

    again = manager.insert(new(refs[0]), 5.0)

    assert not again.is_new
    assert again.block is not None
    assert again.block.used_at == 5.0
    assert manager.num_bytes == 20


def test_another_text_under_a_taken_key_is_refused():
    manager, refs = manager_of(), refs_of(2)
    insert_all(manager, refs[:1])
    liar = NewBlock(refs[0].chain, refs[1].content, None, refs[1].tokens, 1, 10, 1.0)

    assert manager.insert(liar, 1.0).block is None
    manager.check()


def test_older_variants_of_a_content_leave_first():
    manager = manager_of(guard=MemoryGuard(threshold=1.0))
    old = chain_of("f", [[1], [5]])
    other = refs_of(10)[9]
    newer = chain_of("f", [[2], [5]])
    manager.insert(new(other), 0.0)
    manager.insert(new(old[1]), 1.0)
    manager.insert(new(newer[1]), 2.0)

    gone = manager.shrink(20, 3.0)

    assert [block.chain for block in gone] == [old[1].chain]


def test_held_blocks_stay_and_released_ones_leave():
    manager, refs = manager_of(), refs_of(4)
    insert_all(manager, refs)
    manager.hold("a.py", [refs[0].chain], 0.0)

    manager.shrink(0, 5.0)
    assert present(manager, refs) == [0]
    manager.release("a.py")
    manager.shrink(0, 5.0)

    assert present(manager, refs) == []
    manager.check()


def test_holding_tells_how_many_are_here():
    manager, refs = manager_of(), refs_of(3)
    insert_all(manager, refs[:2])

    assert manager.hold("a.py", [ref.chain for ref in refs], 0.0) == 2


def test_fork_is_copy_on_write():
    manager, refs = manager_of(), refs_of(3)
    insert_all(manager, refs)
    manager.hold("document", [refs[0].chain, refs[1].chain], 0.0)
    manager.fork("document", "request")

    manager.hold("document", [refs[2].chain], 1.0)
    manager.check()
    manager.shrink(0, 2.0)

    assert present(manager, refs) == [0, 1, 2]
    manager.release("request")
    manager.shrink(0, 2.0)
    assert present(manager, refs) == [2]


def test_fork_of_an_unknown_owner_holds_nothing():
    manager, refs = manager_of(), refs_of(1)
    insert_all(manager, refs)
    manager.hold("b", [refs[0].chain], 0.0)

    manager.fork("a", "b")

    assert manager.num_held_bytes == 0


def test_broken_block_is_discarded_even_while_held():
    manager, refs = manager_of(), refs_of(2)
    insert_all(manager, refs)
    manager.hold("a.py", [ref.chain for ref in refs], 0.0)

    assert manager.discard(refs[0].chain) is not None
    assert manager.discard(refs[0].chain) is None

    assert present(manager, refs) == [1]
    manager.check()


def test_only_volatile_blocks_that_nobody_holds_are_reset():
    manager, refs = manager_of(), refs_of(3)
    manager.insert(new(refs[0]), 0.0)
    manager.insert(new(refs[1], volatile=True), 0.0)
    manager.insert(new(refs[2], volatile=True), 0.0)
    manager.hold("a.py", [refs[2].chain], 0.0)

    manager.drop_volatile()

    assert present(manager, refs) == [0, 2]


def test_purge_order_may_differ_from_eviction_order():
    manager, refs = manager_of(), refs_of(2)
    insert_all(manager, refs)
    manager.note_attention(refs[0].chain, 0.5)

    manager.shrink(10, 9.0, policy("attention"))

    assert present(manager, refs) == [0]


def test_unknown_keys_are_ignored():
    manager, ref = manager_of(), refs_of(1)[0]

    manager.touch(ref.chain, 1.0)
    manager.note_attention(ref.chain, 1.0)
    manager.release("nobody")

    manager.check()


def test_clear_forgets_owners_too():
    manager, refs = manager_of(), refs_of(2)
    insert_all(manager, refs)
    manager.hold("a.py", [refs[0].chain], 0.0)

    manager.clear()

    assert (len(manager), manager.num_bytes, manager.num_held_bytes) == (0, 0, 0)
    manager.check()


@pytest.mark.parametrize("threshold", [0.5, 0.8, 1.0])
def test_budget_is_never_exceeded(threshold):
    manager = manager_of(guard=MemoryGuard(threshold=threshold, keep=0.9))

    insert_all(manager, refs_of(50))

    assert manager.num_bytes <= 100


def test_owners_give_way_the_least_recently_used_first():
    manager, refs = manager_of(), refs_of(12)
    insert_all(manager, refs[:8])
    for number in range(4):
        pair = refs[2 * number : 2 * number + 2]
        manager.hold(f"{number}.py", [ref.chain for ref in pair], 0.0)
    manager.hold("0.py", [ref.chain for ref in refs[:2]], 1.0)

    result = manager.insert(new(refs[8]), 9.0)

    assert result.block is not None
    assert manager.owners == ["2.py", "3.py", "0.py"]
    assert present(manager, refs) == [0, 1, 4, 5, 6, 7, 8]
    assert (manager.num_guarded, manager.num_gave_way) == (1, 1)
    manager.check()


def test_what_is_reserved_counts_against_the_budget():
    manager, refs = manager_of(), refs_of(9)
    insert_all(manager, refs[:4])
    manager.reserved_bytes = 50

    gone = manager.relieve(5.0)

    assert len(gone) == 2
    assert manager.insert(new(refs[5]), 6.0).block is not None
    assert manager.num_bytes + manager.reserved_bytes <= 80
    manager.reserved_bytes = 100
    assert manager.insert(new(refs[6]), 7.0).block is None
