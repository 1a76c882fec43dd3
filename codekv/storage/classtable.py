"""The policy calibrated for one model, kept beside it; and names to codecs.

The file is JSON that a user may read. A table of another model, a damaged or a
missing one is no table: `auto` then means `balanced`.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from codekv.errors import StorageError, UsageError
from codekv.files import write_whole
from codekv.storage.codec import ClassCodec
from codekv.storage.plain import PLAIN_NAMES, PlainCodec
from codekv.storage.presets import (
    BALANCED,
    HEADS,
    PRESETS,
    BitPolicy,
    with_heads,
)

if TYPE_CHECKING:
    from pathlib import Path

    from codekv.storage.encoded import Codec

log = logging.getLogger(__name__)

FILE_NAME = "bits.json"
HEADS_FILE = "important_heads.json"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class ClassTable:
    """What calibration found for one model.

    Attributes:
        model: Fingerprint of weights and tokenizer.
        kl_mean: Measured with this policy, in nats.
        heads: The quarter of all (layer, kv head) pairs that looks furthest.
    """

    model: str
    policy: BitPolicy
    kl_mean: float
    bits_per_element: float
    heads: tuple[tuple[int, int], ...] = ()


def save_table(folder: Path, table: ClassTable) -> Path:
    """Write a model's table into its folder, whole or not at all.

    Raises:
        StorageError: The folder cannot be written.
    """
    path = folder / FILE_NAME
    values = {
        "format": _FORMAT,
        "model": table.model,
        "policy": table.policy.to_dict(),
        "kl_mean": table.kl_mean,
        "bits_per_element": table.bits_per_element,
        "heads": [list(pair) for pair in table.heads],
    }
    try:
        write_whole(path, json.dumps(values, indent=1) + "\n")
    except OSError as error:
        raise StorageError(
            f"{path}: the class table cannot be written ({error.strerror}); "
            "precision auto stays balanced"
        ) from error
    return path


def load_table(folder: Path, model: str) -> ClassTable | None:
    """Read a model's table; None where there is none that fits the model."""
    try:
        values: Any = json.loads((folder / FILE_NAME).read_text("utf-8"))
        if values["format"] != _FORMAT or values["model"] != model:
            return None
        return ClassTable(
            model,
            BitPolicy.from_dict(values["policy"]),
            float(values["kl_mean"]),
            float(values["bits_per_element"]),
            tuple((int(layer), int(head)) for layer, head in values["heads"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def shipped_heads(model: str) -> tuple[tuple[int, int], ...]:
    """Important (layer, kv head) pairs of a model of the catalog; empty for others.

    The quarter that looks furthest, over the laboratory's texts (docs/compression.md).
    """
    text = (files("codekv.storage") / HEADS_FILE).read_text("utf-8")
    found = json.loads(text).get(model, ())
    return tuple((int(layer), int(head)) for layer, head in found)


def codec_for(
    precision: str,
    table: ClassTable | None = None,
    heads: tuple[tuple[int, int], ...] = (),
) -> Codec:
    """Make the codec that `kvcache.precision` names.

    Args:
        precision: A value of the option.
        table: The model's calibrated table, for `auto` and `heads`.
        heads: Its important heads, for `heads` without a table.

    Raises:
        UsageError: No codec has this name.
    """
    if precision == "exact":
        return PlainCodec("fp32")
    if precision in PLAIN_NAMES:
        return PlainCodec(precision)
    if precision == "auto":
        return ClassCodec(table.policy if table else BALANCED)
    if precision == "heads":
        important = table.heads if table else heads
        if not important:
            log.warning(
                "kvcache.precision is heads, but nothing is known of this model's "
                "heads: all are kept at 8 bit; `codekv kv report` measures them"
            )
        return ClassCodec(with_heads(HEADS, important))
    if precision not in PRESETS:
        known = ", ".join(("auto", "exact", "heads", *PLAIN_NAMES, *PRESETS))
        raise UsageError(f"no precision is called {precision!r}; known: {known}")
    return ClassCodec(PRESETS[precision])
