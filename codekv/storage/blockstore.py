"""The store the engine talks to: blocks of keys and values, by what they hold.

Canonical float32 goes in and comes out; in between a block is encoded once. Safe to
call from several threads. Nothing here fails a request: what cannot be stored or
read back is counted and computed again. Reads of files happen in `load`, writes in
`flush` only.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from codekv.cache.events import Counters, Event
from codekv.cache.key import BlockRef, block_ref
from codekv.cache.policy import policy
from codekv.errors import UsageError
from codekv.storage.disk import DiskTier
from codekv.storage.encoded import Shapes, is_finite
from codekv.storage.entropy import disk_coding
from codekv.storage.eviction_settings import Housekeeper, Upkeep
from codekv.storage.ram import RamTier
from codekv.storage.reader import BlockCoder, Reader, new_block
from codekv.storage.stats import StoreStats
from codekv.storage.values import BlockMetadata, Hit, StoreBudget, best_hit
from codekv.storage.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from codekv.storage.encoded import Codec, Planes
    from codekv.units import ChainKey

__all__ = ["BlockStore", "BlockMetadata", "Hit", "Shapes", "StoreBudget", "Upkeep"]

ONE_DOCUMENT = 0.5
"""Share of the memory budget that work ahead may fill for one document."""

MAX_VARIANTS = 64
"""One text may be stored after so many others."""

_HIT_EVENTS = {"chain": Event.HIT_CHAIN, "content": Event.HIT_CONTENT}


class BlockStore:
    """Stored blocks of one model, one codec and one user.

    Attributes:
        fingerprint: Of model and codec together; part of every key.
        counters: What happened since the store was opened.
    """

    def __init__(
        self,
        *,
        fingerprint: str,
        budget: StoreBudget,
        codec: Codec,
        upkeep: Upkeep | None = None,
        kv_shapes: Shapes | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open a store.

        Args:
            fingerprint: The model's; the codec's is added to it.
            budget: Limits of both tiers.
            codec: Used for every block.
            upkeep: Policies; the defaults if None.
            kv_shapes: Per layer (num_kv_heads, key_dim, value_dim). Blocks of other
                shapes are refused, also those from disk.
            clock: Seconds since the epoch.

        Raises:
            UsageError: The name of a policy or of a disk coding is unknown.
        """
        self.fingerprint = f"{fingerprint}/{codec.fingerprint}"
        self.counters = Counters()
        self._codec = codec
        self._clock = clock
        self._lock = threading.RLock()
        self._num_shared_bytes = 0
        upkeep = upkeep or Upkeep()
        self._ram = RamTier(budget.ram_bytes, policy(upkeep.eviction), self.counters)
        self._keeper = Housekeeper(self._ram, upkeep)
        coder = BlockCoder(codec, disk_coding(budget.disk_coding, codec))
        self._disk: DiskTier | None = None
        self._writer: Writer | None = None
        if budget.disk_dir is not None and budget.disk_bytes > 0:
            self._disk = DiskTier(
                budget.disk_dir, self.fingerprint, budget.disk_bytes, self.counters
            )
            self._disk.refresh(clock())
            self._writer = Writer(self._ram, self._disk, coder, self._lock)
        self._reader = Reader(
            self._ram, self._disk, coder, kv_shapes, self._lock, clock
        )

    @property
    def budget_bytes(self) -> int:
        """Limit of blocks in memory and live sequences together."""
        return self._ram.manager.budget_bytes

    def ref(self, parent: ChainKey | None, tokens: Iterable[int]) -> BlockRef:
        """Name a block of this store."""
        return block_ref(self.fingerprint, parent, tokens)

    def match(self, refs: Sequence[BlockRef]) -> list[Hit | None]:
        """Find a stored block for each reference; reads no bytes, holds nothing.

        Exact before movable, memory before disk. A block may be evicted before it is
        loaded; `load` then looks on the other tier, and answers None at last.
        """
        with self._lock:
            in_ram = self._ram.manager.match(refs)
        on_disk = self._disk.match(refs) if self._disk else [None] * len(refs)
        hits = [
            best_hit(ref, near, far)
            for ref, near, far in zip(refs, in_ram, on_disk, strict=True)
        ]
        for hit in hits:
            self.counters.note(_HIT_EVENTS[hit.kind] if hit else Event.MISS)
        return hits

    def knows(self, blocks: Iterable[Sequence[int]]) -> list[bool]:
        """Tell for each run of tokens whether it is stored, after whatever text."""
        refs = [self.ref(None, tokens) for tokens in blocks]
        with self._lock:
            near = self._ram.manager.match(refs)
        far = self._disk.match(refs) if self._disk else [None] * len(refs)
        return [a is not None or b is not None for a, b in zip(near, far, strict=True)]

    def fits(self, num_tokens: int) -> bool:
        """Whether so many tokens together leave half of the memory to others.

        Older blocks may have to go for them: what is lost in memory is on disk.
        """
        with self._lock:
            ram = self._ram.manager
            per_token = ram.num_bytes / ram.num_tokens if len(ram) else 0.0
            room = ram.budget_bytes - ram.reserved_bytes
            return num_tokens * per_token < ONE_DOCUMENT * room

    def load(self, hit: Hit) -> Planes | None:
        """Decode a block: new canonical float32 tensors per layer.

        A block that comes from disk stays in memory afterwards.

        Returns:
            None if the block is gone or turned out to be broken; a broken one is
            dropped from both tiers and counted.
        """
        return self._reader.load(hit)

    def put(self, ref: BlockRef, planes: Planes, facts: BlockMetadata) -> bool:
        """Store a block; it is encoded here, once, and not at all if it is known.

        Args:
            ref: Its name; a chain key promises values computed after exactly that
                text, so moved blocks may be put only after their repair.
            planes: Canonical float32; neither kept nor mutated.
            facts: What else the store should know.

        Returns:
            Whether the block is in memory now.

        Raises:
            UsageError: The planes do not have the reference's number of tokens or
                the model's shapes.
        """
        if not self._reader.has_shape(planes, ref.num_tokens):
            raise UsageError(f"planes of another shape than block {ref.chain.hex()}")
        with self._lock:
            known = self._ram.manager.get(ref.chain)
            if known is not None and known.tokens == ref.tokens:
                self._ram.manager.touch(ref.chain, self._clock())
                self._note_persistence(ref, facts.persist)
                return True
        is_kept = False
        if is_finite(planes):
            encoded = self._codec.encode(planes, facts.classes)
            with self._lock:
                new = new_block(ref, encoded, facts.cost_s, facts.volatile)
                is_kept = self._ram.keep(new, encoded, self._clock())
                if is_kept:
                    self._note_persistence(ref, facts.persist)
        self.counters.note(Event.STORED if is_kept else Event.REFUSED)
        return is_kept

    def flush(self, max_ms: float) -> int:
        """Write waiting blocks to disk, for about `max_ms`; call when idle.

        Of equal contents only the newest variant is written: an edit at the top of a
        file makes new variants of everything below it, and they replace each other.

        Returns:
            How many blocks still wait. If that does not get smaller, they cannot be
            written just now.
        """
        if self._writer is None:
            return 0
        return self._writer.flush(max_ms, self._clock)

    def hold(self, owner: str, refs: Iterable[BlockRef]) -> int:
        """Keep these blocks in memory for `owner`, instead of what it held before.

        An owner is a document or a request. Blocks may have several owners; nothing
        evicts or purges a block that has one, except that the memory guard takes the
        blocks of the least recently used owners if nothing else is left.

        Returns:
            How many of the blocks are in memory.
        """
        with self._lock:
            chains = [ref.chain for ref in refs]
            return self._ram.manager.hold(owner, chains, self._clock())

    def reserve(self, num_bytes: int, num_shared: int = 0) -> int:
        """Say how much of the memory budget live sequences use.

        Args:
            num_bytes: Of their working tensors.
            num_shared: How much more it would be if they shared nothing.

        Returns:
            How many blocks the memory guard dropped because of it.
        """
        with self._lock:
            self._ram.manager.reserved_bytes = num_bytes
            self._num_shared_bytes = num_shared
            return self._ram.relieve(self._clock())

    def fork(self, owner: str, new_owner: str) -> None:
        """Let `new_owner` hold what `owner` holds, until either changes."""
        with self._lock:
            self._ram.manager.fork(owner, new_owner)

    def owners(self) -> list[str]:
        """Who holds blocks, the least recently used first."""
        with self._lock:
            return self._ram.manager.owners

    def release(self, owner: str) -> None:
        """Let an owner hold nothing; unknown owners are ignored."""
        with self._lock:
            self._ram.manager.release(owner)

    def note_request(self) -> int:
        """Count a request; every few requests, purge.

        Returns:
            How many blocks were purged.
        """
        with self._lock:
            return self._keeper.note_request(self._clock())

    def set_topic(self, document: str, function: str) -> int:
        """Say what is being worked on; a new topic may drop the volatile blocks.

        Args:
            document: Its name.
            function: The function or class around the cursor, by name.

        Returns:
            How many blocks were dropped.
        """
        with self._lock:
            return self._keeper.set_topic(document, function)

    def note_attention(self, ref: BlockRef, share: float) -> None:
        """Tell which share of attention (0 to 1) a block got in an answer."""
        with self._lock:
            self._ram.manager.note_attention(ref.chain, share)

    def purge(self) -> int:
        """Purge now, by the rules of the upkeep; returns how many blocks went."""
        with self._lock:
            return self._keeper.purge(self._clock())

    def shrink(self, keep: float = 0.5) -> int:
        """Give memory back: keep this share of what nobody holds.

        Returns:
            How many blocks went.
        """
        with self._lock:
            return self._keeper.shrink(keep, self._clock())

    def forget(self, refs: Iterable[BlockRef]) -> None:
        """Drop blocks from memory and disk, because they must not be remembered."""
        for ref in refs:
            with self._lock:
                self._ram.discard(ref.chain)
            self._note_persistence(ref, persist=False)

    def forget_text(self, blocks: Iterable[Sequence[int]]) -> None:
        """Drop every block that holds one of these runs of tokens, after any text."""
        for tokens in blocks:
            ref = self.ref(None, tokens)
            for _ in range(MAX_VARIANTS):
                hit = self.match([ref])[0]
                if hit is None:
                    break
                self.forget([replace(ref, chain=hit.source)])

    def clear(self) -> None:
        """Drop every block of both tiers, and every owner."""
        with self._lock:
            self._ram.clear()
        if self._writer and self._disk:
            self._writer.clear()
            self._disk.clear()

    def stats(self) -> StoreStats:
        """Sizes and counters; cheap, and never waits for a file."""
        with self._lock:
            ram, disk = self._ram.manager, self._disk
            return StoreStats(
                ram_blocks=len(ram),
                ram_tokens=ram.num_tokens,
                ram_bytes=ram.num_bytes,
                ram_held_bytes=ram.num_held_bytes,
                live_bytes=ram.reserved_bytes,
                live_shared_bytes=self._num_shared_bytes,
                ram_budget_bytes=ram.budget_bytes,
                disk_blocks=disk.num_blocks if disk is not None else 0,
                disk_tokens=disk.num_tokens if disk is not None else 0,
                disk_bytes=disk.num_bytes if disk is not None else 0,
                disk_budget_bytes=disk.budget_bytes if disk is not None else 0,
                waiting_blocks=self._writer.num_waiting if self._writer else 0,
                load_ms_mean=self._reader.times.mean_ms,
                load_ms_max=self._reader.times.max_ms,
                counters=self.counters.as_dict(),
            )

    def check(self) -> None:
        """Verify every structure.

        Raises:
            AssertionError: One is broken.
        """
        with self._lock:
            self._ram.check()
        if self._disk:
            self._disk.check()

    def _note_persistence(self, ref: BlockRef, persist: bool) -> None:
        if self._writer is not None:
            self._writer.note(ref.chain, persist)
