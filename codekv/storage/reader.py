"""Reading back: a block's keys and values from memory or from disk.

Shares the store's lock, and holds it never while a file is read or a block decoded.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.cache.events import Event
from codekv.cache.key import BlockRef
from codekv.cache.manager import NewBlock
from codekv.errors import BlockFormatError
from codekv.storage.encoded import EncodedBlock, Shapes, shapes_of
from codekv.storage.stats import LoadTimes

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from codekv.storage.disk import DiskTier
    from codekv.storage.encoded import Codec, Planes
    from codekv.storage.entropy import DiskCoding
    from codekv.storage.ram import RamTier
    from codekv.storage.values import Hit
    from codekv.units import ChainKey


@dataclass(frozen=True, slots=True)
class BlockCoder:
    """How blocks of one store are coded, in memory and on disk."""

    codec: Codec
    disk: DiskCoding


class Reader:
    """Loads blocks of one store; what is broken is dropped and counted."""

    def __init__(
        self,
        ram: RamTier,
        disk: DiskTier | None,
        coder: BlockCoder,
        shapes: Shapes | None,
        lock: threading.RLock,
        clock: Callable[[], float],
    ) -> None:
        """Read from two tiers.

        Args:
            ram: Looked at first; a block from disk stays here afterwards.
            disk: None for none.
            coder: What encoded all blocks.
            shapes: Blocks of other shapes are broken; None takes any.
            lock: Held while records change.
            clock: Seconds since the epoch.
        """
        self.times = LoadTimes()
        self._ram = ram
        self._disk = disk
        self._coder = coder
        self._shapes = shapes
        self._lock = lock
        self._clock = clock

    def load(self, hit: Hit) -> Planes | None:
        """Decode a block; see `BlockStore.load`."""
        started = time.perf_counter()
        now = self._clock()
        with self._lock:
            encoded = self._ram.get(hit.source)
            self._ram.manager.touch(hit.source, now)
        event = Event.LOADED_RAM
        if encoded is None:
            encoded = self._fetch(hit, now)
            event = Event.LOADED_DISK
        if encoded is None:
            return None
        planes = self._decode(encoded, hit.ref.num_tokens)
        if planes is None:
            self._drop_broken(hit.source)
            return None
        self._ram.counters.note(event)
        with self._lock:
            self.times.note(time.perf_counter() - started)
        return planes

    def has_shape(self, planes: Planes, num_tokens: int) -> bool:
        """Whether planes have the model's shapes and so many tokens."""
        shapes, lengths = shapes_of(planes)
        return lengths == {num_tokens} and self._shapes in (None, shapes)

    def _fetch(self, hit: Hit, now: float) -> EncodedBlock | None:
        """Bring a block from disk to memory."""
        if self._disk is None:
            return None
        ref = hit.ref
        file = self._disk.read(hit.source, ref.tokens, now)
        if file is None:
            return None
        stored = EncodedBlock.from_views(file.body, file.planes)
        try:
            encoded = self._coder.disk.expand(stored)
        except BlockFormatError:
            self._drop_broken(hit.source)
            return None
        source = BlockRef(hit.source, ref.content, file.parent, ref.tokens)
        with self._lock:
            self._ram.keep(new_block(source, encoded, file.cost_s), encoded, now)
        return encoded

    def _decode(self, encoded: EncodedBlock, num_tokens: int) -> Planes | None:
        try:
            planes = self._coder.codec.decode(encoded)
        except BlockFormatError:
            return None
        return planes if self.has_shape(planes, num_tokens) else None

    def _drop_broken(self, chain: ChainKey) -> None:
        with self._lock:
            self._ram.discard(chain)
        if self._disk and self._disk.get(chain):
            self._disk.drop(chain, Event.CORRUPT)
        else:
            self._ram.counters.note(Event.CORRUPT)


def new_block(
    ref: BlockRef, encoded: EncodedBlock, cost_s: float, is_volatile: bool = False
) -> NewBlock:
    """Describe a block for the memory tier."""
    return NewBlock(
        chain=ref.chain,
        content=ref.content,
        parent=ref.parent,
        tokens=ref.tokens,
        num_tokens=ref.num_tokens,
        num_bytes=encoded.num_bytes,
        cost_s=cost_s,
        is_volatile=is_volatile,
    )
