"""What a codec is, and what it makes of a block's keys and values.

Dimension key: H kv head, T token, D head width. Knows nothing of files, keys of
blocks or which codec is in use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch

if TYPE_CHECKING:
    from torch import Tensor

Planes = list["tuple[Tensor, Tensor]"]
"""Per layer canonical keys and values, float32 [H, T, D] on the CPU.

Canonical: un-rotated, and without the bias of the key projection.
"""

Shapes = tuple[tuple[int, int, int], ...]
"""Per layer (num_kv_heads, key_dim, value_dim)."""


def shapes_of(planes: Planes) -> tuple[Shapes, set[int]]:
    """The shape of every layer, and all numbers of tokens that occur."""
    shapes = tuple((k.shape[0], k.shape[2], v.shape[2]) for k, v in planes)
    return shapes, {tensor.shape[1] for pair in planes for tensor in pair}


def is_finite(planes: Planes) -> bool:
    """Tell whether no key or value is infinite or not a number.

    A sum is enough: neither can vanish in it.
    """
    sums = torch.stack([tensor.sum() for pair in planes for tensor in pair])
    return bool(torch.isfinite(sums).all())


@dataclass(frozen=True, slots=True, eq=False)
class EncodedBlock:
    """One block at rest; immutable, and safe to share between threads.

    Attributes:
        header: What the codec needs to decode, as msgpack can write it: None, bool,
            int, float, str, bytes, and lists and string-keyed dicts of these.
        planes: One-dimensional contiguous uint8 tensors. They may share one buffer
            that nobody writes to.
    """

    header: dict[str, Any]
    planes: list[Tensor]

    @property
    def num_bytes(self) -> int:
        """Bytes of all planes; the header is small."""
        return sum(plane.numel() for plane in self.planes)

    def views(self) -> list[memoryview]:
        """The planes' bytes, without a copy; not to be written to."""
        return [plane.numpy().data for plane in self.planes]

    @classmethod
    def from_views(
        cls, header: dict[str, Any], views: list[memoryview]
    ) -> EncodedBlock:
        """Use bytes where they are; each must start at a multiple of 8 in memory."""
        empty = torch.empty(0, dtype=torch.uint8)
        planes = [
            torch.frombuffer(view, dtype=torch.uint8) if view.nbytes else empty
            for view in views
        ]
        return cls(header, planes)


class Codec(Protocol):
    """Turns canonical keys and values into bytes and back; thread-safe."""

    name: str
    fingerprint: str
    """Changes whenever the bytes written or their meaning change."""

    def encode(self, planes: Planes, classes: bytes) -> EncodedBlock:
        """Quantise a block once, from its original values.

        Args:
            planes: Not mutated; not kept by reference.
            classes: One byte per token, a syntax class; codecs may ignore it.
        """

    def decode(self, encoded: EncodedBlock) -> Planes:
        """Make new float32 tensors; `encoded` is not mutated.

        Raises:
            BlockFormatError: The header does not fit the planes. Any header and any
                planes must end in this or in tensors, never in another error.
        """
