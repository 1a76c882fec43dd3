"""The plain codecs: fp32, fp16 and int8 with one scale per row.

Dimension key: H kv head, T token, D head width; a row is one token of one head. Knows
nothing of syntax classes.

Each tensor is coded alone. At 256 tokens it is too small for torch to split over
threads, and on a busy machine that is the point: waiting for a second thread cost
24 ms where the work took 0.7 ms.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from codekv.errors import BlockFormatError, UsageError
from codekv.storage.encoded import EncodedBlock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from codekv.storage.encoded import Planes

_DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "int8": torch.int8}
PLAIN_NAMES = tuple(_DTYPES)
_MAX_SIZE = 1 << 16  # of any one dimension
_LEVELS = 127
_ROUNDER = 1.5 * 2.0**23  # float32 has no fractions from here on
_TINY = 1e-30  # a row of nothing larger is coded as zeros


class PlainCodec:
    """Codes every element alike, whatever its class."""

    def __init__(self, name: str) -> None:
        """Make a codec by its name.

        Raises:
            UsageError: No plain codec has that name.
        """
        if name not in _DTYPES:
            known = ", ".join(PLAIN_NAMES)
            raise UsageError(f"no plain codec is called {name!r}; known: {known}")
        self.name = name
        self.fingerprint = f"plain-{name}-1"
        self._dtype = _DTYPES[name]

    def encode(self, planes: Planes, classes: bytes) -> EncodedBlock:
        """See `Codec`; `classes` is ignored."""
        del classes
        shapes = [
            [keys.shape[0], keys.shape[2], values.shape[2]] for keys, values in planes
        ]
        num_tokens = planes[0][0].shape[1] if planes else 0
        coded = [
            part.contiguous().view(-1).view(torch.uint8)
            for pair in planes
            for tensor_HTD in pair
            for part in self._encode_tensor(tensor_HTD)
        ]
        return EncodedBlock({"tokens": num_tokens, "shapes": shapes}, coded)

    def decode(self, encoded: EncodedBlock) -> Planes:
        """See `Codec`."""
        num_tokens, shapes = _read_header(encoded.header)
        per_layer = 4 if self.name == "int8" else 2
        if len(encoded.planes) != per_layer * len(shapes):
            raise BlockFormatError(
                f"{self.name}: {len(encoded.planes)} planes for {len(shapes)} layers"
            )
        parts = iter(encoded.planes)
        return [
            (
                self._decode_tensor(parts, (heads, num_tokens, key_dim)),
                self._decode_tensor(parts, (heads, num_tokens, value_dim)),
            )
            for heads, key_dim, value_dim in shapes
        ]

    def _encode_tensor(self, tensor_HTD: Tensor) -> list[Tensor]:
        if self.name == "fp32":
            return [tensor_HTD.clone()]
        if self.name == "fp16":
            limit = torch.finfo(torch.float16).max
            return [tensor_HTD.clamp(-limit, limit).to(torch.float16)]
        # Head by head, again to stay on one thread.
        peaks = [head_TD.abs().amax(-1, keepdim=True) for head_TD in tensor_HTD]
        scale_HT1 = torch.stack(peaks).div_(_LEVELS)
        divisor = scale_HT1.masked_fill(scale_HT1 < _TINY, torch.inf)
        # Adding and taking away a large number rounds; torch's own round splits even
        # small tensors over threads.
        codes = (tensor_HTD / divisor).add_(_ROUNDER).sub_(_ROUNDER)
        return [codes.clamp_(-_LEVELS, _LEVELS).to(torch.int8), scale_HT1]

    def _decode_tensor(self, parts: Iterator[Tensor], shape: tuple[int, ...]) -> Tensor:
        coded_HTD = _view(next(parts), self._dtype, shape)
        if self.name == "int8":
            scale_HT1 = _view(next(parts), torch.float32, (*shape[:2], 1))
            return coded_HTD * scale_HT1
        return coded_HTD.to(torch.float32, copy=True)


def _read_header(header: dict[str, Any]) -> tuple[int, list[list[int]]]:
    tokens: Any = header.get("tokens")
    shapes: Any = header.get("shapes")
    if not _is_size(tokens) or not isinstance(shapes, list):
        raise BlockFormatError("a plain block's header needs tokens and shapes")
    for shape in shapes:
        is_triple = isinstance(shape, list) and len(shape) == 3
        if not is_triple or not all(_is_size(size) for size in shape):
            raise BlockFormatError(f"{shape!r:.60} is not the shape of a layer")
    return tokens, shapes


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 < value <= _MAX_SIZE


def _view(plane: Tensor, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    expected = math.prod(shape) * dtype.itemsize
    if plane.numel() != expected:
        raise BlockFormatError(
            f"a plane of {plane.numel()} bytes where {list(shape)} needs {expected}"
        )
    return plane.view(dtype).view(shape)
