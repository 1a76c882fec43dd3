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


class Grade(IntEnum):
    """How a slot came to be."""

    COMPUTED = 0
    RESTORED = 1
    MOVED = 2


@dataclass(eq=False)
class LiveSequence:
    """One prompt's tokens, their slots, and the logits after the last prompt token.

    Slot i holds token i at position i. A grade other than COMPUTED marks a slot as
    approximate; its drift is how many tokens before it it never saw. The holder is
    the work that took the sequence last; only that may change it.
    """

    kv: KVTensors
    tokens: list[int] = field(default_factory=list)
    grades: bytearray = field(default_factory=bytearray)
    drift: list[int] = field(default_factory=list)
    logits: dict[int, Tensor] = field(default_factory=dict)
    topic: str = ""
    holder: object = None

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
            del self.drift[length:]
            self.logits = {p: row for p, row in self.logits.items() if p < length}

    def append(
        self, tokens: Sequence[int], grade: Grade = Grade.COMPUTED, drift: int = 0
    ) -> None:
        """Note tokens whose keys and values have been written behind the last.

        What was computed after an approximate slot inherits its grade.
        """
        if grade is Grade.COMPUTED and self.num_exact < len(self):
            grade = Grade(max(self.grades))
        self.tokens.extend(tokens)
        self.grades.extend(bytes([grade]) * len(tokens))
        self.drift.extend([drift] * len(tokens))

    def mark_exact(self, start: int, stop: int) -> None:
        """Note that slots [start, stop) were computed anew behind exact ones."""
        self.grades[start:stop] = bytes(stop - start)
        self.drift[start:stop] = [0] * (stop - start)

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
        self.drift = source.drift[:length]

    def check(self) -> None:
        """Verify the invariants; for tests."""
        assert len(self.tokens) == len(self.grades) <= self.kv.capacity
        assert len(self.drift) == len(self.tokens)
        assert not any(self.drift[: self.num_exact])
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
    take: Callable[[], LiveSequence], use: Callable[[LiveSequence], Cooperative[T]]
) -> Cooperative[T]:
    """Take a sequence and use it; anew if other work took it between two steps.

    Work that waits for newer work may find its sequence changed, so it must not go on
    where it was. Newer work ends first, so this ends too.
    """
    while True:
        seq = take()
        steps = seq.holder = use(seq)
        with closing(steps):
            while seq.holder is steps:
                try:
                    next(steps)
                except StopIteration as stop:
                    return cast("T", stop.value)
                yield


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

    def __iter__(self) -> Iterator[LiveSequence]:
        return iter(self._sequences)

    def acquire(
        self,
        tokens: Sequence[int],
        sources: Sequence[LiveSequence] = (),
        spare: int = 64,
    ) -> LiveSequence:
        """The sequence to bring to `tokens`; becomes the most recently used.

        Args:
            tokens: The prompt.
            sources: Other sequences that may be copied from but not changed.
            spare: How many slots behind the common part may be lost without a copy:
                the last answer and the healed end of a prompt.
        """
        best, common = most_common(self._sequences, tokens)
        source, more = most_common(sources, tokens)
        if source is None or more <= common + spare:
            source, more = best, common
        if best is None or source is not best or len(best) - common > spare:
            chosen = self._vacant(keep=source)
            if source is not None and source is not chosen:
                chosen.copy_prefix(source, more)
        else:
            chosen = best
        if chosen in self._sequences:
            self._sequences.remove(chosen)
        self._sequences.append(chosen)
        return chosen

    def clear(self) -> None:
        """Free all sequences."""
        self._sequences.clear()

    def _vacant(self, keep: LiveSequence | None) -> LiveSequence:
        if len(self._sequences) < self._limit:
            return self._make()
        others = [s for s in self._sequences if s is not keep]
        if not others:
            return self._sequences[0]
        others[0].crop(0)
        return others[0]


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
