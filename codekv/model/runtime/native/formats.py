"""How a GGUF file's blocks are laid out here: in tiles of rows that lie in lanes.

A tile holds as many rows as a vector has 32-bit lanes (8 for AVX2, 16 for AVX-512, 4
for NEON). Along a row, 32 weights are a block, and four neighbouring weights a quad. A
vector of a tile holds the same quad of every row, so a product needs four activations
in all lanes and gives one sum per row. Weights are unsigned; what they are more than
their value (`zero`) is subtracted by where the sum starts.

Quads 0 to 3 stand in the low half of a byte and quads 4 to 7 in the high one. Further
bits follow as one vector per bit: bit q of a byte belongs to quad q.

Formats: ggml, `ggml-common.h`; names and numbers as there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BLOCK = 32
"""Weights that share one scale of the activations; also GGUF's smallest block."""

QUADS = 8
"""Groups of four weights in a block."""

Scales = Literal["half", "half_min", "k_min", "k_halves", "row"]


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of weights.

    Attributes:
        name: GGUF's, or `I8` for our own int8 rows.
        bits: Of a weight: 4, 5, 6 or 8.
        zero: Subtracted from the unsigned weight to get its integer value.
        scales: `half`: a half per block; `half_min`: a half and a half minimum, added;
            `k_min`: two halves per 256 and two small integers per block, the minimum
            subtracted; `k_halves`: a half per 256 and a signed integer per 16 weights;
            `row`: a float32 per row.
        group: Blocks that share a header.
        file_block: Weights in one block of the file.
        file_bytes: Bytes of one block of the file.
    """

    name: str
    bits: int
    zero: int
    scales: Scales
    group: int
    file_block: int
    file_bytes: int

    def header_bytes(self, lanes: int) -> int:
        """Bytes of a group's header in a tile."""
        return {"k_min": 4, "k_halves": 2}.get(self.scales, 0) * lanes

    def block_bytes(self, lanes: int) -> int:
        """Bytes of one block of a tile, its own scales included."""
        own = {"half": 2, "half_min": 4, "k_min": 2, "k_halves": 2, "row": 0}
        return lanes * (BLOCK * self.bits // 8 + own[self.scales])

    def tile_bytes(self, lanes: int, num_blocks: int) -> int:
        """Bytes of one tile."""
        groups = -(-num_blocks // self.group)
        row = 4 * lanes if self.scales == "row" else 0
        return (
            row
            + groups * self.header_bytes(lanes)
            + num_blocks * self.block_bytes(lanes)
        )


FORMATS = {
    each.name: each
    for each in (
        Format("Q4_0", 4, 8, "half", 1, 32, 18),
        Format("Q4_1", 4, 0, "half_min", 1, 32, 20),
        Format("Q5_0", 5, 16, "half", 1, 32, 22),
        Format("Q5_1", 5, 0, "half_min", 1, 32, 24),
        Format("Q8_0", 8, 128, "half", 1, 32, 34),
        Format("Q4_K", 4, 0, "k_min", 8, 256, 144),
        Format("Q5_K", 5, 0, "k_min", 8, 256, 176),
        Format("Q6_K", 6, 32, "k_halves", 8, 256, 210),
        Format("I8", 8, 128, "row", 1, 1, 1),
    )
}
