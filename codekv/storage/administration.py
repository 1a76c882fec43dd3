"""All stored blocks of all models, for people: sizes, verification, removal.

Needs neither a model nor torch. Running servers may go on meanwhile: to them a
removed file is a miss.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.errors import BlockFormatError, StorageError
from codekv.storage import folder as files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class FolderReport:
    """Blocks of one model and codec.

    Attributes:
        fingerprint: As its newest sound file has it; empty if there is none.
        codec: Likewise.
        oldest_at: When the block unused for longest was used, in seconds.
    """

    folder: Path
    fingerprint: str
    codec: str
    num_blocks: int
    num_tokens: int
    num_bytes: int
    oldest_at: float
    newest_at: float


@dataclass(frozen=True, slots=True)
class Verification:
    """What reading every file has shown; broken files were removed."""

    num_good: int
    broken: tuple[tuple[Path, str], ...]


def survey(root: Path) -> list[FolderReport]:
    """Look at every folder of blocks; only one file of each is read.

    Raises:
        StorageError: The folder cannot be listed.
    """
    return [_report(folder) for folder in _folders(root)]


def verify(root: Path) -> Verification:
    """Read every block and remove those that break a rule of docs/format.md.

    Raises:
        StorageError: The folder cannot be listed.
    """
    num_good = 0
    broken: list[tuple[Path, str]] = []
    for folder in _folders(root):
        for found in files.scan(folder):
            try:
                _check(folder, found)
            except FileNotFoundError:
                continue  # somebody else removed it meanwhile
            except (BlockFormatError, OSError) as error:
                broken.append((found.path, str(error)))
                with contextlib.suppress(OSError):
                    found.path.unlink()
            else:
                num_good += 1
    return Verification(num_good, tuple(broken))


def clear(root: Path) -> tuple[int, int]:
    """Remove every block of every model, and nothing else.

    Returns:
        How many files, and how many bytes.

    Raises:
        StorageError: A file cannot be removed.
    """
    num_files = num_bytes = 0
    for folder in _folders(root):
        for found in files.scan(folder):
            try:
                found.path.unlink(missing_ok=True)
            except OSError as error:
                raise StorageError(
                    f"{found.path} cannot be removed ({error.strerror}); "
                    "remove it by hand or change its folder's rights"
                ) from error
            num_files += 1
            num_bytes += found.num_bytes
        files.remove_stale_temps(folder, before=float("inf"))
        with contextlib.suppress(OSError):
            folder.rmdir()  # unless there is something in it that is not ours
    return num_files, num_bytes


def _folders(root: Path) -> Iterator[Path]:
    try:
        yield from sorted(path for path in root.iterdir() if path.is_dir())
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(
            f"{root} cannot be listed ({error.strerror}); check its rights"
        ) from error


def _report(folder: Path) -> FolderReport:
    found = files.scan(folder)
    fingerprint = codec = ""
    for newest in reversed(found):
        with contextlib.suppress(BlockFormatError, OSError):
            block = files.read(newest.path)
            fingerprint, codec = block.fingerprint, block.codec
            break
    return FolderReport(
        folder=folder,
        fingerprint=fingerprint,
        codec=codec,
        num_blocks=len(found),
        num_tokens=sum(file.name.num_tokens for file in found),
        num_bytes=sum(file.num_bytes for file in found),
        oldest_at=found[0].modified_at if found else 0.0,
        newest_at=found[-1].modified_at if found else 0.0,
    )


def _check(folder: Path, found: files.Found) -> None:
    block = files.read(found.path)
    if files.keys_of(block) != (found.name.chain, found.name.content):
        raise BlockFormatError("its name is not that of its content")
    if files.folder_name(block.fingerprint) != folder.name:
        raise BlockFormatError("it belongs to another model")
