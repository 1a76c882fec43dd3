from dataclasses import replace

import pytest
import torch

from codekv.cache.events import Event
from codekv.cache.key import chain_of
from codekv.config import Config, apply
from codekv.errors import UsageError
from codekv.storage.blockstore import BlockMetadata, BlockStore, StoreBudget, Upkeep
from codekv.storage.plain import PlainCodec
from codekv.testing.blocks import (
    FakeClock,
    is_same,
    make_planes,
    make_store,
    planes_for,
    put_all,
)


def refs_of(store: BlockStore, *blocks: list[int]):
    return chain_of(store.fingerprint, blocks)


def kinds(store: BlockStore, refs) -> list[str | None]:
    return [hit.kind if hit else None for hit in store.match(refs)]


def load(store: BlockStore, ref):
    hit = store.match([ref])[0]
    return store.load(hit) if hit else None


def test_what_was_put_comes_back():
    store = make_store()
    refs = refs_of(store, [1, 2], [3])
    put_all(store, refs)

    assert kinds(store, refs) == ["chain", "chain"]
    assert all(is_same(load(store, ref), planes_for(ref)) for ref in refs)
    store.check()


def test_block_after_another_text_gives_the_values_of_its_source():
    store = make_store()
    old = refs_of(store, [1], [5, 6])
    put_all(store, old)
    new = refs_of(store, [2], [5, 6])

    hit = store.match(new)[1]

    assert hit is not None
    assert hit.kind == "content"
    assert is_same(store.load(hit), planes_for(old[1]))


def test_block_is_encoded_once():
    store = make_store()
    ref = refs_of(store, [1, 2])[0]
    put_all(store, [ref])

    assert store.put(ref, make_planes(2, 99), BlockMetadata(bytes(2), 1.0))

    assert is_same(load(store, ref), planes_for(ref))
    assert store.counters[Event.STORED] == 1


def test_codec_is_part_of_the_key():
    def ref(name: str):
        store = BlockStore(
            fingerprint="m", budget=StoreBudget(1 << 20), codec=PlainCodec(name)
        )
        return store.ref(None, [1])

    assert ref("int8").chain != ref("fp16").chain


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_values_that_are_not_finite_are_refused(bad):
    store = make_store()
    ref = refs_of(store, [1, 2])[0]
    planes = make_planes(2, 1)
    planes[1][1][0, 1, 3] = bad

    assert not store.put(ref, planes, BlockMetadata(bytes(2), 1.0))
    assert store.counters[Event.REFUSED] == 1
    assert kinds(store, [ref]) == [None]


def test_planes_of_another_length_are_the_callers_mistake():
    store = make_store()
    ref = refs_of(store, [1, 2])[0]

    with pytest.raises(UsageError, match="another shape"):
        store.put(ref, make_planes(3, 1), BlockMetadata(bytes(2), 1.0))


def test_planes_of_another_model_are_the_callers_mistake():
    store = make_store()
    ref = refs_of(store, [1, 2])[0]

    with pytest.raises(UsageError, match="another shape"):
        store.put(ref, make_planes(2, 1)[:1], BlockMetadata(bytes(2), 1.0))


def test_hit_on_a_block_that_is_gone_loads_as_none():
    store = make_store()
    ref = refs_of(store, [1])[0]
    put_all(store, [ref])
    hit = store.match([ref])[0]
    store.clear()

    assert hit is not None
    assert store.load(hit) is None


def test_block_loaded_before_its_eviction_stays_valid():
    store = make_store()
    ref = refs_of(store, [1])[0]
    put_all(store, [ref])
    planes = load(store, ref)
    store.clear()

    assert is_same(planes, planes_for(ref))


def test_colliding_key_never_serves_another_text():
    store = make_store()
    ref = refs_of(store, [1])[0]
    put_all(store, [ref])
    liar = replace(ref, tokens=b"\x02\0\0\0")

    assert kinds(store, [liar]) == [None]
    assert not store.put(liar, make_planes(1, 5), BlockMetadata(b"\0", 1.0))
    assert is_same(load(store, ref), planes_for(ref))


def test_memory_that_does_not_decode_is_dropped_and_counted():
    store = make_store()
    ref = refs_of(store, [1, 2])[0]
    put_all(store, [ref])
    hit = store.match([ref])[0]
    encoded = store._ram.get(ref.chain)
    assert encoded is not None
    encoded.header["tokens"] = 7

    assert hit is not None
    assert store.load(hit) is None
    assert store.counters[Event.CORRUPT] == 1
    assert kinds(store, [ref]) == [None]
    store.check()


def test_memory_guard_keeps_the_pool_below_its_budget():
    store = make_store(ram_tokens=100)
    refs = refs_of(store, *[[i] * 10 for i in range(30)])

    for ref in refs:
        put_all(store, [ref])
        stats = store.stats()
        assert stats.ram_bytes <= 0.8 * stats.ram_budget_bytes
    assert store.counters[Event.STORED] == 30
    assert store.counters[Event.EVICTED_RAM] == 30 - store.stats().ram_blocks
    store.check()


def test_held_blocks_survive_whatever_else_is_stored():
    store = make_store(ram_tokens=100)
    mine = refs_of(store, [1] * 10, [2] * 10)
    put_all(store, mine)
    assert store.hold("a.py", mine) == 2

    put_all(store, refs_of(store, *[[i] * 10 for i in range(3, 40)]))

    assert kinds(store, mine) == ["chain", "chain"]
    store.release("a.py")
    store.shrink(keep=0.0)
    assert kinds(store, mine) == [None, None]
    store.check()


def test_two_documents_share_blocks_until_one_changes():
    store = make_store()
    refs = refs_of(store, [1], [2])
    put_all(store, refs)
    store.hold("a.py", refs)
    store.fork("a.py", "b.py")
    store.hold("a.py", refs[:1])

    store.shrink(keep=0.0)
    assert kinds(store, refs) == ["chain", "chain"]
    store.release("b.py")
    store.shrink(keep=0.0)

    assert kinds(store, refs) == ["chain", None]


def test_purge_every_interval_keeps_the_most_important():
    upkeep = Upkeep(purge_interval=3, purge_by="attention", keep_ratio=0.5)
    store = make_store(ram_tokens=100, upkeep=upkeep)
    refs = refs_of(store, *[[i] * 10 for i in range(7)])
    put_all(store, refs)
    for ref in refs[:5]:
        store.note_attention(ref, 0.3)

    purged = [store.note_request() for _ in range(3)]

    assert purged == [0, 0, 2]
    assert kinds(store, refs) == ["chain"] * 5 + [None] * 2
    assert store.counters[Event.PURGED] == 2


def test_purging_again_does_not_empty_a_clean_pool():
    store = make_store(ram_tokens=100, upkeep=Upkeep(purge_interval=1))
    put_all(store, refs_of(store, *[[i] * 10 for i in range(7)]))

    assert [store.note_request() for _ in range(20)] == [0] * 20


def test_purge_by_hand():
    store = make_store(ram_tokens=100, upkeep=Upkeep(keep_ratio=0.1))
    put_all(store, refs_of(store, *[[i] * 10 for i in range(7)]))

    assert store.purge() == 6


def test_topic_switch_drops_volatile_blocks_if_asked_to():
    store = make_store(upkeep=Upkeep(reset_on_topic_switch=True))
    lasting, volatile = refs_of(store, [1], [2])
    put_all(store, [lasting])
    store.put(volatile, planes_for(volatile), BlockMetadata(b"\0", 1.0, volatile=True))

    dropped = [store.set_topic("a.py", name) for name in ("f", "f", "g")]

    assert dropped == [0, 0, 1]
    assert kinds(store, [lasting, volatile]) == ["chain", None]
    assert store.counters[Event.RESET] == 1


def test_topic_switch_drops_nothing_by_default():
    store = make_store()
    ref = refs_of(store, [1])[0]
    store.put(ref, planes_for(ref), BlockMetadata(b"\0", 1.0, volatile=True))
    store.set_topic("a.py", "f")

    assert store.set_topic("b.py", "g") == 0
    assert kinds(store, [ref]) == ["chain"]


def test_unknown_policy_is_refused_when_the_store_is_opened():
    with pytest.raises(UsageError, match="known"):
        make_store(upkeep=Upkeep(eviction="random"))


def test_upkeep_follows_the_configuration():
    values = {
        "kvcache": {
            "purge_strategy": {
                "interval": 4,
                "keep_ratio": 0.25,
                "importance": "attention",
            },
            "reset_on_topic_switch": True,
        }
    }
    config, problems = apply(Config(), values, "test")

    assert not problems
    assert Upkeep.from_config(config.kvcache) == Upkeep(
        "cost", 4, "attention", 0.25, True
    )
    assert Upkeep.from_config(Config().kvcache) == Upkeep()


def test_statistics_add_up():
    clock = FakeClock()
    store = make_store(clock=clock)
    refs = refs_of(store, [1, 2], [3])
    put_all(store, refs)
    store.hold("a.py", refs[:1])
    load(store, refs[0])
    stats = store.stats()

    assert (stats.ram_blocks, stats.ram_tokens) == (2, 3)
    assert stats.ram_bytes == 3 * stats.ram_held_bytes // 2
    assert (stats.disk_blocks, stats.disk_bytes, stats.waiting_blocks) == (0, 0, 0)
    assert 0 < stats.load_ms_mean <= stats.load_ms_max
    assert stats.counters["hit_chain"] == stats.counters["loaded_ram"] == 1


def test_statistics_of_an_unused_store():
    assert make_store().stats().load_ms_mean == 0.0


def test_without_disk_there_is_nothing_to_flush():
    store = make_store()
    put_all(store, refs_of(store, [1]))

    assert store.flush(1000) == 0


def test_planes_are_not_kept():
    store = make_store()
    ref = refs_of(store, [1, 2])[0]
    planes = planes_for(ref)
    store.put(ref, planes, BlockMetadata(bytes(2), 1.0))
    planes[0][0].zero_()

    loaded = load(store, ref)

    assert loaded is not None
    assert not torch.equal(loaded[0][0], planes[0][0])
