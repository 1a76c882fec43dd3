"""The live sequences of an engine: which one a prompt goes to, and what they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.engine.live_sequence import LiveSequence, most_common
from codekv.engine.shared_slots import Trunk, num_shared_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from codekv.storage.tensors import KVTensors

SPARE = 64
"""Slots behind the common part that a request may overwrite without a copy: about the
last answer (`completion.max_tokens`, 48) and the healed end of a prompt."""

SHARE_FROM = 64
"""Common slots from which on they are shared. Fewer are mostly a marker or a licence
that other documents begin with too, and these should not wait for each other's turn."""


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """Where a prompt will stand.

    Attributes:
        sequence: The sequence to bring to the prompt; None for a new one.
        copied: If given, the prompt's sequence gets the common part of this one, and
            what else `sequence` held is given up.
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
    that the request would overwrite, a new sequence begins with the common part
    instead, so that going back stays cheap. A long common part is shared and copied
    only where one of them changes it; a short one is copied at once.
    """

    def __init__(
        self,
        make: Callable[[], LiveSequence],
        limit: int,
        share_from: int = SHARE_FROM,
    ) -> None:
        """Begin without sequences.

        Args:
            make: Makes an empty one.
            limit: Most sequences.
            share_from: Common slots from which on they are shared.
        """
        self._make = make
        self._share_from = share_from
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
        """Take the sequence of a place; it becomes the most recently used."""
        chosen, copied = place.sequence, place.copied
        if copied in self._sequences and place.common >= self._share_from:
            chosen = self._fork(copied, chosen, place.common)
        elif copied is not None or place.common == 0:
            chosen = self._emptied(chosen)
            if copied is not None:
                chosen.copy_prefix(copied, place.common)
        assert chosen is not None, "a place without a sequence has nothing in common"
        if chosen.trunk is not None and chosen.trunk.active is not chosen:
            chosen.trunk.activate(chosen)
        if chosen in self._sequences:
            self._sequences.remove(chosen)
        self._sequences.append(chosen)
        self.version += 1
        return chosen

    def _fork(
        self, source: LiveSequence, given_up: LiveSequence | None, common: int
    ) -> LiveSequence:
        """A new sequence that shares the first slots of another one."""
        trunk = source.trunk
        if trunk is None:
            trunk = source.trunk = Trunk(source.kv)
            trunk.active = source
        elif trunk.active is not source:
            trunk.activate(source)
        trunk.park(common)
        if given_up is not None:
            self._drop(given_up)
        made = LiveSequence(trunk.kv, trunk=trunk)
        trunk.active = made
        made.take_prefix(source, common)
        return made

    def _emptied(self, seq: LiveSequence | None) -> LiveSequence:
        """A sequence that holds nothing, in a given one's tensors if they are free."""
        if seq is None:
            return self._make()
        if seq.trunk is not None and seq.trunk.parked:
            self._drop(seq)
            return self._make()
        seq.crop(0)
        return seq

    def _drop(self, seq: LiveSequence) -> None:
        self._sequences.remove(seq)
        if seq.trunk is not None:
            seq.trunk.leave(seq)

    def kv(self) -> list[KVTensors]:
        """The working tensors of all sequences; shared ones may come twice."""
        trunks = [seq.trunk.kv for seq in self._sequences if seq.trunk is not None]
        return [*trunks, *(seq.kv for seq in self._sequences)]

    @property
    def num_shared_bytes(self) -> int:
        """Bytes that copies would take in addition."""
        return sum(map(num_shared_bytes, self._sequences))

    def drop_oldest(self) -> bool:
        """Free the least recently used sequence; False if there is only one."""
        if len(self._sequences) < 2:
            return False
        self._drop(self._sequences[0])
        self.version += 1
        return True

    def clear(self) -> None:
        """Free all sequences."""
        for seq in list(self._sequences):
            self._drop(seq)
        self.version += 1

    def _vacant(self, keep: LiveSequence | None) -> LiveSequence | None:
        """The sequence to give up; None while another one may be made."""
        if len(self._sequences) < self._limit:
            return None
        others = [seq for seq in self._sequences if seq is not keep]
        return others[0] if others else self._sequences[0]
