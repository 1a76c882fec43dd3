"""Reading a safetensors file tensor by tensor, without keeping it in memory.

The library's own reader maps the file and every touched page then counts as resident
memory; here a tensor is either copied out (`read`) or mapped on purpose (`map`).
Knows bytes and shapes, not models.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import torch

from codekv.errors import ModelFormatError

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

# The limit of the safetensors format itself.
MAX_HEADER_BYTES = 100_000_000
_DTYPES = {
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "I32": torch.int32,
    "I64": torch.int64,
}


class WeightsFile:
    """Names, shapes and bytes of one safetensors file."""

    def __init__(self, path: Path) -> None:
        """Read the header.

        Raises:
            ModelFormatError: It is missing, cut short, or not a safetensors file.
        """
        self.path = path
        try:
            self._size = path.stat().st_size
            with path.open("rb") as file:
                length = int.from_bytes(file.read(8), "little")
                if not 2 <= length <= min(MAX_HEADER_BYTES, self._size - 8):
                    raise ModelFormatError(
                        f"{path} is not a safetensors file: its header claims {length} "
                        f"bytes of {self._size}; pull or add the model again"
                    )
                self.header_bytes = file.read(length)
            header = json.loads(self.header_bytes)
            self.metadata: dict[str, str] = header.pop("__metadata__", {})
        except (OSError, ValueError, AttributeError, TypeError) as error:
            if isinstance(error, ModelFormatError):
                raise
            raise ModelFormatError(
                f"{path} cannot be read ({error}); pull or add the model again"
            ) from error
        self._start = 8 + length
        self._entries: dict[str, Any] = header

    @property
    def names(self) -> list[str]:
        """Names of the tensors, as stored."""
        return list(self._entries)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def shape(self, name: str) -> tuple[int, ...]:
        """The tensor's shape, from the header alone."""
        return tuple(self._place(name)[3])

    def read(self, name: str) -> Tensor:
        """Copy one tensor into memory of its own."""
        begin, count, dtype, shape = self._place(name)
        tensor = torch.empty(count, dtype=dtype)
        with self.path.open("rb") as file:
            file.seek(begin)
            target: Any = tensor.view(torch.uint8).numpy()
            if file.readinto(target) != tensor.nbytes:
                raise ModelFormatError(f"{self.path} ends inside {name}")
        return tensor.view(shape)

    def map(self, name: str) -> Tensor:
        """Map one tensor; only the rows that are used become resident. Read-only."""
        begin, count, dtype, shape = self._place(name)
        if begin % dtype.itemsize:
            return self.read(name)
        storage: Any = torch.UntypedStorage.from_file(str(self.path), False, self._size)
        raw = torch.empty(0, dtype=torch.uint8).set_(
            storage, begin, (count * dtype.itemsize,), (1,)
        )
        return raw.view(dtype).view(shape)

    def _place(self, name: str) -> tuple[int, int, torch.dtype, list[int]]:
        try:
            entry = self._entries[name]
            dtype = _DTYPES[entry["dtype"]]
            shape = [int(n) for n in entry["shape"]]
            begin, end = (int(n) for n in entry["data_offsets"])
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFormatError(
                f"{self.path} has no usable tensor {name} ({error!r})"
            ) from error
        count = math.prod(shape)
        if end - begin != count * dtype.itemsize or not (
            0 <= begin <= end <= self._size - self._start
        ):
            raise ModelFormatError(
                f"{self.path} is cut short or damaged at {name}; pull or add the "
                "model again"
            )
        return self._start + begin, count, dtype, shape
