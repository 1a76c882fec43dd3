"""Writing behind: which blocks of memory go to disk, later.

Shares the store's lock, and holds it never while a file is written.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from codekv.storage.blockfile import BlockFile
from codekv.storage.folder import keys_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from codekv.cache.block import Block
    from codekv.storage.disk import DiskTier
    from codekv.storage.encoded import EncodedBlock
    from codekv.storage.ram import RamTier
    from codekv.storage.reader import BlockCoder
    from codekv.units import ChainKey


class Writer:
    """Blocks that wait, in the order in which they came."""

    def __init__(
        self, ram: RamTier, disk: DiskTier, coder: BlockCoder, lock: threading.RLock
    ) -> None:
        self._ram = ram
        self._disk = disk
        self._fingerprint = disk.fingerprint
        self._coder = coder
        self._lock = lock
        self._waiting: dict[ChainKey, None] = {}
        self._flushing = threading.Lock()
        self._in_flight: ChainKey | None = None

    @property
    def num_waiting(self) -> int:
        """How many blocks wait."""
        return len(self._waiting)

    def note(self, chain: ChainKey, persist: bool) -> None:
        """Let a block wait for writing, or see that it is nowhere on disk."""
        with self._lock:
            if persist:
                self._waiting[chain] = None
                return
            self._waiting.pop(chain, None)
            if self._in_flight == chain:
                self._in_flight = None  # whoever writes it will see that
        self._disk.remove(chain)

    def clear(self) -> None:
        """Let nothing wait."""
        with self._lock:
            self._waiting.clear()
            self._in_flight = None

    def flush(self, max_ms: float, clock: Callable[[], float]) -> int:
        """Write for about `max_ms`; returns how many blocks still wait.

        While another thread does so, nothing is done.
        """
        if not self._flushing.acquire(blocking=False):
            return len(self._waiting)
        try:
            deadline = time.perf_counter() + max_ms / 1e3
            self._disk.refresh(clock())
            while self._write_next(clock()):
                if time.perf_counter() >= deadline:
                    break
            if not self._waiting:
                self._disk.tidy(clock())
            return len(self._waiting)
        finally:
            self._flushing.release()

    def _write_next(self, now: float) -> bool:
        """Write one block; False if there is none, or the disk takes none."""
        with self._lock:
            found = self._next()
        if found is None:
            return False
        block = self._file_of(*found)
        if not self._disk.write(block, now):
            return False
        with self._lock:
            chain, self._in_flight = self._in_flight, None
            if chain is not None:
                self._waiting.pop(chain, None)
        if chain is None:
            # Forgotten while it was being written.
            self._disk.remove(keys_of(block)[0])
        return True

    def _file_of(self, record: Block, encoded: EncodedBlock) -> BlockFile:
        """Code a block for the disk; takes a few milliseconds."""
        assert record.tokens is not None
        stored = self._coder.disk.squeeze(encoded)
        return BlockFile(
            fingerprint=self._fingerprint,
            codec=self._coder.codec.name,
            parent=record.parent,
            tokens=record.tokens,
            cost_s=record.cost_s,
            body=stored.header,
            planes=stored.views(),
        )

    def _next(self) -> tuple[Block, EncodedBlock] | None:
        """Take the first waiting block that is still worth writing."""
        manager = self._ram.manager
        for chain in list(self._waiting):
            record, encoded = manager.get(chain), self._ram.get(chain)
            if (
                record is None
                or encoded is None
                or record.tokens is None
                or manager.is_superseded(record)
                or self._disk.get(chain) is not None
            ):
                del self._waiting[chain]
                continue
            self._in_flight = chain
            return record, encoded
        return None
