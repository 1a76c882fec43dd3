"""How many bits what gets: a policy, and the named ones.

Knows syntax classes as small numbers only; what a class means is
`codekv.structure.classes`' business. The numbers were set by `codekv kv report`;
docs/compression.md shows the measurement.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from codekv.errors import UsageError

NUM_CLASSES = 4
"""Other code, names, indentation, comments: 0 to 3, as tokens are classed."""

PINNED = 0x80
"""Bit of a class byte: keep this token in 16 bit, whatever its class."""

NUM_SINKS = 4
"""Tokens at the start of a sequence that attention leans on; callers pin them."""

LAYOUT_VERSION = 1
"""Part of every fingerprint; raise it when the bytes written change their meaning."""

# The bit widths for which there is a packing.
WIDTHS = (2, 3, 4, 5, 6, 7, 8, 16)


@dataclass(frozen=True, slots=True)
class BitPolicy:
    """Bits per element for every place in a block.

    Attributes:
        key_bits: Per class; 16 means half precision, unquantised.
        value_bits: Per class.
        edge_layers: How many first and how many last layers never get less than
            `edge_bits`.
        num_first: Tokens at the start of a block that stay in 16 bit.
        group: Tokens that share a key channel's scale; a tier of n tokens is cut into
            about n / group even groups.
        min_group: Tiers with fewer tokens get one 8-bit scale per token instead.
        value_group: Value channels that share a token's scale; a width that does not
            divide a layer's value channels falls back to the head's width.
        hadamard: Rotate heads by a Hadamard matrix before quantising keys.
        heads: (layer, kv head) pairs kept in 16 bit.
    """

    name: str
    key_bits: tuple[int, ...]
    value_bits: tuple[int, ...]
    edge_layers: int = 1
    edge_bits: int = 8
    num_first: int = 1
    group: int = 64
    min_group: int = 16
    value_group: int = 64
    hadamard: bool = False
    heads: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        """Refuse widths that no packing exists for."""
        widths = {*self.key_bits, *self.value_bits, self.edge_bits}
        odd = sorted(widths.difference(WIDTHS))
        if odd:
            raise UsageError(f"{self.name}: no packing for {odd} bits; use {WIDTHS}")
        if len(self.key_bits) != NUM_CLASSES or len(self.value_bits) != NUM_CLASSES:
            raise UsageError(f"{self.name}: give bits for {NUM_CLASSES} classes")
        if min(self.group, self.min_group, self.value_group) < 1:
            raise UsageError(f"{self.name}: groups hold at least one element")

    @property
    def fingerprint(self) -> str:
        """Hex digest of all that decides the bytes; the name is not part of it."""
        facts = asdict(self) | {"name": "", "layout": LAYOUT_VERSION}
        text = json.dumps(facts, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON can hold them."""
        values = asdict(self)
        for name in ("key_bits", "value_bits"):
            values[name] = list(values[name])
        values["heads"] = [list(pair) for pair in self.heads]
        return values

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> BitPolicy:
        """Read what `to_dict` wrote.

        Raises:
            UsageError: A field is unknown, missing or of the wrong kind.
        """
        try:
            plain = dict(values)
            for name in ("key_bits", "value_bits"):
                plain[name] = tuple(int(bits) for bits in plain[name])
            heads = plain.get("heads", ())
            plain["heads"] = tuple((int(layer), int(head)) for layer, head in heads)
            return cls(**plain)
        except (TypeError, KeyError, ValueError) as error:
            raise UsageError(f"not a bit policy: {error}") from error


def pin_first(classes: bytes, num_tokens: int = NUM_SINKS) -> bytes:
    """Mark the first tokens of a sequence as 16 bit."""
    pinned = bytes(kind | PINNED for kind in classes[:num_tokens])
    return pinned + classes[num_tokens:]


def uniform(name: str, key: int, value: int, **more: Any) -> BitPolicy:
    """Make a policy that treats every class the same."""
    return BitPolicy(name, (key,) * NUM_CLASSES, (value,) * NUM_CLASSES, **more)


BALANCED = uniform("balanced", 6, 4)
SMALL = uniform("small", 4, 4)
SEED = BitPolicy("seed", (8, 8, 16, 4), (8, 8, 16, 4))
HEADS = uniform("heads", 8, 8)
"""To be used with the important heads of a model in 16 bit; see `with_heads`."""

PRESETS = {policy.name: policy for policy in (BALANCED, SMALL, SEED)}
"""By the names that `kvcache.precision` takes; the other names are plain codecs."""


def with_heads(policy: BitPolicy, heads: tuple[tuple[int, int], ...]) -> BitPolicy:
    """Keep the given (layer, kv head) pairs in 16 bit."""
    return replace(policy, heads=tuple(sorted(heads)))
