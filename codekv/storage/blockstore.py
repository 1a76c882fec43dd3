"""The store the engine talks to: blocks of keys and values, by what they hold.

Canonical float32 goes in and comes out; in between a block is encoded once. Safe to
call from several threads. Nothing here fails a request: what cannot be stored or
read back is counted and computed again.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch

from codekv.cache.events import Counters, Event
from codekv.cache.key import BlockRef, block_ref
from codekv.cache.manager import CacheManager, NewBlock
from codekv.cache.policy import Policy, policy
from codekv.errors import BlockFormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from codekv.cache.index import MatchKind
    from codekv.storage.encoded import Codec, EncodedBlock, Planes
    from codekv.units import ChainKey

Tier = Literal["ram", "disk"]


@dataclass(frozen=True, slots=True)
class StoreBudget:
    """How much room the store may take; a `disk_dir` of None means no disk."""

    ram_bytes: int
    disk_bytes: int = 0
    disk_dir: Path | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What the store should know of a block beside its bytes.

    Attributes:
        classes: One syntax class per token, for the codec.
        cost_s: Seconds it takes to compute the block.
        persist: False for blocks that must never reach the disk.
        volatile: Belongs to the present topic only.
    """

    classes: bytes
    cost_s: float
    persist: bool = True
    volatile: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A stored block that can stand for `ref`.

    Attributes:
        kind: `chain` is exact; `content` is the same tokens after something else.
        source: Chain key of the stored block.
    """

    ref: BlockRef
    kind: MatchKind
    tier: Tier
    source: ChainKey
    num_bytes: int
    cost_s: float


class BlockStore:
    """Stored blocks of one model, one codec and one user."""

    def __init__(
        self,
        *,
        fingerprint: str,
        budget: StoreBudget,
        codec: Codec,
        eviction: str = "cost",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open a store.

        Args:
            fingerprint: The model's; the codec's is added to it.
            budget: Limits of both tiers.
            codec: Used for every block.
            eviction: Name of the policy that orders evictions.
            clock: Seconds since the epoch.
        """
        self.fingerprint = f"{fingerprint}/{codec.fingerprint}"
        self.counters = Counters()
        self._codec = codec
        self._clock = clock
        self._policy: Policy = policy(eviction)
        self._lock = threading.RLock()
        self._ram = CacheManager(budget.ram_bytes, self._policy)
        self._payloads: dict[ChainKey, EncodedBlock] = {}

    def ref(self, parent: ChainKey | None, tokens: Sequence[int]) -> BlockRef:
        """Name a block of this store."""
        return block_ref(self.fingerprint, parent, tokens)

    def match(self, refs: Sequence[BlockRef]) -> list[Hit | None]:
        """Find a stored block for each reference; reads no bytes, holds nothing.

        A block may be evicted before it is loaded; `load` then answers None.
        """
        with self._lock:
            return [self._match(ref) for ref in refs]

    def load(self, hit: Hit) -> Planes | None:
        """Decode a block: new canonical float32 tensors per layer.

        Returns:
            None if the block is gone or turned out to be broken (then it is dropped
            and counted).
        """
        with self._lock:
            encoded = self._payloads.get(hit.source)
            self._ram.touch(hit.source, self._clock())
        if encoded is None:
            return None
        try:
            planes = self._codec.decode(encoded)
        except BlockFormatError:
            self.counters.note(Event.CORRUPT)
            with self._lock:
                self._forget(hit.source)
            return None
        self.counters.note(Event.LOADED_RAM)
        return planes

    def put(self, ref: BlockRef, planes: Planes, facts: Facts) -> bool:
        """Store a block; it is encoded here, once, and not at all if it is known.

        Args:
            ref: Its name; a chain key promises values computed after exactly that
                text, so moved blocks may be put only after their repair.
            planes: Canonical float32; neither kept nor mutated.
            facts: What else the store should know.

        Returns:
            Whether the block is in the store now.
        """
        with self._lock:
            known = self._ram.get(ref.chain)
            if known is not None and known.tokens == ref.tokens:
                self._ram.touch(ref.chain, self._clock())
                return True
        if not _is_finite(planes):
            self.counters.note(Event.REFUSED)
            return False
        encoded = self._codec.encode(planes, facts.classes)
        with self._lock:
            return self._keep(ref, encoded, facts)

    def _match(self, ref: BlockRef) -> Hit | None:
        match = self._ram.match([ref])[0]
        if match is None:
            self.counters.note(Event.MISS)
            return None
        is_exact = match.kind == "chain"
        self.counters.note(Event.HIT_CHAIN if is_exact else Event.HIT_CONTENT)
        block = match.block
        return Hit(ref, match.kind, "ram", block.chain, block.num_bytes, block.cost_s)

    def _keep(self, ref: BlockRef, encoded: EncodedBlock, facts: Facts) -> bool:
        new = NewBlock(
            chain=ref.chain,
            content=ref.content,
            parent=ref.parent,
            tokens=ref.tokens,
            num_tokens=ref.num_tokens,
            num_bytes=encoded.num_bytes,
            cost_s=facts.cost_s,
            is_volatile=facts.volatile,
        )
        result = self._ram.insert(new, self._clock())
        for block in result.evicted:
            del self._payloads[block.chain]
        self.counters.note(Event.EVICTED_RAM, len(result.evicted))
        if result.block is None:
            self.counters.note(Event.REFUSED)
            return False
        if result.is_new:
            self._payloads[ref.chain] = encoded
            self.counters.note(Event.STORED)
        return True

    def _forget(self, chain: ChainKey) -> None:
        self._ram.discard(chain)
        self._payloads.pop(chain, None)


def _is_finite(planes: Planes) -> bool:
    """Tell whether no key or value is infinite or not a number.

    A sum is enough: neither can vanish in it.
    """
    sums = torch.stack([tensor.sum() for pair in planes for tensor in pair])
    return bool(torch.isfinite(sums).all())
