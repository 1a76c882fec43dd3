"""Copy-on-write for live sequences: related ones share the slots that they agree on.

Attention wants each layer's keys and values in one piece, so sequences cannot be lists
of pages. Instead, related sequences take turns in one set of working tensors: the
trunk. The active one is there as a whole. A parked one keeps only the slots in which it
differs; the slots before them are the trunk's, and are copied for it before anything
else is written there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from codekv.storage.tensors import KVTensors

if TYPE_CHECKING:
    from torch import Tensor

    from codekv.engine.live_sequence import LiveSequence


class ParkedSlots(KVTensors):
    """Keys and values of a parked sequence; can be read, not written.

    Attributes:
        shared: Slots before this one are the trunk's.
    """

    def __init__(self, trunk: Trunk, shared: int, length: int) -> None:
        """Copy slots [shared, length) out of a trunk."""
        self._trunk = trunk
        self.shapes = trunk.kv.shapes
        self.shared = shared
        self.capacity = length
        self.keys, self.values = trunk.copies(shared, length)

    def read(self, layer: int, start: int, stop: int) -> tuple[Tensor, Tensor]:
        """Keys and values in slots [start, stop): views, or copies across the seam."""
        keys, values = self.keys[layer], self.values[layer]
        first, last = max(start - self.shared, 0), max(stop - self.shared, 0)
        own = keys[:, first:last], values[:, first:last]
        if start >= self.shared:
            return own
        common = self._trunk.kv.read(layer, start, min(stop, self.shared))
        if stop <= self.shared:
            return common
        both = zip(common, own, strict=True)
        joined = [torch.cat(pair, dim=1) for pair in both]
        return joined[0], joined[1]

    def own_from(self, slot: int) -> None:
        """Copy what is shared from `slot` on, because the trunk will change there."""
        if slot >= self.shared:
            return
        more = self._trunk.copies(slot, self.shared)
        for own, added in zip((self.keys, self.values), more, strict=True):
            for layer, front in enumerate(added):
                own[layer] = torch.cat([front, own[layer]], dim=1)
        self.shared = slot

    def write(
        self, layer: int, start: int, keys_HTD: Tensor, values_HTD: Tensor
    ) -> None:
        """Refuse: a parked sequence has to become active first."""
        raise AssertionError("a parked sequence was written to")

    def grow(self, capacity: int) -> None:
        """Refuse, likewise."""
        raise AssertionError("a parked sequence was grown")


class Trunk:
    """Working tensors in which related sequences take turns.

    At most one of them is active. Every parked one agrees with the tensors' slots up to
    its own `shared`, and that is at most the active one's length.
    """

    def __init__(self, kv: KVTensors) -> None:
        self.kv = kv
        self.active: LiveSequence | None = None
        self.parked: list[LiveSequence] = []

    def copies(self, start: int, stop: int) -> tuple[list[Tensor], list[Tensor]]:
        """Copies of slots [start, stop), by layer: keys, and values."""
        pairs = [self.kv.read(i, start, stop) for i in range(len(self.kv.keys))]
        return [k.clone() for k, _ in pairs], [v.clone() for _, v in pairs]

    def protect(self, slot: int) -> None:
        """Let every parked sequence own its slots from `slot` on."""
        for seq in self.parked:
            slots_of(seq).own_from(slot)

    def park(self, shared: int) -> None:
        """Move the active sequence out; its first slots stay shared."""
        seq = self.active
        if seq is None:
            return
        seq.kv = ParkedSlots(self, min(shared, len(seq)), len(seq))
        # Work that is under way on it must not go on in tensors of another.
        seq.holder = None
        self.active = None
        self.parked.append(seq)

    def activate(self, seq: LiveSequence) -> None:
        """Move a parked sequence in, and the active one out."""
        own = slots_of(seq)
        self.parked.remove(seq)
        self.park(own.shared)
        self.protect(own.shared)
        seq.kv, self.active = self.kv, seq
        seq.reserve(len(seq))
        for layer in range(len(self.kv.keys)):
            self.kv.write(layer, own.shared, own.keys[layer], own.values[layer])

    def leave(self, seq: LiveSequence) -> None:
        """Forget a sequence; the tensors stay while another one shares them."""
        if self.active is seq:
            self.active = None
        else:
            self.parked.remove(seq)
        seq.trunk = None


def slots_of(seq: LiveSequence) -> ParkedSlots:
    """The slots of a sequence that is parked."""
    assert isinstance(seq.kv, ParkedSlots), "the sequence is not parked"
    return seq.kv


def num_shared_bytes(seq: LiveSequence) -> int:
    """Bytes that a sequence would need more if it shared nothing."""
    if not isinstance(seq.kv, ParkedSlots):
        return 0
    per_slot = sum(t.shape[0] * t.shape[2] * t.element_size() for t in _planes(seq.kv))
    return seq.kv.shared * per_slot


def _planes(kv: KVTensors) -> list[Tensor]:
    return [*kv.keys, *kv.values]
