"""Working keys and values of one sequence: pre-allocated, written in place.

Dimension key: L layer, H kv head, T slot, D head width. Knows nothing of models,
positions or blocks; a slot is an index along T.
"""

from __future__ import annotations

import torch
from torch import Tensor


class KVTensors:
    """Keys and values of one sequence, rotated and ready for attention.

    Every layer owns `keys[layer]` and `values[layer]` of shape [H, capacity, D]
    (D may differ between keys and values and between layers). Slots beyond what the
    owner counts as filled hold garbage.
    """

    def __init__(
        self,
        shapes: list[tuple[int, int, int]],
        capacity: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        """Allocate for layers of (num_kv_heads, key_dim, value_dim)."""
        self.shapes = shapes
        self.capacity = capacity
        self.keys = _allocate([(h, k) for h, k, _ in shapes], capacity, dtype, device)
        self.values = _allocate([(h, v) for h, _, v in shapes], capacity, dtype, device)

    @property
    def num_bytes(self) -> int:
        """Memory held, in bytes."""
        return sum(t.numel() * t.element_size() for t in (*self.keys, *self.values))

    def write(
        self, layer: int, start: int, keys_HTD: Tensor, values_HTD: Tensor
    ) -> None:
        """Overwrite slots from `start` on with the given keys and values."""
        stop = start + keys_HTD.shape[1]
        self.keys[layer][:, start:stop] = keys_HTD
        self.values[layer][:, start:stop] = values_HTD

    def read(self, layer: int, start: int, stop: int) -> tuple[Tensor, Tensor]:
        """Views of keys and values in slots [start, stop); not copies."""
        return self.keys[layer][:, start:stop], self.values[layer][:, start:stop]

    def copy_slots(self, source: KVTensors, start: int, stop: int) -> None:
        """Copy slots [start, stop) of `source` into the same slots here."""
        for layer in range(len(self.keys)):
            self.write(layer, start, *source.read(layer, start, stop))

    def grow(self, capacity: int) -> None:
        """Enlarge to `capacity` slots, keeping contents; never shrinks."""
        if capacity <= self.capacity:
            return
        for tensors in (self.keys, self.values):
            for layer, old in enumerate(tensors):
                new = old.new_zeros(old.shape[0], capacity, old.shape[2])
                # An earlier attempt may have run out of memory after this layer.
                new[:, : self.capacity] = old[:, : self.capacity]
                tensors[layer] = new
        self.capacity = capacity


def _allocate(
    shapes: list[tuple[int, int]],
    capacity: int,
    dtype: torch.dtype,
    device: torch.device,
) -> list[Tensor]:
    return [
        torch.zeros(heads, capacity, width, dtype=dtype, device=device)
        for heads, width in shapes
    ]
