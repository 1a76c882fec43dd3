"""The policy calibrated for one model, kept beside it; and names to codecs.

The file is JSON that a user may read. A table of another model, a damaged or a
missing one is no table: `auto` then means `balanced`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codekv.errors import StorageError, UsageError
from codekv.files import write_whole
from codekv.storage.codec import ClassCodec
from codekv.storage.plain import PLAIN_NAMES, PlainCodec
from codekv.storage.presets import BALANCED, PRESETS, BitPolicy

if TYPE_CHECKING:
    from pathlib import Path

    from codekv.storage.encoded import Codec

FILE_NAME = "bits.json"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class ClassTable:
    """What calibration found for one model.

    Attributes:
        model: Fingerprint of weights and tokenizer.
        kl_mean: Measured with this policy, in nats.
        heads: (layer, kv head) pairs that look furthest, most important first; a
            policy keeps as many of them in 16 bit as it wants.
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


def codec_for(precision: str, table: ClassTable | None = None) -> Codec:
    """Make the codec that `kvcache.precision` names.

    Args:
        precision: A value of the option.
        table: The model's calibrated table, for `auto`.

    Raises:
        UsageError: No codec has this name.
    """
    if precision == "exact":
        return PlainCodec("fp32")
    if precision in PLAIN_NAMES:
        return PlainCodec(precision)
    if precision == "auto":
        return ClassCodec(table.policy if table else BALANCED)
    if precision not in PRESETS:
        known = ", ".join(("auto", "exact", *PLAIN_NAMES, *PRESETS))
        raise UsageError(f"no precision is called {precision!r}; known: {known}")
    return ClassCodec(PRESETS[precision])
