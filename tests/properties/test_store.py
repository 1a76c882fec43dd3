"""Random use of a store beside a plain dictionary, with `check()` after every step."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from codekv.cache.key import BlockRef, chain_of
from codekv.storage.blockstore import Facts, Upkeep
from codekv.testing.blocks import FakeClock, is_same, make_store, planes_for

# Few tokens and short texts, so that contents and chains meet again and again.
texts = st.lists(
    st.lists(st.integers(1, 3), min_size=1, max_size=3), min_size=1, max_size=4
)
owners = st.sampled_from(["a.py", "b.py"])
RAM_TOKENS = 40


class Store(RuleBasedStateMachine):
    """The model: what was ever stored, and where it may or must be now."""

    @initialize(on_disk=st.booleans())
    def open(self, on_disk):
        self.root = Path(tempfile.mkdtemp())
        self.folder = self.root / "blocks" if on_disk else None
        self.clock = FakeClock()
        self.known: dict[bytes, BlockRef] = {}  # may be found
        self.barred: set[bytes] = set()  # must not be on disk
        self.held: dict[str, set[bytes]] = {}  # must be in memory
        self.reopen_store()

    def reopen_store(self):
        self.store = make_store(
            self.folder,
            ram_tokens=RAM_TOKENS,
            disk_bytes=12_000,
            upkeep=Upkeep(purge_interval=3, keep_ratio=0.6, reset_on_topic_switch=True),
            clock=self.clock,
        )

    def refs(self, text) -> list[BlockRef]:
        return chain_of(self.store.fingerprint, text)

    @rule(text=texts, persist=st.booleans(), volatile=st.booleans())
    def put(self, text, persist, volatile):
        for ref in self.refs(text):
            facts = Facts(bytes(ref.num_tokens), 0.1, persist, volatile)
            if self.store.put(ref, planes_for(ref), facts):
                self.known[ref.chain] = ref
                if persist:
                    self.barred.discard(ref.chain)
                else:
                    self.barred.add(ref.chain)

    @rule(text=texts)
    def match_and_load(self, text):
        refs = self.refs(text)
        for ref, hit in zip(refs, self.store.match(refs), strict=True):
            if hit is None:
                assert ref.chain not in set().union(*self.held.values())
                continue
            source = self.known[hit.source]
            assert source.tokens == ref.tokens
            assert (hit.kind == "chain") == (hit.source == ref.chain)
            planes = self.store.load(hit)
            # Loading an earlier block may have evicted this one.
            assert planes is None or is_same(planes, planes_for(source))
            self.forget_lost_holds()

    @rule(text=texts, owner=owners)
    def hold(self, text, owner):
        refs = self.refs(text)
        in_ram = {
            ref.chain
            for ref, hit in zip(refs, self.store.match(refs), strict=True)
            if hit and hit.kind == "chain" and hit.tier == "ram"
        }
        assert self.store.hold(owner, refs) == sum(ref.chain in in_ram for ref in refs)
        self.held[owner] = in_ram

    @rule(owner=owners, other=owners)
    def fork(self, owner, other):
        if owner != other:
            self.store.fork(owner, other)
            self.held[other] = set(self.held.get(owner, ()))

    @rule(owner=owners)
    def release(self, owner):
        self.store.release(owner)
        self.held.pop(owner, None)

    @rule(seconds=st.floats(0, 10_000))
    def wait(self, seconds):
        self.clock.tick(seconds)

    @rule(max_ms=st.sampled_from([0, 10_000]))
    def flush(self, max_ms):
        left = self.store.flush(max_ms)
        assert left == 0 or max_ms == 0

    @rule()
    def request(self):
        self.store.note_request()

    @rule(function=st.sampled_from(["f", "g"]))
    def work_on(self, function):
        self.store.set_topic("a.py", function)

    @rule(keep=st.floats(0, 1))
    def shrink(self, keep):
        self.store.shrink(keep)

    @rule(text=texts)
    def forget(self, text):
        refs = self.refs(text)
        self.store.forget(refs)
        for ref in refs:
            self.known.pop(ref.chain, None)
        self.forget_lost_holds()

    @rule()
    def clear(self):
        self.store.clear()
        self.known.clear()
        self.held.clear()

    @precondition(lambda self: self.folder)
    @rule()
    def restart(self):
        self.held.clear()
        self.reopen_store()

    @precondition(lambda self: self.folder and self.folder.exists())
    @rule(data=st.data())
    def break_a_file(self, data):
        paths = sorted(self.folder.rglob("*.kv"))
        if not paths:
            return
        path = data.draw(st.sampled_from(paths))
        raw = bytearray(path.read_bytes())
        how = data.draw(st.sampled_from(["flip", "cut", "remove"]))
        if how == "remove":
            path.unlink()
            return
        position = data.draw(st.integers(0, len(raw) - 1))
        raw[position] ^= 255
        path.write_bytes(raw if how == "flip" else raw[:position])

    def forget_lost_holds(self):
        """Blocks that were dropped although held: broken or to be forgotten."""
        for owner, chains in self.held.items():
            self.held[owner] = chains & self.known.keys()

    @invariant()
    def structures_are_sound(self):
        self.store.check()

    @invariant()
    def memory_is_within_its_budget(self):
        stats = self.store.stats()
        assert stats.ram_bytes <= stats.ram_budget_bytes
        assert stats.disk_bytes <= stats.disk_budget_bytes or not self.folder

    @invariant()
    def held_blocks_are_in_memory(self):
        for chains in self.held.values():
            refs = [self.known[chain] for chain in chains]
            for hit in self.store.match(refs):
                assert hit is not None
                assert (hit.kind, hit.tier) == ("chain", "ram")

    @invariant()
    def barred_blocks_are_not_on_disk(self):
        if self.folder is not None and self.folder.exists():
            names = {path.name[:32] for path in self.folder.rglob("*.kv")}
            assert not names & {chain.hex() for chain in self.barred}

    def teardown(self):
        if hasattr(self, "root"):
            shutil.rmtree(self.root)


Store.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
test_store_agrees_with_a_dictionary = Store.TestCase
