"""The local store of models: one folder per model, complete or absent.

A model is converted once. It is written to a hidden sibling and renamed at the end, so
that a folder with a manifest is always a whole model: `config.json`, `tokenizer.json`,
`manifest.json`, and the weights. Those are a GGUF file as it came (`source.gguf` with
its index `blocks.json`), or `weights.safetensors` (fp16, transformers' names) for a
model that came as a folder. Where files come from is `download.py`'s business.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from codekv import __version__
from codekv.config import data_dir
from codekv.errors import (
    CodekvError,
    ModelFormatError,
    ModelNotFoundError,
    StorageError,
)
from codekv.tokens.tokenizer import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FORMAT = 1
"""Version of the folder layout; another number means: convert again."""

WEIGHTS = "weights.safetensors"
CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
MANIFEST = "manifest.json"

_PARTIAL = ".partial-"
_NAME = re.compile(r"\w[\w.-]*", re.ASCII)
# File names hold 255 bytes; temporary suffixes need some of them.
_LONGEST = 160
_LIBRARIES = ("gguf", "numpy", "safetensors", "tokenizers", "torch")


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A converted model on disk.

    Attributes:
        name: Its folder's name; what the configuration calls it.
        folder: Holds every file named in the manifest.
        source: Where it came from, for people.
        source_sha256: Of the file it was converted from; None for a folder.
        family: transformers' `model_type`.
        num_bytes: On disk.
    """

    name: str
    folder: Path
    source: str
    source_sha256: str | None
    family: str
    num_bytes: int


def models_dir() -> Path:
    """The folder that holds one folder per model."""
    return data_dir() / "models"


def is_name(name: str) -> bool:
    """Whether a model may be called so: it becomes the name of a folder."""
    return len(name) <= _LONGEST and bool(_NAME.fullmatch(name))


def list_models() -> list[StoredModel]:
    """Every usable model in the store, by name."""
    root = models_dir()
    if not root.is_dir():
        return []
    found = []
    for folder in sorted(root.iterdir()):
        if not folder.name.startswith(".") and (folder / MANIFEST).is_file():
            try:
                found.append(open_model(folder.name))
            except (ModelFormatError, ModelNotFoundError):
                continue
    return found


def open_model(name: str) -> StoredModel:
    """Find a converted model by name and see that its files are whole.

    Sizes are compared, hashes are not: that would read the whole model at each start
    (`verify_model` does).

    Raises:
        ModelNotFoundError: The store has no such model.
        ModelFormatError: Its folder is damaged or of another layout.
    """
    folder = models_dir() / name
    if not is_name(name) or not (folder / MANIFEST).is_file():
        shown = name[:80]
        line = f"no model {shown!r} here; run: codekv model pull {shown}"
        raise ModelNotFoundError(line)
    manifest = _read_manifest(folder)
    for file, facts in manifest["files"].items():
        path = folder / file
        if not path.is_file() or path.stat().st_size != facts["size"]:
            raise _damaged(folder, f"{file} is missing or cut short")
    return StoredModel(
        name=name,
        folder=folder,
        source=str(manifest["source"]),
        source_sha256=manifest["source_sha256"],
        family=str(manifest["family"]),
        num_bytes=sum(path.stat().st_size for path in folder.iterdir()),
    )


def verify_model(name: str) -> StoredModel:
    """Like `open_model`, but compares every file with its hash; reads all of it.

    Raises:
        ModelNotFoundError: The store has no such model.
        ModelFormatError: A file is not what was written.
    """
    stored = open_model(name)
    for file, facts in _read_manifest(stored.folder)["files"].items():
        if sha256_of(stored.folder / file) != facts["sha256"]:
            raise _damaged(stored.folder, f"{file} was changed")
    return stored


def import_gguf(
    path: Path, name: str, source: str, sha256: str | None, *, ours: bool = False
) -> StoredModel:
    """Take a GGUF file into the store, replacing a model of that name.

    The file's own blocks are kept; the runtime makes other forms of them when it
    wants one.

    Args:
        path: The file; read, never changed.
        name: Of the new model.
        source: For the manifest.
        sha256: Of the file if already known; computed otherwise.
        ours: Whether the file was downloaded for this, so that nobody changes it.

    Raises:
        ModelFormatError: It is not a GGUF file of a known architecture.
        StorageError: The disk is full or cannot be written.
    """
    # numpy and gguf are slow to import and only needed here.
    from codekv.model.library.gguf_import import GgufModel
    from codekv.model.library.gguf_vocab import tokenizer_json
    from codekv.model.runtime.blocks import BLOCKS_FILE, INDEX_FILE, write_blocks

    digest = sha256 or sha256_of(path)
    model = GgufModel(path)
    try:
        config = model.config()
        tokenizer = tokenizer_json(model.fields, str(path))
    except (KeyError, IndexError, TypeError) as error:
        raise ModelFormatError(f"{path} lacks {error}; fetch it again") from error

    def write(folder: Path) -> None:
        _write_json(folder / CONFIG, config)
        _write_json(folder / TOKENIZER, tokenizer)
        pairs = model.architecture == "llama"
        write_blocks(model.places(), path, folder, pairs=pairs, link=ours)

    digests = {BLOCKS_FILE: digest}
    return _convert(name, source, digests, (BLOCKS_FILE, INDEX_FILE), write)


def import_folder(path: Path, name: str, source: str) -> StoredModel:
    """Convert a folder in transformers' layout into the store.

    Args:
        path: Holds `config.json`, `tokenizer.json` and safetensors files.
        name: Of the new model; a model of that name is replaced.
        source: For the manifest.

    Raises:
        ModelFormatError: A file is missing or unreadable.
        StorageError: The disk is full or cannot be written.
    """
    from codekv.model.library.hf_import import read_config, write_weights

    config = read_config(path)
    tokenizer = path / TOKENIZER
    if not tokenizer.is_file():
        line = f"{path} has no {TOKENIZER}; save the model with its fast tokenizer"
        raise ModelFormatError(line)

    def write(folder: Path) -> None:
        _write_json(folder / CONFIG, config)
        shutil.copyfile(tokenizer, folder / TOKENIZER)
        write_weights(path, folder / WEIGHTS)

    return _convert(name, source, {}, (WEIGHTS,), write)


def remove_partial() -> None:
    """Delete what interrupted conversions left; call with the store's lock held."""
    root = models_dir()
    for leftover in root.glob(_PARTIAL + "*") if root.is_dir() else ():
        shutil.rmtree(leftover, ignore_errors=True)


def sha256_of(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn a full or read-only disk into one line that says what to do.

    Raises:
        StorageError: Any error of the operating system inside the block.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, CodekvError):
            raise
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            line = f"the disk is full at {folder}; free 3 GB and run the command again"
        else:
            line = f"cannot write to {folder} ({error.strerror or error})"
        raise StorageError(line) from error


def _convert(
    name: str,
    source: str,
    digests: dict[str, str],
    weights: tuple[str, ...],
    write: Callable[[Path], None],
) -> StoredModel:
    root = models_dir()
    with disk_errors(root):
        root.mkdir(parents=True, exist_ok=True)
        partial = root / f"{_PARTIAL}{name}-{os.getpid()}"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        try:
            write(partial)
            load_tokenizer(partial)
            files = _files(partial, weights, digests)
            manifest = _manifest(partial, name, source, files)
            _write_json(partial / MANIFEST, manifest)
            _put_in_place(partial, root / name)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return open_model(name)


def _files(
    folder: Path, weights: tuple[str, ...], known: dict[str, str]
) -> dict[str, Any]:
    """Size and hash of every file that makes the model; `known` saves hashing."""
    # Forms that the runtime makes of the weights are left out: it may write them anew.
    paths = [folder / file for file in (CONFIG, TOKENIZER, *weights)]
    return {
        path.name: {
            "size": path.stat().st_size,
            "sha256": known.get(path.name) or sha256_of(path),
        }
        for path in paths
    }


def _manifest(
    folder: Path, name: str, source: str, files: dict[str, Any]
) -> dict[str, Any]:
    from codekv.model.runtime.blocks import BLOCKS_FILE

    config = json.loads((folder / CONFIG).read_bytes())
    return {
        "format": FORMAT,
        "name": name,
        "source": source,
        "source_sha256": files.get(BLOCKS_FILE, {}).get("sha256"),
        "family": config["model_type"],
        "files": files,
        "versions": {"codekv": __version__}
        | {library: version(library) for library in _LIBRARIES},
    }


def _put_in_place(partial: Path, folder: Path) -> None:
    """Rename the finished folder; a power cut leaves the old one or the new one."""
    for path in partial.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    if folder.exists():
        old = folder.with_name(f"{_PARTIAL}old-{folder.name}-{os.getpid()}")
        folder.rename(old)
        partial.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    else:
        partial.rename(folder)


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError) as error:
        raise _damaged(folder, f"{MANIFEST} cannot be read") from error
    wanted = ("files", "source", "source_sha256", "family")
    if not isinstance(manifest, dict) or any(key not in manifest for key in wanted):
        raise _damaged(folder, f"{MANIFEST} is not a manifest")
    if manifest.get("format") != FORMAT:
        raise _damaged(folder, "it was converted by another version")
    return manifest


def _damaged(folder: Path, what: str) -> ModelFormatError:
    line = f"model {folder.name!r} at {folder}: {what}"
    return ModelFormatError(f"{line}; run: codekv model pull {folder.name} --again")


def _write_json(path: Path, value: dict[str, Any]) -> None:
    compact = path.name == TOKENIZER  # megabytes, read at every start
    text = json.dumps(value, ensure_ascii=False, indent=None if compact else 1)
    path.write_text(text + "\n", "utf-8")
