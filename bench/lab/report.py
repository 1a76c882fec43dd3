"""The report of `codekv kv report`: parts that are measured, and one dictionary.

Every part can be measured alone, and added to an earlier report of the same model.
"""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import torch

from bench.lab import controls
from bench.lab.attention import important_heads
from bench.lab.scheme import (
    CachedScheme,
    CodecScheme,
    channel_groups,
    hadamard_rows,
    symmetric_rows,
)
from codekv.storage.calibrate import LIMIT, PAIRS, allocate
from codekv.storage.classtable import ClassTable
from codekv.storage.codec import ClassCodec
from codekv.storage.entropy import DiskForm
from codekv.storage.plain import PlainCodec
from codekv.storage.presets import (
    BALANCED,
    PRESETS,
    SMALL,
    BitPolicy,
    uniform,
    with_heads,
)
from codekv.structure.classes import CLASS_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.lab.laboratory import Laboratory
    from bench.lab.scheme import Scheme
    from codekv.storage.entropy import Entropy

SCHEMA = 1
PARTS = ("presets", "cursors", "classes", "controls", "disk")
"""In the order they are measured; `classes` also calibrates."""

TABLE = "table"
"""Where a report keeps the calibrated table."""

_HEADS_SHARE = 0.25
"""At 16 bits instead of 8, a quarter of the heads costs a quarter more bytes."""

_FORMS: tuple[tuple[Entropy, bool], ...] = (
    ("plain", False),
    ("huffman", False),
    ("zstd", False),
    ("zstd", True),
)


def schemes() -> list[Scheme]:
    """Presets and what other engines do, in the order they are shown."""
    rows, channels = symmetric_rows, channel_groups
    turned = hadamard_rows(4, 32)
    return [
        CodecScheme("exact", PlainCodec("fp32")),
        *(CodecScheme(name, ClassCodec(policy)) for name, policy in PRESETS.items()),
        CodecScheme("int8", PlainCodec("int8")),
        CachedScheme("8 bit per row", 8.5, rows(8, 32), rows(8, 32)),
        CachedScheme("4 bit per token", 4.5, rows(4, 32), rows(4, 32)),
        CachedScheme("4 bit per token, Hadamard", 4.5, turned, turned),
        CachedScheme("QuantizedCache", 4.5, channels(4, 64), channels(4, 64)),
    ]


def measure_part(lab: Laboratory, part: str) -> dict[str, Any]:
    """Measure one part; what it adds to a report."""
    return _MEASURES[part](lab)


def model_facts(lab: Laboratory) -> dict[str, Any]:
    """What the numbers of a report belong to."""
    spec = lab.runtime.spec
    return {
        "schema": SCHEMA,
        "model": spec.name,
        "compute": spec.compute,
        "texts": [text.name for text in lab.texts],
        "context_tokens": lab.texts[0].num_context,
        "probe_tokens": len(lab.texts[0].tokens) - lab.texts[0].num_context,
    }


def merge(report: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Add a part; rows of the same name are completed, not repeated."""
    merged = dict(report)
    for key, value in new.items():
        old = merged.get(key)
        if key == "presets" and isinstance(old, list):
            rows = {row["name"]: row for row in old}
            for row in value:
                rows[row["name"]] = rows.get(row["name"], {}) | row
            merged[key] = list(rows.values())
        else:
            merged[key] = value
    return merged


def table_of(report: dict[str, Any], model: str) -> ClassTable | None:
    """The calibrated table of a report, for the model whose fingerprint is given."""
    found = report.get(TABLE)
    if found is None:
        return None
    return ClassTable(
        model,
        BitPolicy.from_dict(found["policy"]),
        found["kl_mean"],
        found["bits_per_element"],
        tuple((layer, head) for layer, head in found["heads"]),
    )


def _presets(lab: Laboratory) -> dict[str, Any]:
    ranked = important_heads(lab.attention[1], _HEADS_SHARE)
    heads = CodecScheme(
        "important heads 16 bit, others 8",
        ClassCodec(with_heads(uniform("heads", 8, 8), ranked)),
    )
    turned = ClassCodec(replace(SMALL, hadamard=True))
    every = [*schemes(), heads, CodecScheme("small, keys rotated by Hadamard", turned)]
    rows = [asdict(lab.measure(scheme)) for scheme in every]
    return {"presets": rows, "heads": [list(pair) for pair in ranked]}


def _cursors(lab: Laboratory) -> dict[str, Any]:
    rows = []
    for name, policy in PRESETS.items():
        whole, lines = lab.same_text(CodecScheme(name, ClassCodec(policy)))
        rows.append({"name": name, "same_text": whole, "same_line": lines})
    total = sum(len(found) for found in lab.cursors.values())
    return {"presets": rows, "cursors": total}


def _classes(lab: Laboratory) -> dict[str, Any]:
    rows, cost = [], {}
    for label, pair, scheme in controls.class_schemes(PAIRS):
        found = lab.measure(scheme)
        rows.append(asdict(found) | {"class": label, "bits": list(pair)})
        if label in CLASS_NAMES:
            cost[CLASS_NAMES.index(label), pair] = found.kl_mean
    joined = b"".join(text.classes for text in lab.texts)
    shares = [joined.count(kind) / len(joined) for kind in range(len(CLASS_NAMES))]
    plain = allocate(cost, shares, LIMIT)
    # Rotating helps models without large key channels and harms nobody's bytes.
    tried = [
        (lab.measure(CodecScheme("auto", ClassCodec(policy))), policy)
        for policy in (plain, replace(plain, hadamard=True))
    ]
    summary, policy = min(tried, key=lambda pair: pair[0].kl_mean)
    heads = important_heads(lab.attention[1], _HEADS_SHARE)
    table = {
        "policy": policy.to_dict(),
        "kl_mean": summary.kl_mean,
        "bits_per_element": summary.bits_per_element,
        "heads": [list(pair) for pair in heads],
    }
    return {
        "classes": rows,
        "shares": dict(zip(CLASS_NAMES, shares, strict=True)),
        TABLE: table,
        "presets": [asdict(summary)],
    }


def _controls(lab: Laboratory) -> dict[str, Any]:
    found = controls.control_schemes(lab.attention[0])
    found += controls.block_schemes(SMALL)
    return {"controls": [asdict(lab.measure(scheme)) for scheme in found]}


def _disk(lab: Laboratory) -> dict[str, Any]:
    rows = []
    for policy in (BALANCED, SMALL):
        encoded = lab.blocks(ClassCodec(policy))
        num_bytes = sum(block.num_bytes for block in encoded)
        num_tokens = sum(text.num_context for text in lab.texts)
        for entropy, difference in _FORMS:
            form = DiskForm(policy, entropy, difference)
            stored = [form.squeeze(block) for block in encoded]
            begin = time.perf_counter()
            for block in stored:
                form.expand(block)
            spent = max(time.perf_counter() - begin, 1e-9)
            rows.append(
                {
                    "name": policy.name,
                    "entropy": entropy,
                    "difference": difference,
                    "share_of_memory": sum(b.num_bytes for b in stored) / num_bytes,
                    "expand_tok_s": num_tokens / spent,
                }
            )
    encode_tok_s, decode_tok_s = lab.speed(ClassCodec(BALANCED))
    speed = {"encode_tok_s": encode_tok_s, "decode_tok_s": decode_tok_s}
    return {"disk": rows, "speed": speed, "threads": torch.get_num_threads()}


_MEASURES: dict[str, Callable[[Laboratory], dict[str, Any]]] = {
    "presets": _presets,
    "cursors": _cursors,
    "classes": _classes,
    "controls": _controls,
    "disk": _disk,
}
