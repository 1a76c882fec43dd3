"""Random use of a store beside a plain dictionary, with every check after every step.

Sequences of operations are drawn as a list of at least 30, not by a rule-based state
machine: that one stopped after six steps on average and let every planted fault pass.
"""

import random
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.cache.events import Event
from codekv.cache.key import BlockRef, chain_of
from codekv.storage.blockstore import BlockMetadata, Upkeep
from codekv.testing.blocks import FakeClock, is_same, make_store, planes_for

# Few texts that share beginnings and contents, so that keys meet again and again.
TEXTS = [
    [[1, 2, 3]],
    [[1, 2, 3], [4, 5]],
    [[1, 2, 3], [4, 5], [6] * 9],
    [[9], [4, 5], [6] * 9],
    [[9], [6] * 9, [4, 5]],
    [[7] * 12, [8] * 12],
    [[8] * 12, [7] * 12],
    [[4, 5], [4, 5], [4, 5]],
]
OWNERS = ["a.py", "b.py", "request"]
RAM_TOKENS = 60
DISK_BYTES = 8_000


class Twin:
    """A store, and what is known of it: what was stored, and where it must be."""

    def __init__(self, root: Path, on_disk: bool) -> None:
        self.folder = root / "blocks" if on_disk else None
        self.clock = FakeClock()
        self.known: dict[bytes, BlockRef] = {}  # may be found
        self.barred: set[bytes] = set()  # must not be on disk
        self.held: dict[str, set[bytes]] = {}  # must be in memory
        self.order: list[str] = []  # owners, the least recently used first
        self.seen: Counter[str] = Counter()
        self.open()

    def open(self) -> None:
        self.store = make_store(
            self.folder,
            ram_tokens=RAM_TOKENS,
            disk_bytes=DISK_BYTES,
            upkeep=Upkeep(purge_interval=2, keep_ratio=0.2, reset_on_topic_switch=True),
            clock=self.clock,
        )

    def refs(self, rng: random.Random) -> list[BlockRef]:
        return chain_of(self.store.fingerprint, rng.choice(TEXTS))

    def put(self, rng: random.Random) -> None:
        persist, volatile = rng.random() < 0.8, rng.random() < 0.2
        for ref in self.refs(rng):
            facts = BlockMetadata(
                bytes(ref.num_tokens), rng.random(), persist, volatile
            )
            if self.store.put(ref, planes_for(ref), facts):
                self.known[ref.chain] = ref
                (self.barred.discard if persist else self.barred.add)(ref.chain)

    def load(self, rng: random.Random) -> None:
        refs = self.refs(rng)
        for ref, hit in zip(refs, self.store.match(refs), strict=True):
            if hit is None:
                continue
            source = self.known[hit.source]
            assert source.tokens == ref.tokens
            assert (hit.kind == "chain") == (hit.source == ref.chain)
            planes = self.store.load(hit)
            # Loading an earlier block may have evicted this one.
            assert planes is None or is_same(planes, planes_for(source))

    def hold(self, rng: random.Random) -> None:
        owner, refs = rng.choice(OWNERS), self.refs(rng)
        in_ram = {
            ref.chain
            for ref, hit in zip(refs, self.store.match(refs), strict=True)
            if hit and hit.kind == "chain" and hit.tier == "ram"
        }
        num_held = self.store.hold(owner, refs)
        assert num_held == sum(ref.chain in in_ram for ref in refs)
        self.held[owner] = in_ram
        self.used(owner)

    def fork(self, rng: random.Random) -> None:
        owner, other = rng.sample(OWNERS, 2)
        self.store.fork(owner, other)
        self.held[other] = set(self.held.get(owner, ()))
        self.order = [name for name in self.order if name != other]
        if owner in self.order:
            self.used(other)

    def used(self, owner: str) -> None:
        self.order = [*(name for name in self.order if name != owner), owner]

    def release(self, rng: random.Random) -> None:
        owner = rng.choice(OWNERS)
        self.store.release(owner)
        self.held.pop(owner, None)
        self.order = [name for name in self.order if name != owner]

    def wait(self, rng: random.Random) -> None:
        self.clock.tick(rng.choice([1, 10, 100, 10_000]))

    def flush(self, rng: random.Random) -> None:
        max_ms = rng.choice([0, 10_000])
        assert self.store.flush(max_ms) == 0 or max_ms == 0

    def request(self, rng: random.Random) -> None:
        self.store.note_attention(rng.choice(self.refs(rng)), rng.random())
        self.store.note_request()

    def switch_topic(self, rng: random.Random) -> None:
        self.store.set_topic("a.py", rng.choice("fg"))

    def reserve(self, rng: random.Random) -> None:
        budget = self.store.budget_bytes
        self.store.reserve(rng.choice([0, budget // 2, 3 * budget // 4]))

    def shrink(self, rng: random.Random) -> None:
        self.store.shrink(rng.random())

    def forget(self, rng: random.Random) -> None:
        refs = self.refs(rng)
        self.store.forget(refs)
        gone = {ref.chain for ref in refs}
        for chain in gone:
            self.known.pop(chain, None)
        self.barred |= gone
        self.held = {owner: chains - gone for owner, chains in self.held.items()}

    def clear(self, rng: random.Random) -> None:
        self.store.clear()
        self.known.clear()
        self.held.clear()
        self.order.clear()

    def restart(self, rng: random.Random) -> None:
        if self.folder is not None:
            self.seen.update(self.store.counters.as_dict())
            self.held.clear()
            self.order.clear()
            self.open()

    def break_a_file(self, rng: random.Random) -> None:
        paths = sorted(self.folder.rglob("*.kv")) if self.folder else []
        if not paths:
            return
        path = rng.choice(paths)
        raw = bytearray(path.read_bytes())
        how = rng.choice(["flip", "cut", "remove"])
        if how == "remove":
            path.unlink()
            return
        position = rng.randrange(len(raw))
        raw[position] ^= 255
        path.write_bytes(raw if how == "flip" else raw[:position])

    def check(self) -> None:
        self.store.check()
        stats = self.store.stats()
        assert stats.ram_bytes <= stats.ram_budget_bytes
        assert stats.disk_bytes <= stats.disk_budget_bytes
        # The memory guard may take owners' blocks, the least recently used first.
        owners = self.store.owners()
        assert owners == self.order[len(self.order) - len(owners) :]
        self.order = owners
        self.held = {owner: self.held[owner] for owner in owners if owner in self.held}
        held = [self.known[chain] for chains in self.held.values() for chain in chains]
        for hit in self.store.match(held):
            assert hit is not None, "a held block is gone"
            assert (hit.kind, hit.tier) == ("chain", "ram")
        if self.folder is not None and self.folder.exists():
            names = {path.name[:32] for path in self.folder.rglob("*.kv")}
            assert not names & {chain.hex() for chain in self.barred}


OPERATIONS = [
    *[Twin.put] * 5,
    *[Twin.load] * 4,
    *[Twin.hold, Twin.flush, Twin.restart] * 3,
    *[Twin.fork, Twin.release, Twin.wait, Twin.request, Twin.break_a_file] * 2,
    *[Twin.switch_topic, Twin.reserve] * 2,
    *[Twin.shrink, Twin.forget, Twin.clear],
]
steps = st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 2**16))


def run(on_disk: bool, sequence) -> Counter[str]:
    with tempfile.TemporaryDirectory() as root:
        twin = Twin(Path(root), on_disk)
        for operation, seed in sequence:
            operation(twin, random.Random(seed))
            twin.check()
        return twin.seen + Counter(twin.store.counters.as_dict())


@given(st.booleans(), st.lists(steps, min_size=30, max_size=60))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_store_agrees_with_a_dictionary(on_disk, sequence):
    run(on_disk, sequence)


def test_long_sessions_agree_and_meet_every_kind_of_event():
    seen: Counter[str] = Counter()
    for seed in range(8):
        rng = random.Random(seed)
        seen += run(True, [(rng.choice(OPERATIONS), rng.random()) for _ in range(300)])

    # What takes a full disk, a lie or a race has a test of its own.
    rare = {"refused", "mismatched", "vanished", "read_failed", "write_failed"}
    # Live sequences are the engine's.
    rare |= {"live_dropped", "out_of_memory"}
    assert seen.keys() | rare == {event.value for event in Event}
