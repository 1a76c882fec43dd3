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
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor

    from codekv.cooperative import Cooperative
    from codekv.storage.tensors import KVTensors

T = TypeVar("T")

SPARE = 64
"""Slots behind the common part that a request may overwrite without a copy: about the
last answer (`completion.max_tokens`, 48) and the healed end of a prompt."""


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
    """

    kv: KVTensors
    tokens: list[int] = field(default_factory=list)
    grades: bytearray = field(default_factory=bytearray)
    unseen_tokens: list[int] = field(default_factory=list)
    logits: dict[int, Tensor] = field(default_factory=dict)
    topic: str = ""
    holder: object = None
    version: int = 0

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
            del self.unseen_tokens[length:]
            self.version += 1
            self.logits = {p: row for p, row in self.logits.items() if p < length}

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


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Where a prompt will stand.

    Attributes:
        sequence: The sequence to bring to the prompt; None for a new one.
        copied: If given, the sequence is emptied and gets the common part of this one.
        common: How many leading tokens of the prompt it holds then.
        version: The pool's, when this was chosen.
    """

    sequence: LiveSequence | None
    copied: LiveSequence | None
    common: int
    version: int = 0


class SequencePool:
    """A bounded number of live sequences, shared by all documents.

    A request takes the sequence it has most in common with. If that one holds much
    that the request would overwrite, another sequence (the least recently used) gets
    a copy of the common part instead, so that going back stays cheap: copy-on-write.
    """

    def __init__(self, make: Callable[[], LiveSequence], limit: int) -> None:
        self._make = make
        self._limit = limit
        # Least recently used first.
        self._sequences: list[LiveSequence] = []
        # Counts changes of the order, so that a plan can tell whether it still holds.
        self.version = 0

    def __iter__(self) -> Iterator[LiveSequence]:
        return iter(self._sequences)

    def place(
        self,
        tokens: Sequence[int],
        sources: Sequence[LiveSequence] = (),
        spare: int = SPARE,
    ) -> Placement:
        """Choose the sequence to bring to `tokens`; changes nothing.

        Args:
            tokens: The prompt.
            sources: Other sequences that may be copied from but not changed.
            spare: How many slots behind the common part may be lost without a copy.
        """
        best, common = most_common(self._sequences, tokens)
        source, more = most_common(sources, tokens)
        if source is None or more <= common + spare:
            source, more = best, common
        if best is not None and source is best and len(best) - common <= spare:
            return Placement(best, None, common, self.version)
        chosen = self._vacant(keep=source)
        if source is chosen:
            return Placement(chosen, None, more, self.version)
        return Placement(chosen, source, more, self.version)

    def allows(self, place: Placement) -> bool:
        """Whether nothing was taken or freed since a place was chosen."""
        return place.version == self.version

    def acquire(self, place: Placement) -> LiveSequence:
        """Take a chosen sequence; it becomes the most recently used."""
        chosen = place.sequence or self._make()
        if place.copied is not None:
            chosen.copy_prefix(place.copied, place.common)
        elif place.common == 0:
            chosen.crop(0)
        if chosen in self._sequences:
            self._sequences.remove(chosen)
        self._sequences.append(chosen)
        self.version += 1
        return chosen

    def kv(self) -> list[KVTensors]:
        """The working tensors of all sequences."""
        return [seq.kv for seq in self._sequences]

    def drop_oldest(self) -> bool:
        """Free the least recently used sequence; False if there is only one."""
        if len(self._sequences) < 2:
            return False
        del self._sequences[0]
        self.version += 1
        return True

    def clear(self) -> None:
        """Free all sequences."""
        self._sequences.clear()
        self.version += 1

    def _vacant(self, keep: LiveSequence | None) -> LiveSequence | None:
        """The sequence to give up; None while another one may be made."""
        if len(self._sequences) < self._limit:
            return None
        others = [seq for seq in self._sequences if seq is not keep]
        return others[0] if others else self._sequences[0]


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
