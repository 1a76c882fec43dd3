"""The quantised blocks of a GGUF file, as the file has them.

The fp16 weights of the store lose nothing against the file, but they take three times
its bytes. The native step multiplies the blocks themselves, so a copy of the file is
kept in the model's folder, with an index from transformers' names to places in it:
parsing the file's own header takes seconds, because it lists the whole vocabulary.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from codekv.errors import ModelFormatError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

BLOCKS_FILE = "source.gguf"
INDEX_FILE = "blocks.json"
LAYOUT = 1
"""Version of the index; a file of another version is not used."""


@dataclass(frozen=True, slots=True)
class BlockTensor:
    """Where one tensor stands in the file.

    Attributes:
        kind: GGUF's name of the type, for example `Q5_0` or `F32`.
        shape: Rows and columns of a matrix [N, K], or the length of a vector.
        offset: Of the first byte in the file.
        num_bytes: Of the whole tensor; every row has the same share.
    """

    kind: str
    shape: tuple[int, ...]
    offset: int
    num_bytes: int

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return self.num_bytes // self.shape[0] if len(self.shape) > 1 else 0


class BlocksFile:
    """A model's quantised tensors by transformers' names."""

    def __init__(
        self,
        path: Path,
        tensors: dict[str, BlockTensor],
        *,
        pairs: bool,
    ) -> None:
        """Take a checked index; `open_blocks` reads one."""
        self.path = path
        self.tensors = tensors
        self.pairs = pairs
        """Whether query and key rows that a rotation mixes are neighbours."""

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    def read(self, name: str, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Copy rows [start, stop) of a matrix, or a whole vector, out of the file.

        Returns:
            uint8 [rows, row bytes]; for a vector float32 [N].

        Raises:
            ModelFormatError: The file ends too early, or is not a plain vector.
        """
        tensor = self.tensors[name]
        raw = self.raw(name, start, stop)
        if len(tensor.shape) > 1:
            return raw
        if tensor.kind != "F32":
            raise ModelFormatError(f"{self.path}: {name} is not float32")
        return raw.view(np.float32)

    def raw(
        self, name: str, start: int = 0, stop: int | None = None
    ) -> NDArray[np.uint8]:
        """Copy the bytes of rows [start, stop) of a matrix, or of a whole vector.

        Returns:
            uint8 [rows, row bytes]; for a vector [bytes].

        Raises:
            ModelFormatError: The file ends too early.
        """
        tensor = self.tensors[name]
        if len(tensor.shape) == 1:
            return self._bytes(tensor.offset, tensor.num_bytes)
        stop = tensor.shape[0] if stop is None else stop
        count = (stop - start) * tensor.row_bytes
        raw = self._bytes(tensor.offset + start * tensor.row_bytes, count)
        return raw.reshape(stop - start, tensor.row_bytes)

    def _bytes(self, offset: int, count: int) -> NDArray[np.uint8]:
        raw = np.empty(count, np.uint8)
        with self.path.open("rb", buffering=0) as file:
            file.seek(offset)
            view = raw.data
            while len(view):
                got = file.readinto(view)
                if not got:
                    raise ModelFormatError(f"{self.path} is cut short; pull it again")
                view = view[got:]
        return raw


def write_blocks(
    tensors: dict[str, BlockTensor],
    source: Path,
    folder: Path,
    *,
    pairs: bool,
    link: bool = False,
) -> None:
    """Keep a GGUF file in a model's folder, with an index.

    Args:
        tensors: Where they stand in the file, by transformers' names.
        source: The file itself.
        folder: The model's.
        pairs: Whether query and key rows that a rotation mixes are neighbours.
        link: Whether the file is ours, so that a second name for it will do where
            the disk allows that; a user's file may change later and is copied.

    Raises:
        OSError: The disk is full or cannot be written.
    """
    index = {
        "layout": LAYOUT,
        "size": source.stat().st_size,
        "pairs": pairs,
        "tensors": {
            name: {
                "kind": place.kind,
                "shape": list(place.shape),
                "offset": place.offset,
                "bytes": place.num_bytes,
            }
            for name, place in tensors.items()
        },
    }
    if not link or not _link(source, folder / BLOCKS_FILE):
        shutil.copyfile(source, folder / BLOCKS_FILE)
    (folder / INDEX_FILE).write_text(json.dumps(index), "utf-8")


def open_blocks(folder: Path) -> BlocksFile | None:
    """Open a model's blocks; None where there are none or they are not usable."""
    path = folder / BLOCKS_FILE
    try:
        index = json.loads((folder / INDEX_FILE).read_bytes())
        size = path.stat().st_size
        if index["layout"] != LAYOUT or index["size"] != size:
            return None
        tensors = {
            str(name): BlockTensor(
                str(entry["kind"]),
                tuple(int(n) for n in entry["shape"]),
                int(entry["offset"]),
                int(entry["bytes"]),
            )
            for name, entry in index["tensors"].items()
        }
        pairs = bool(index["pairs"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if any(not _is_inside(tensor, size) for tensor in tensors.values()):
        return None
    return BlocksFile(path, tensors, pairs=pairs)


def _link(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except OSError:
        return False  # another disk, or one without links
    return True


def _is_inside(tensor: BlockTensor, size: int) -> bool:
    whole = math.prod(tensor.shape) > 0 and tensor.num_bytes % tensor.shape[0] == 0
    return whole and 0 <= tensor.offset <= tensor.offset + tensor.num_bytes <= size
