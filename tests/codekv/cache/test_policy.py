import pytest

from codekv.cache.block import Block
from codekv.cache.policy import (
    POLICIES,
    Cost,
    MemoryGuard,
    is_purge_due,
    is_topic_switch,
    policy,
    purge_target,
    smoothed_importance,
)
from codekv.errors import UsageError
from codekv.units import BlockId, ChainKey, ContentKey

NOW = 1000.0


def block(
    cost_s: float = 1.0,
    num_bytes: int = 100,
    used_at: float = NOW,
    importance: float = 0.0,
) -> Block:
    return Block(
        BlockId(1),
        ChainKey(b"c"),
        ContentKey(b"k"),
        None,
        b"",
        1,
        num_bytes,
        cost_s,
        used_at,
        importance,
    )


def leaves_first(name: str, *blocks: Block) -> int:
    return min(range(len(blocks)), key=lambda i: policy(name).priority(blocks[i], NOW))


def test_recency_drops_the_longest_unused():
    assert leaves_first("recency", block(used_at=5), block(used_at=3)) == 1


def test_cost_drops_what_is_cheap_to_compute():
    assert leaves_first("cost", block(cost_s=2), block(cost_s=1)) == 1


def test_cost_drops_what_is_large():
    assert leaves_first("cost", block(num_bytes=10), block(num_bytes=20)) == 1


def test_cost_drops_what_was_not_used_for_long():
    assert leaves_first("cost", block(used_at=NOW), block(used_at=NOW - 60)) == 1


def test_twice_the_cost_outweighs_less_than_one_half_life():
    order = Cost(half_life_s=100)
    costly_old, cheap_new = block(cost_s=2, used_at=NOW - 99), block(cost_s=1)

    assert order.priority(costly_old, NOW) > order.priority(cheap_new, NOW)


def test_cost_orders_blocks_unused_for_years_and_free_ones():
    ancient = [block(used_at=NOW - 1e9), block(used_at=NOW - 1e9 - 1), block(cost_s=0)]

    priorities = [Cost().priority(each, NOW) for each in ancient]

    assert len(set(priorities)) == 3
    assert leaves_first("cost", *ancient) == 1


def test_clock_that_went_back_is_no_gain():
    future, present = block(used_at=NOW + 50), block(used_at=NOW)

    assert Cost().priority(future, NOW)[0] == Cost().priority(present, NOW)[0]


def test_attention_drops_the_least_attended():
    assert leaves_first("attention", block(importance=0.2), block(importance=0.1)) == 1


def test_attention_breaks_ties_by_recency():
    assert leaves_first("attention", block(used_at=5), block(used_at=3)) == 1


def test_unknown_name_lists_the_known():
    with pytest.raises(UsageError, match="attention, cost, recency"):
        policy("lru")


def test_every_policy_has_its_own_order_type():
    assert len({type(each) for each in POLICIES.values()}) == len(POLICIES)


def test_memory_guard_acts_above_80_percent_and_halves():
    guard = MemoryGuard()

    assert not guard.is_over(80, 100)
    assert guard.is_over(81, 100)
    assert guard.target(81, 0) == 40


def test_memory_guard_leaves_held_bytes():
    assert MemoryGuard().target(80, 60) == 70


def test_purge_is_due_every_interval_and_never_for_zero():
    assert [n for n in range(1, 31) if is_purge_due(n, 10)] == [10, 20, 30]
    assert not any(is_purge_due(n, 0) for n in range(1, 31))


def test_purge_target_is_a_share_of_the_budget():
    assert purge_target(1000, 0.7) == 700


def test_importance_follows_attention_and_forgets():
    value = 0.0
    for _ in range(50):
        value = smoothed_importance(value, 1.0)
    assert value == pytest.approx(1.0, abs=0.01)

    for _ in range(50):
        value = smoothed_importance(value, 0.0)
    assert value == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, ("a.py", "f"), False),
        (("a.py", "f"), ("a.py", "f"), False),
        (("a.py", "f"), ("a.py", "g"), True),
        (("a.py", "f"), ("b.py", "f"), True),
    ],
)
def test_topic_is_document_and_function(old, new, expected):
    assert is_topic_switch(old, new) is expected
