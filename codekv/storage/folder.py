"""Files of one folder of blocks: names, whole reads, atomic writes.

Knows the file system and docs/format.md, and neither budgets nor an index. Every
function may raise OSError; callers translate.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from codekv.cache.key import chain_key, content_key
from codekv.storage.blockfile import ALIGN, BrokenRuleError, Rule, file_size, parse
from codekv.units import ChainKey, ContentKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from io import FileIO

    from codekv.storage.blockfile import BlockFile

_NAME = re.compile(r"([0-9a-f]{32})-([0-9a-f]{32})-(\d{1,6})-(\d{1,9})\.kv", re.ASCII)
_TEMP_PREFIX = ".tmp-"
# Nine digits in a file's name: 11 days of computing.
_MAX_COST_MS = 10**9 - 1
# Neither follow links nor wait for pipes; not every system has every flag.
_SAFE = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


@dataclass(frozen=True, slots=True)
class BlockName:
    """What a file's name says; only a hint until the file has been read."""

    chain: ChainKey
    content: ContentKey
    num_tokens: int
    cost_s: float

    @property
    def filename(self) -> str:
        """The name in its folder."""
        cost_ms = min(max(round(self.cost_s * 1000), 0), _MAX_COST_MS)
        keys = f"{self.chain.hex()}-{self.content.hex()}"
        return f"{keys}-{self.num_tokens}-{cost_ms}.kv"

    @classmethod
    def parse(cls, filename: str) -> BlockName | None:
        """Read a name; None if it is not a block's."""
        match = _NAME.fullmatch(filename)
        if match is None:
            return None
        chain, content, num_tokens, cost_ms = match.groups()
        return cls(
            ChainKey(bytes.fromhex(chain)),
            ContentKey(bytes.fromhex(content)),
            int(num_tokens),
            int(cost_ms) / 1000,
        )


@dataclass(frozen=True, slots=True)
class Found:
    """A regular file under a block's name."""

    path: Path
    name: BlockName
    num_bytes: int
    modified_at: float


def folder_name(fingerprint: str) -> str:
    """Name of the folder that holds all blocks of a fingerprint."""
    return blake2b(fingerprint.encode(), digest_size=16).hexdigest()


def scan(folder: Path) -> list[Found]:
    """List a folder's blocks, the oldest first; a folder that is missing is empty."""
    found: list[Found] = []
    for entry, name in _entries(folder):
        # A file may vanish while it is listed.
        with contextlib.suppress(OSError):
            if entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                found.append(
                    Found(Path(entry.path), name, status.st_size, status.st_mtime)
                )
    return sorted(found, key=lambda file: (file.modified_at, file.path.name))


def names(folder: Path) -> set[str]:
    """Names of a folder's blocks, whatever stands under them."""
    return {entry.name for entry, _ in _entries(folder)}


def remove_stale_temps(folder: Path, before: float) -> int:
    """Remove temporary files last written before a time.

    Returns:
        How many were removed.
    """
    num_removed = 0
    for path in folder.glob(_TEMP_PREFIX + "*"):
        with contextlib.suppress(OSError):
            if path.lstat().st_mtime < before:
                path.unlink()
                num_removed += 1
    return num_removed


def read(path: Path) -> BlockFile:
    """Read and check a whole file.

    Raises:
        OSError: It cannot be read.
        BlockFormatError: It breaks a rule, or is not a regular file.
    """
    fd = os.open(path, os.O_RDONLY | _SAFE)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise BrokenRuleError(Rule.FILE_SIZE, "not a regular file")
        size = status.st_size
        with open(fd, "rb", buffering=0, closefd=False) as file:  # noqa: PTH123
            buffer = np.empty(min(size, ALIGN), np.uint8).data
            _fill(file, buffer)
            # Before there is room for the rest: does the file claim this size?
            if file_size(buffer) != size:
                raise BrokenRuleError(Rule.FILE_SIZE, size)
            file.seek(0)
            buffer = np.empty(size, np.uint8).data
            _fill(file, buffer)
    finally:
        os.close(fd)
    return parse(buffer)


def keys_of(block: BlockFile) -> tuple[ChainKey, ContentKey]:
    """The keys that a file's content deserves."""
    return (
        chain_key(block.fingerprint, block.parent, block.tokens),
        content_key(block.fingerprint, block.tokens),
    )


def write(path: Path, parts: Iterable[bytes | memoryview], now: float) -> int:
    """Write a file so that it appears whole or not at all; makes its folder.

    Its time of modification, by which worth is judged later, is `now`.

    Returns:
        Bytes written.
    """
    folder = path.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    temp = folder / f"{_TEMP_PREFIX}{os.getpid()}-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE
    fd = os.open(temp, flags, 0o600)
    try:
        with open(fd, "wb") as file:  # noqa: PTH123 (a descriptor)
            num_bytes = sum(file.write(part) for part in parts)
        os.utime(temp, (now, now))
        temp.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temp.unlink()
        raise
    return num_bytes


def _entries(folder: Path) -> Iterator[tuple[os.DirEntry[str], BlockName]]:
    try:
        listing = os.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    with listing:
        for entry in listing:
            name = BlockName.parse(entry.name)
            if name is not None:
                yield entry, name


def _fill(file: FileIO, buffer: memoryview) -> None:
    num_read = 0
    while num_read < len(buffer):
        step = file.readinto(buffer[num_read:])
        if not step:
            raise BrokenRuleError(Rule.FILE_SIZE, num_read)
        num_read += step
