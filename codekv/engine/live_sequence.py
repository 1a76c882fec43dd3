"""A live sequence: tokens whose keys and values stand in working tensors.

Knows which slots are exact. Exact means computed from the tokens before it, all of
them exact; a slot computed after an approximate one is tainted, not exact.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from codekv.cooperative import Cooperative
    from codekv.engine.shared_slots import Trunk
    from codekv.storage.tensors import KVTensors

T = TypeVar("T")


class Grade(IntEnum):
    """How a slot came to be."""

    COMPUTED = 0
    RESTORED = 1
    MOVED = 2


@dataclass(eq=False)
class LiveSequence:
    """One prompt's tokens, their slots, and the logits after the last prompt token.

    Slot i holds token i at position i.

    Attributes:
        kv: Their keys and values.
        tokens: One per slot.
        grades: One `Grade` per slot; other than COMPUTED means approximate.
        unseen_tokens: Per slot, how many of the tokens before it were not there when
            it was computed.
        logits: By slot, [V]: what the model says behind it, where that is known.
        topic: The document.
        holder: The work that took the sequence last; only that may change it.
        version: Counts changes, so that a plan can tell whether it still holds.
        trunk: Working tensors that it shares with related sequences; None for none.
    """

    kv: KVTensors
    tokens: list[int] = field(default_factory=list)
    grades: bytearray = field(default_factory=bytearray)
    unseen_tokens: list[int] = field(default_factory=list)
    logits: dict[int, Tensor] = field(default_factory=dict)
    topic: str = ""
    holder: object = None
    version: int = 0
    trunk: Trunk | None = None

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
        self.protect(length)
        if length < len(self.tokens):
            del self.tokens[length:]
            del self.grades[length:]
            del self.unseen_tokens[length:]
            self.version += 1
            self.logits = {p: row for p, row in self.logits.items() if p < length}

    def protect(self, slot: int) -> None:
        """Let related sequences own what they share of the slots from `slot` on.

        Has to come before slots that are held are overwritten with another text's.
        """
        if self.trunk is not None:
            self.trunk.protect(slot)

    def append(
        self, tokens: Sequence[int], grade: Grade = Grade.COMPUTED, unseen: int = 0
    ) -> None:
        """Note tokens whose keys and values have been written behind the last.

        What was computed after an approximate slot inherits its grade.
        """
        if grade is Grade.COMPUTED and self.num_exact < len(self):
            grade = Grade(max(self.grades))
        self.tokens.extend(tokens)
        self.grades.extend(bytes([grade]) * len(tokens))
        self.unseen_tokens.extend([unseen] * len(tokens))
        self.version += 1

    def mark_exact(self, start: int, stop: int) -> None:
        """Note that slots [start, stop) were computed anew behind exact ones."""
        self.grades[start:stop] = bytes(stop - start)
        self.unseen_tokens[start:stop] = [0] * (stop - start)
        self.version += 1

    def reserve(self, length: int) -> None:
        """Make room for `length` slots; rounds up so that growth is rare."""
        if length > self.kv.capacity:
            self.kv.grow(max(length, self.kv.capacity + self.kv.capacity // 2))

    def copy_prefix(self, source: LiveSequence, length: int) -> None:
        """Become a copy of the first `length` slots of another sequence."""
        self.crop(0)
        self.reserve(length)
        self.kv.copy_slots(source.kv, 0, length)
        self.take_prefix(source, length)

    def take_prefix(self, source: LiveSequence, length: int) -> None:
        """Note that the first `length` slots are those of another sequence."""
        self.tokens = source.tokens[:length]
        self.grades = source.grades[:length]
        self.unseen_tokens = source.unseen_tokens[:length]
        self.version += 1

    def check(self) -> None:
        """Verify the invariants; for tests."""
        assert len(self.tokens) == len(self.grades) <= self.kv.capacity
        assert len(self.unseen_tokens) == len(self.tokens)
        assert not any(self.unseen_tokens[: self.num_exact])
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


def holding(
    take: Callable[[], tuple[LiveSequence, Cooperative[T]]],
) -> Cooperative[T]:
    """Do work on a sequence; anew if other work took the sequence between two steps.

    Work that waits for newer work may find its sequence changed, so it must not go on
    where it was. Newer work ends first, so this ends too.

    Args:
        take: Chooses a sequence and makes the work to do on it, not yet begun.
    """
    while True:
        seq, steps = take()
        seq.holder = steps
        with closing(steps):
            while seq.holder is steps:
                try:
                    next(steps)
                except StopIteration as stop:
                    return cast("T", stop.value)
                yield


def most_common(
    sequences: Sequence[LiveSequence], tokens: Sequence[int]
) -> tuple[LiveSequence | None, int]:
    """The sequence with the longest common prefix, and its length; None, 0 if none."""
    best, most = None, 0
    for seq in sequences:
        common = seq.common_prefix(tokens)
        if common > most:
            best, most = seq, common
    return best, most
