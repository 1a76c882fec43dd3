"""From the name in the configuration to a converted model's folder.

A name is, in this order: `auto` (`choice.py` tells what that stands for), a model in
the store, a local file or folder, a catalog entry, an id on the Hugging Face hub. A
default that cannot be had gives way to the small model, visibly.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from codekv.errors import (
    DownloadError,
    ModelError,
    ModelFormatError,
    ModelNotFoundError,
    StorageError,
    UsageError,
)
from codekv.model.library import store
from codekv.model.library.catalog import DEFAULT, SMALL, find_entry, unknown_model
from codekv.model.library.choice import AUTO, choose_here
from codekv.model.library.download import Sources, pull, store_lock
from codekv.model.library.fetch import DownloadProgress, Quiet

if TYPE_CHECKING:
    from codekv.config import ModelConfig
    from codekv.model.library.choice import ModelChoice
    from codekv.model.library.store import StoredModel

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+(/[\w./-]+\.gguf)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model that can be loaded now.

    Attributes:
        folder: In the store.
        name: In the store; not the configured one if another had to be taken.
        notice: What the user must be told, or None.
        choice: Why `auto` stands for it; None if another name is configured.
    """

    folder: Path
    name: str
    notice: str | None = None
    choice: ModelChoice | None = None


def resolve_model(
    config: ModelConfig,
    pull: bool,  # noqa: FBT001 - the question is in its name
    progress: DownloadProgress | None = None,
    sources: Sources | None = None,
) -> ResolvedModel:
    """Find the configured model, fetching or converting it if allowed.

    Args:
        config: Names the model.
        pull: Whether the network may be used; a local path is converted either way.
        progress: Told about downloads and steps.
        sources: Where to ask; tests pass their own.

    Raises:
        ModelNotFoundError: Nobody knows the name, or it is not here.
        ModelFormatError: It is here and cannot be used.
        DownloadError: No source delivered it.
        StorageError: The disk is full or cannot be written.
    """
    progress = progress or Quiet()
    may_pull = pull and not config.offline
    name = config.name.strip()
    choice = choose_here() if name == AUTO else None
    if choice is not None:
        name = choice.name
    try:
        stored = _find(name, may_pull, progress, sources)
    except (DownloadError, ModelNotFoundError, StorageError) as error:
        if find_entry(name) is not DEFAULT:
            raise
        return _small_instead(error, may_pull, progress, sources)
    return ResolvedModel(stored.folder, stored.name, choice=choice)


def obtain(
    name: str,
    progress: DownloadProgress | None = None,
    sources: Sources | None = None,
    *,
    again: bool = False,
) -> StoredModel:
    """Fetch a catalog entry or hub id into the store.

    Raises:
        ModelNotFoundError: Nobody knows the name.
        ModelFormatError: It arrived and cannot be used.
        DownloadError: No source delivered it.
        StorageError: The disk is full or cannot be written.
    """
    progress = progress or Quiet()
    entry = find_entry(name)
    if entry:
        return pull(entry, progress, sources, again=again)
    if not _HUB_ID.fullmatch(name):
        raise unknown_model(name, _stored_names())
    if not again and _is_stored(_store_name(name)):
        return store.open_model(_store_name(name))
    # The hub's library is slow to import and rarely needed.
    from codekv.model.library.hub import fetch_hub_model

    with store_lock(progress):
        return fetch_hub_model(name, _store_name(name), progress, sources)


def add(
    path: Path, name: str | None = None, progress: DownloadProgress | None = None
) -> StoredModel:
    """Convert a local GGUF file or model folder into the store.

    Args:
        path: The file or folder.
        name: What to call it; derived from the path if None.
        progress: Told about steps.

    Raises:
        UsageError: The name has characters that a folder's name should not have.
        ModelNotFoundError: There is nothing at `path`.
        ModelFormatError: It is not a model this program can run.
        StorageError: The disk is full or cannot be written.
    """
    path = _existing(path)
    name = name or _path_name(path)
    if not store.is_name(name):
        raise UsageError(f"{name!r} cannot be a model's name; use letters, digits, .-_")
    progress = progress or Quiet()
    source = _path_source(path)
    with store_lock(progress):
        progress.say(f"converting {path.name}")
        if path.is_dir():
            files = sorted(path.glob("*.gguf"))
            if not (path / "config.json").exists() and len(files) == 1:
                return store.import_gguf(files[0], name, source, None)
            return store.import_folder(path, name, source)
        return store.import_gguf(path, name, source, None)


def _find(
    name: str, may_pull: bool, progress: DownloadProgress, sources: Sources | None
) -> StoredModel:
    if _looks_like_path(name):
        return _from_path(Path(name), progress)
    entry = find_entry(name)
    in_store = entry.name if entry else _store_name(name)
    try:
        return store.open_model(in_store)
    except ModelFormatError:
        if not (may_pull and (entry or _HUB_ID.fullmatch(name))):
            raise
        return obtain(name, progress, sources, again=True)
    except ModelNotFoundError:
        if not entry and not _HUB_ID.fullmatch(name):
            raise unknown_model(name, _stored_names()) from None
        if not may_pull:
            line = f"no model {name!r} here; run: codekv model pull {name}"
            raise ModelNotFoundError(line) from None
    return obtain(name, progress, sources)


def _from_path(path: Path, progress: DownloadProgress) -> StoredModel:
    """The store's copy of a local model, made anew when the files have changed."""
    path = _existing(path)
    name = _path_name(path)
    try:
        stored = store.open_model(name)
        if stored.source == _path_source(path):
            return stored
    except ModelError:
        pass  # not converted yet, or damaged
    return add(path, name, progress)


def _small_instead(
    error: Exception,
    may_pull: bool,
    progress: DownloadProgress,
    sources: Sources | None,
) -> ResolvedModel:
    try:
        stored = _find(SMALL.name, may_pull, progress, sources)
    except (ModelError, StorageError):
        raise error from None
    reason = str(error).partition("; run")[0]
    notice = f"{SMALL.name} is used instead of {DEFAULT.name}: {reason}"
    notice = f"{notice}; run: codekv model pull {DEFAULT.name}"
    progress.say(notice)
    return ResolvedModel(stored.folder, stored.name, notice)


def _existing(path: Path) -> Path:
    """The absolute path of something that can be read.

    Raises:
        ModelNotFoundError: There is nothing.
        ModelFormatError: It cannot be read.
    """
    try:
        path = path.expanduser().resolve(strict=True)
        if path.is_dir():
            next(path.iterdir(), None)
        else:
            path.open("rb").close()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ModelNotFoundError(f"there is no file or folder {path}") from error
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        shown = str(path)[:120]
        raise ModelFormatError(f"{shown!r} cannot be read ({reason})") from error
    return path


def _looks_like_path(name: str) -> bool:
    if name.startswith(("/", "~", ".")) or Path(name).is_absolute():
        return True
    if name.endswith(".gguf") and not _HUB_ID.fullmatch(name):
        return True
    if find_entry(name) or not ("/" in name or "\\" in name):
        return False
    return os.path.exists(name)  # noqa: PTH110 - unlike pathlib's it never raises


def _path_name(path: Path) -> str:
    """Readable, and distinct for files of one name in different folders."""
    stem = path.stem if path.is_file() else path.name
    stem = re.sub(r"[^\w.-]+", "-", stem, flags=re.ASCII).strip(".-") or "model"
    return f"{stem[:100]}-{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"


def _path_source(path: Path) -> str:
    """The path and a mark that changes when its files do."""
    files = (
        sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    )
    facts = [(p.name, p.stat().st_size, p.stat().st_mtime_ns) for p in files]
    return f"{path} #{hashlib.sha256(repr(facts).encode()).hexdigest()[:12]}"


def _store_name(name: str) -> str:
    return name.removesuffix(".gguf").replace("/", "--")


def _is_stored(name: str) -> bool:
    return any(name == known for known in _stored_names())


def _stored_names() -> list[str]:
    return [stored.name for stored in store.list_models()]
