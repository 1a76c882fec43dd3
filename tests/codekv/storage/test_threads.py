import random
import threading
from concurrent.futures import ThreadPoolExecutor

from codekv.cache.events import Counters, Event
from codekv.testing.blocks import is_same, make_store, planes_for, put_all

NUM_THREADS = 4


def test_counters_lose_nothing():
    counters = Counters()
    start = threading.Barrier(NUM_THREADS)

    def count() -> None:
        start.wait()
        for _ in range(2000):
            counters.note(Event.MISS)

    with ThreadPoolExecutor(NUM_THREADS) as pool:
        for _ in range(NUM_THREADS):
            pool.submit(count)

    assert counters[Event.MISS] == NUM_THREADS * 2000


def test_one_store_serves_several_threads(tmp_path):
    store = make_store(tmp_path, ram_tokens=120, disk_bytes=30_000)
    start = threading.Barrier(NUM_THREADS)

    def work(seed: int) -> int:
        rng = random.Random(seed)
        start.wait()
        num_wrong = 0
        for step in range(150):
            ref = store.ref(None, [rng.randrange(20)] * 8)
            hit = store.match([ref])[0]
            planes = store.load(hit) if hit else None
            if planes is None:
                put_all(store, [ref], persist=rng.random() < 0.9)
            else:
                num_wrong += not is_same(planes, planes_for(ref))
            store.hold(str(seed), [ref])
            store.flush(2)
            store.stats()
            if step % 50 == 49:
                store.clear()
        store.release(str(seed))
        return num_wrong

    with ThreadPoolExecutor(NUM_THREADS) as pool:
        wrong = list(pool.map(work, range(NUM_THREADS)))

    assert wrong == [0] * NUM_THREADS
    assert store.counters[Event.CORRUPT] == store.counters[Event.MISMATCHED] == 0
    store.check()
    while store.flush(10_000):
        pass
    store.check()
    assert store.stats().disk_blocks == len(list(tmp_path.rglob("*.kv")))
