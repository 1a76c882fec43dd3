"""A live sequence: tokens whose keys and values stand in working tensors.

Knows which slots are exact. Exact means computed from the tokens before it, all of
them exact; a slot computed after an approximate one is tainted, not exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from codekv.storage.tensors import KVTensors


class Grade(IntEnum):
    """How a slot came to be."""

    COMPUTED = 0
    RESTORED = 1
    MOVED = 2


@dataclass(eq=False)
class LiveSequence:
    """One prompt's tokens, their slots, and the logits after the last prompt token.

    Slot i holds token i at position i.
    """

    kv: KVTensors
    tokens: list[int] = field(default_factory=list)
    grades: bytearray = field(default_factory=bytearray)
    logits: dict[int, Tensor] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def num_exact(self) -> int:
        """Length of the prefix without any restored or moved slot."""
        stripped = self.grades.lstrip(b"\0")
        return len(self.grades) - len(stripped)

    def common_prefix(self, tokens: Sequence[int]) -> int:
        """Number of leading tokens that are the same."""
        return common_prefix(self.tokens, tokens)

    def crop(self, length: int) -> None:
        """Forget every slot from `length` on."""
        if length < len(self.tokens):
            del self.tokens[length:]
            del self.grades[length:]
            self.logits = {p: row for p, row in self.logits.items() if p < length}

    def append(self, tokens: Sequence[int], grade: Grade = Grade.COMPUTED) -> None:
        """Note tokens whose keys and values have been written behind the last."""
        self.tokens.extend(tokens)
        self.grades.extend(bytes([grade]) * len(tokens))

    def reserve(self, length: int) -> None:
        """Make room for `length` slots; rounds up so that growth is rare."""
        if length > self.kv.capacity:
            self.kv.grow(max(length, self.kv.capacity + self.kv.capacity // 2))

    def check(self) -> None:
        """Verify the invariants; for tests."""
        assert len(self.tokens) == len(self.grades) <= self.kv.capacity
        assert all(p < len(self.tokens) for p in self.logits)


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """Number of equal leading entries; compares by halving, so mostly in C."""
    limit = min(len(left), len(right))
    left, right = left[:limit], right[:limit]
    if list(left) == list(right):
        return limit
    low, high = 0, limit
    while low < high - 1:
        middle = (low + high) // 2
        if list(left[low:middle]) == list(right[low:middle]):
            low = middle
        else:
            high = middle
    return low
