"""Write a safetensors file tensor by tensor, so that one tensor is in memory at a time.

The library's own writer wants every tensor at once. The format allows blanks after the
header, so room for the header is left in front and filled in at the end.
"""

from __future__ import annotations

import json
import os
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from types import TracebackType

    import numpy as np
    from numpy.typing import NDArray

HEADER_BYTES = 1 << 20
"""Room for the header: about 100 bytes for each of 10,000 tensors."""

_LENGTH_BYTES = 8
"""The format begins with the length of its header."""

_DTYPES = {
    "float32": "F32",
    "float16": "F16",
    "int8": "I8",
    "uint8": "U8",
}


class TensorWriter:
    """A safetensors file being written; use as a context.

    The file appears under its name when the block ends well, and not otherwise.
    """

    def __init__(self, path: Path, metadata: dict[str, str]) -> None:
        """Begin `path`.

        Args:
            path: The finished file; written beside it until then.
            metadata: Strings to keep in the header.
        """
        self._path = path
        self._partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        self._metadata = metadata
        self._entries: dict[str, Any] = {}
        self._begin = 0
        self._file: IO[bytes] = self._partial.open("wb")
        self._file.seek(_LENGTH_BYTES + HEADER_BYTES)

    def __enter__(self) -> TensorWriter:
        return self

    def add(
        self,
        name: str,
        dtype: str,
        shape: tuple[int, ...],
        rows: Iterable[NDArray[np.generic]],
    ) -> None:
        """Append one tensor.

        Args:
            name: Of the tensor.
            dtype: numpy's name of the numbers.
            shape: Of the tensor.
            rows: Its numbers in order, cut anywhere between rows.
        """
        start = self._file.tell()
        for part in rows:
            self._file.write(part.tobytes())
        first = _LENGTH_BYTES + HEADER_BYTES
        self._entries[name] = {
            "dtype": _DTYPES[dtype],
            "shape": list(shape),
            "data_offsets": [start - first, self._file.tell() - first],
        }

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            with self._file as file:
                if kind is None:
                    self._write_header(file)
            if kind is None:
                self._partial.replace(self._path)
        finally:
            self._partial.unlink(missing_ok=True)

    def _write_header(self, file: IO[bytes]) -> None:
        header = {"__metadata__": self._metadata} | self._entries
        text = json.dumps(header, separators=(",", ":")).encode()
        if len(text) > HEADER_BYTES:
            raise ValueError(f"{len(self._entries)} tensors do not fit in one header")
        file.seek(0)
        file.write(HEADER_BYTES.to_bytes(_LENGTH_BYTES, "little"))
        file.write(text.ljust(HEADER_BYTES))
        file.flush()
        os.fsync(file.fileno())
