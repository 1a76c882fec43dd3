"""KV transfer: working slots to planes that can be stored, and back.

Stored keys are un-rotated (as before RoPE) and without the projection's bias, so a
block can be used at any position and quantises well. All layers are turned in one pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from codekv.engine.live_sequence import LiveSequence
    from codekv.model.runtime.interface import Runtime

Planes = list["tuple[Tensor, Tensor]"]


def read_block(runtime: Runtime, seq: LiveSequence, start: int, stop: int) -> Planes:
    """Un-rotated float32 planes of slots [start, stop), on the CPU; copies."""
    keys, values = [], []
    for layer in range(runtime.spec.num_layers):
        keys_HTD, values_HTD = seq.kv.read(layer, start, stop)
        keys.append(keys_HTD.float())
        values.append(values_HTD.float().cpu().clone())
    rope = runtime.rope
    if rope is not None:
        # Where the keys and the frequencies are; only the result comes to the CPU.
        positions = torch.arange(start, stop, device=keys[0].device)
        keys = _all_layers(keys, lambda k: rope.unrotate(k, positions))
    else:
        keys = [k.clone() for k in keys]
    if runtime.key_bias_LHD is not None:
        for layer, bias_HD in enumerate(runtime.key_bias_LHD):
            keys[layer] = keys[layer] - bias_HD.float()[:, None]
    return [(k.cpu(), v) for k, v in zip(keys, values, strict=True)]


def write_blocks(
    runtime: Runtime,
    seq: LiveSequence,
    parts: Sequence[tuple[int, Planes]],
) -> None:
    """Put planes at the slots (= positions) they begin at; overwrites."""
    device = seq.kv.keys[0].device
    index = torch.tensor(
        [slot for start, p in parts for slot in range(start, start + _length(p))],
        device=device,
    )
    rope = runtime.rope
    turn = rope.turner(index) if rope is not None else None
    for layer in range(runtime.spec.num_layers):
        keys = torch.cat([p[layer][0] for _, p in parts], dim=1).to(device)
        values = torch.cat([p[layer][1] for _, p in parts], dim=1)
        if runtime.key_bias_LHD is not None:
            keys = keys + runtime.key_bias_LHD[layer].float()[:, None]
        _put(seq, layer, index, turn(keys) if turn else keys, values)


def move_slots(
    runtime: Runtime,
    seq: LiveSequence,
    parts: Sequence[tuple[int, int, LiveSequence, int]],
) -> None:
    """Copy slots of live sequences to other slots, turning keys by the difference.

    A rotation by p and one by d are a rotation by p + d, so keys need not be turned
    back in between; a bias inside them is turned with them.

    Args:
        runtime: Knows the rotation.
        seq: Overwritten; may be among the sources.
        parts: (start, stop, source, origin): `seq`'s slots [start, stop) become those
            of `source` from `origin` on.
    """
    if not parts:
        return
    rope, device = runtime.rope, seq.kv.keys[0].device
    turn = None
    if rope is not None and any(start != origin for start, _, _, origin in parts):
        by = [a - origin for a, b, _, origin in parts for _ in range(a, b)]
        turn = rope.turner(torch.tensor(by, device=device), 1.0 / rope.scaling)
    index = torch.tensor(
        [slot for a, b, _, _ in parts for slot in range(a, b)], device=device
    )
    for layer in range(runtime.spec.num_layers):
        taken = [
            source.kv.read(layer, origin, origin + stop - start)
            for start, stop, source, origin in parts
        ]
        # Copies, so that a sequence may be moved within itself.
        keys = torch.cat([part[0] for part in taken], dim=1)
        values = torch.cat([part[1] for part in taken], dim=1)
        _put(seq, layer, index, turn(keys) if turn else keys, values)


def _put(
    seq: LiveSequence, layer: int, index: Tensor, keys: Tensor, values: Tensor
) -> None:
    """Write one layer's slots `index`.

    Layer by layer, because one layer's keys fit into a processor's cache.
    """
    key_store, value_store = seq.kv.keys[layer], seq.kv.values[layer]
    key_store.index_copy_(1, index, keys.to(index.device, key_store.dtype))
    value_store.index_copy_(1, index, values.to(index.device, value_store.dtype))


def _length(planes: Planes) -> int:
    """How many tokens planes hold."""
    return planes[0][0].shape[1]


def slice_planes(planes: Planes, start: int, stop: int) -> Planes:
    """Tokens [start, stop) of a block; views."""
    return [(keys[:, start:stop], values[:, start:stop]) for keys, values in planes]


def _all_layers(keys: list[Tensor], turn: Callable[[Tensor], Tensor]) -> list[Tensor]:
    """Apply a per-token turn to all layers at once where their shapes agree."""
    if len({k.shape for k in keys}) != 1:
        return [turn(k) for k in keys]
    heads = keys[0].shape[0]
    return list(torch.split(turn(torch.cat(keys)), heads))
