"""What a codec is, and what it makes of a block's keys and values.

Dimension key: H kv head, T token, D head width. Knows nothing of files, keys of
blocks or which codec is in use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from torch import Tensor

Planes = list["tuple[Tensor, Tensor]"]
"""Per layer canonical keys and values, float32 [H, T, D] on the CPU.

Canonical: un-rotated, and without the bias of the key projection.
"""


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
