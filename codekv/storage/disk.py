"""The disk tier: an index over one folder, a size limit, and no exceptions.

Several processes may use one folder: files appear whole, are never changed, and may
vanish at any time. Whatever goes wrong is counted. Thread-safe; no file is read or
written under the lock.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING

from codekv.cache.events import Counters, Event
from codekv.cache.manager import CacheManager, NewBlock
from codekv.cache.policy import Cost, MemoryGuard
from codekv.errors import BlockFormatError
from codekv.storage import folder as files
from codekv.storage.blockfile import BlockFile, serialize

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from codekv.cache.block import Block
    from codekv.cache.index import Match
    from codekv.cache.key import BlockRef
    from codekv.units import ChainKey

# Recency counts by the week on disk: people come back to a project on Mondays.
_WEEK_S = 7 * 86400.0
# Writing a block takes milliseconds; an older half file has lost its writer.
_TEMP_LIFE_S = 3600.0
_PAUSE_S = 60.0  # after a failed write
_RESCAN_S = 5.0  # between looks at what other processes did
_TRIM_S = 60.0  # between looks at the files of other models


class DiskTier:
    """Blocks of one fingerprint in one folder under `root`."""

    def __init__(
        self, root: Path, fingerprint: str, budget_bytes: int, counters: Counters
    ) -> None:
        self.folder = root / files.folder_name(fingerprint)
        # Full is normal on a disk: go a little below the limit, not to half.
        guard = MemoryGuard(threshold=1.0, keep=0.9)
        self._manager = CacheManager(budget_bytes, Cost(_WEEK_S), guard)
        self._root = root
        self.fingerprint = fingerprint
        self._counters = counters
        self._lock = threading.RLock()
        self._paths: dict[ChainKey, Path] = {}
        self._used: set[ChainKey] = set()
        self._paused_until = float("-inf")
        self._scanned_at = float("-inf")
        self._trimmed_at = float("-inf")

    @property
    def budget_bytes(self) -> int:
        """The limit."""
        return self._manager.budget_bytes

    @property
    def num_bytes(self) -> int:
        """Bytes of all indexed files."""
        return self._manager.num_bytes

    @property
    def num_tokens(self) -> int:
        """Tokens of all indexed files."""
        with self._lock:
            return self._manager.num_tokens

    @property
    def num_blocks(self) -> int:
        """Number of indexed files."""
        return len(self._manager)

    def match(self, refs: Sequence[BlockRef]) -> list[Match | None]:
        """Find the best block for each reference, by names alone."""
        with self._lock:
            return self._manager.match(refs)

    def get(self, chain: ChainKey) -> Block | None:
        """Find a block by its chain key alone."""
        with self._lock:
            return self._manager.get(chain)

    def read(self, chain: ChainKey, tokens: bytes, now: float) -> BlockFile | None:
        """Read a block and compare it with the tokens it should hold.

        Returns:
            None if it is gone, broken or another text; it is dropped and counted.
        """
        block = self._read(chain)
        if block is None:
            return None
        if block.tokens != tokens:
            self.drop(chain, Event.MISMATCHED)
            return None
        with self._lock:
            self._manager.touch(chain, now)
            self._used.add(chain)
        return block

    def write(self, block: BlockFile, now: float) -> bool:
        """Write a block, then make room for it.

        Returns:
            False if it should be tried again later. A block that can never be
            written is counted and done with.
        """
        if now < self._paused_until:
            return False
        chain, content = files.keys_of(block)
        num_tokens = len(block.tokens) // 4
        name = files.BlockName(chain, content, num_tokens, block.cost_s)
        path = self.folder / name.filename
        try:
            num_bytes = files.write(path, serialize(block), now)
        except BlockFormatError:
            self._counters.note(Event.REFUSED)
            return True
        except OSError:
            self._counters.note(Event.WRITE_FAILED)
            self._paused_until = now + _PAUSE_S
            return False
        self._counters.note(Event.WRITTEN)
        self._add(path, name, num_bytes, now)
        return True

    def remove(self, chain: ChainKey) -> None:
        """Remove a block and its file; unknown keys are ignored."""
        self._unlink(self._forget(chain))

    def drop(self, chain: ChainKey, event: Event) -> None:
        """Remove a block and its file because of `event`."""
        self._counters.note(event)
        self.remove(chain)

    def refresh(self, now: float) -> None:
        """Take note of what other processes wrote and removed; not too often."""
        if now - self._scanned_at < _RESCAN_S:
            return
        is_first = self._scanned_at == float("-inf")
        self._scanned_at = now
        with contextlib.suppress(OSError):
            if is_first:
                files.remove_stale_temps(self.folder, now - _TEMP_LIFE_S)
            present = files.names(self.folder)
            with self._lock:
                known = {path.name: chain for chain, path in self._paths.items()}
            for filename in known.keys() - present:
                self._forget(known[filename])
            if present - known.keys():
                for found in files.scan(self.folder):
                    self._add(
                        found.path, found.name, found.num_bytes, found.modified_at
                    )

    def tidy(self, now: float) -> None:
        """Bring times of use to disk, and make other models' files fit the limit."""
        with self._lock:
            used = [self._paths[chain] for chain in self._used & self._paths.keys()]
            self._used.clear()
        for path in used:
            with contextlib.suppress(OSError):
                os.utime(path, (now, now))
        if now - self._trimmed_at < _TRIM_S:
            return
        self._trimmed_at = now
        with contextlib.suppress(OSError):
            self._trim_others()

    def clear(self) -> None:
        """Remove every file that is indexed."""
        with self._lock:
            paths = list(self._paths.values())
            self._paths.clear()
            self._manager.clear()
        for path in paths:
            self._unlink(path)

    def check(self) -> None:
        """Verify that index and paths agree.

        Raises:
            AssertionError: The structure is broken.
        """
        with self._lock:
            self._manager.check()
            chains = {block.chain for block in self._manager.blocks()}
            assert chains == self._paths.keys(), "records and paths differ"

    def _read(self, chain: ChainKey) -> BlockFile | None:
        with self._lock:
            path = self._paths.get(chain)
            record = self._manager.get(chain)
        if path is None or record is None:
            return None
        try:
            block = files.read(path)
        except FileNotFoundError:
            self._counters.note(Event.VANISHED)
            self._forget(chain)
            return None
        except BlockFormatError:
            self.drop(chain, Event.CORRUPT)
            return None
        except OSError:
            self._counters.note(Event.READ_FAILED)
            self._forget(chain)
            return None
        deserved = (self.fingerprint, *files.keys_of(block))
        if deserved != (block.fingerprint, record.chain, record.content):
            self.drop(chain, Event.MISMATCHED)
            return None
        return block

    def _add(
        self, path: Path, name: files.BlockName, num_bytes: int, now: float
    ) -> None:
        new = NewBlock(
            chain=name.chain,
            content=name.content,
            parent=None,
            tokens=None,
            num_tokens=name.num_tokens,
            num_bytes=num_bytes,
            cost_s=name.cost_s,
        )
        with self._lock:
            known = self._paths.get(name.chain)
            if known is not None:
                # Two processes timed the same block differently. Both must keep the
                # same file, or each would remove the other's.
                self._paths[name.chain] = min(known, path)
                if known != path:
                    self._unlink(max(known, path))
                return
            result = self._manager.insert(new, now)
            gone = [self._paths.pop(block.chain) for block in result.evicted]
            if result.is_new:
                self._paths[name.chain] = path
            else:
                gone.append(path)  # larger than the whole limit
        self._counters.note(Event.EVICTED_DISK, len(gone))
        for old in gone:
            self._unlink(old)

    def _forget(self, chain: ChainKey) -> Path | None:
        with self._lock:
            self._manager.discard(chain)
            return self._paths.pop(chain, None)

    def _trim_others(self) -> None:
        others = [
            found
            for folder in self._root.iterdir()
            if folder != self.folder
            for found in files.scan(folder)
        ]
        excess = sum(found.num_bytes for found in others) + self.num_bytes
        excess -= self._manager.budget_bytes
        for found in sorted(others, key=lambda found: found.modified_at):
            if excess <= 0:
                break
            self._unlink(found.path)
            self._counters.note(Event.EVICTED_DISK)
            excess -= found.num_bytes

    def _unlink(self, path: Path | None) -> None:
        if path is not None:
            with contextlib.suppress(OSError):
                path.unlink()
