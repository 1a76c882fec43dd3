"""How far a restored context bends what the model says next.

Dimension key: P probe token, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from bench.lab.context import layers, probe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor

    from bench.lab.context import Exact, Text
    from bench.lab.scheme import Scheme
    from codekv.model.runtime.interface import Runtime
    from codekv.storage.tensors import KVTensors


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """One scheme on one text.

    Attributes:
        divergence: Kullback-Leibler divergence [P] of the exact distribution from the
            restored one, in nats.
        is_same: Whether the likeliest token is the same [P].
    """

    num_bytes: int
    num_tokens: int
    divergence: Tensor
    is_same: Tensor


@dataclass(frozen=True, slots=True)
class Summary:
    """One scheme on all texts.

    Attributes:
        kl_mean: In nats.
        same_top: Share of probe tokens whose likeliest token did not change.
        first_divergence: Probe tokens before the likeliest token first changes,
            averaged over texts; a text without a change counts as the probe's length.
    """

    name: str
    bits_per_element: float
    bytes_per_token: float
    kl_mean: float
    kl_p99: float
    same_top: float
    first_divergence: float


def take_reading(
    runtime: Runtime, kv: KVTensors, case: tuple[Text, Exact], scheme: Scheme
) -> Reading:
    """Restore with a scheme into `kv` and probe; `kv` is **overwritten**."""
    text, exact = case
    num_bytes = scheme.restore(runtime, kv, text, exact)
    logits = probe(runtime, kv, text)
    return Reading(
        num_bytes,
        text.num_context,
        divergence(exact, logits),
        exact.logits.argmax(-1) == logits.argmax(-1),
    )


def divergence(exact: Exact, logits_PV: Tensor) -> Tensor:
    """Kullback-Leibler divergence [P] in nats; never below 0.

    The mean shift of the logits is summed apart from the normalisers: both are small,
    so single precision is good to about 1e-6.
    """
    shift_P = torch.linalg.vecdot(exact.probs, exact.logits - logits_PV)
    exact_P, restored_P = exact.logits.logsumexp(-1), logits_PV.logsumexp(-1)
    return (shift_P + restored_P - exact_P).clamp(min=0)


def summarise(runtime: Runtime, name: str, readings: Iterable[Reading]) -> Summary:
    """Put a scheme's readings together."""
    taken = list(readings)
    num_bytes = sum(reading.num_bytes for reading in taken)
    num_tokens = sum(reading.num_tokens for reading in taken)
    spread = torch.cat([reading.divergence for reading in taken])
    same = torch.cat([reading.is_same for reading in taken]).float()
    return Summary(
        name,
        num_bytes * 8 / (num_tokens * elements_per_token(runtime)),
        num_bytes / num_tokens,
        spread.mean().item(),
        spread.quantile(0.99).item(),
        same.mean().item(),
        sum(_first_change(reading.is_same) for reading in taken) / len(taken),
    )


def elements_per_token(runtime: Runtime) -> int:
    """Numbers that one token's keys and values consist of."""
    shapes = runtime.spec.kv_shapes
    return sum(shapes[i][0] * (shapes[i][1] + shapes[i][2]) for i in layers(runtime))


def _first_change(is_same_P: Tensor) -> int:
    changed = (~is_same_P).nonzero()
    return int(changed[0]) if changed.numel() else is_same_P.numel()
