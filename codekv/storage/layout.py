"""Where every element of an encoded block is, from shapes, classes and policy alone.

Both directions of the codec follow the same layout, so a header need not list it and
a hostile header cannot lie about it. Rows are tokens in tier order, columns are
channels in layer and head order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING

from codekv.storage import bits
from codekv.storage.presets import NUM_CLASSES, PINNED, BitPolicy

if TYPE_CHECKING:
    from collections.abc import Iterator

Shapes = tuple[tuple[int, int, int], ...]
"""Per layer (num_kv_heads, key_dim, value_dim)."""

# Bits of a value kept as float16, without codes or scales.
HALF = 16


@dataclass(frozen=True, slots=True)
class Section:
    """A rectangle of one matrix whose elements are stored alike.

    Attributes:
        num_groups: Key scales are per group of consecutive rows and per column;
            0 means scales per row and per `span` columns.
        span: Columns that share a row's scale; 0 where scales are per column.
        width: Bits per element; 16 means half precision without scales.
        offset: Of the first element among those of its width.
        meta: Of the first scale among all scales.
    """

    row: int
    num_rows: int
    column: int
    num_columns: int
    width: int
    num_groups: int
    span: int
    offset: int
    meta: int

    @property
    def num_elements(self) -> int:
        """Elements in the rectangle."""
        return self.num_rows * self.num_columns

    @property
    def num_scales(self) -> int:
        """Scales (and as many minima) that the rectangle needs."""
        if self.width == HALF:
            return 0
        if self.span:
            return self.num_elements // self.span
        return self.num_groups * self.num_columns


@dataclass(frozen=True, slots=True)
class Matrix:
    """All keys, or all values, of a block: [tokens, channels of all layers].

    Attributes:
        order: Token of every row, or None where rows are in token order.
    """

    num_columns: int
    order: tuple[int, ...] | None
    sections: tuple[Section, ...]


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """An encoded block's plan.

    Attributes:
        widths: (width, number of elements) in the order the planes are written.
        num_scales: Scales of both matrices.
    """

    num_tokens: int
    keys: Matrix
    values: Matrix
    widths: tuple[tuple[int, int], ...]
    num_scales: int

    @property
    def plane_bytes(self) -> tuple[int, ...]:
        """Size of every plane: scales and minima first, then one per width."""
        return (self.num_scales * 4,) + tuple(
            num * 2 if width == HALF else bits.packed_bytes(num, width)
            for width, num in self.widths
        )


class _Cursor:
    """Hands out offsets."""

    def __init__(self) -> None:
        self.elements: dict[int, int] = {}
        self.scales = 0

    def place(self, cell: Section) -> Section:
        offset = self.elements.get(cell.width, 0)
        self.elements[cell.width] = offset + cell.num_elements
        meta = self.scales
        self.scales += cell.num_scales
        return Section(
            cell.row,
            cell.num_rows,
            cell.column,
            cell.num_columns,
            cell.width,
            cell.num_groups,
            cell.span,
            offset,
            meta,
        )


def make_layout(shapes: Shapes, classes: bytes, policy: BitPolicy) -> BlockLayout:
    """Plan a block; pure. Class bytes beyond the known classes count as class 0."""
    return _make_layout(shapes, classes.translate(_alike(policy)), policy)


@lru_cache(maxsize=256)
def _make_layout(shapes: Shapes, classes: bytes, policy: BitPolicy) -> BlockLayout:
    cursor = _Cursor()
    keys = _matrix(shapes, classes, policy, cursor, is_key=True)
    values = _matrix(shapes, classes, policy, cursor, is_key=False)
    widths = tuple(sorted(cursor.elements.items(), reverse=True))
    return BlockLayout(len(classes), keys, values, widths, cursor.scales)


@lru_cache(maxsize=64)
def _alike(policy: BitPolicy) -> bytes:
    """Map every class byte to the first class with the same bits.

    Blocks that differ only in classes the policy does not tell apart then share a
    layout, which makes remembering layouts worth it.
    """
    pairs = list(zip(policy.key_bits, policy.value_bits, strict=True))
    first = [pairs.index(pair) for pair in pairs]
    known = bytes(first) + bytes([first[0]]) * (PINNED - NUM_CLASSES)
    return known + bytes([PINNED]) * PINNED


def _matrix(
    shapes: Shapes, classes: bytes, policy: BitPolicy, cursor: _Cursor, *, is_key: bool
) -> Matrix:
    tiers = _tiers(classes, policy, is_key=is_key)
    columns = tuple(_columns(shapes, policy, is_key=is_key))
    sections: list[Section] = []
    row = 0
    for tier, tokens in tiers:
        for num_rows, num_groups in _cut(len(tokens), tier, policy, is_key=is_key):
            for column, num_columns, least, span in columns:
                width = max(tier, least)
                cell = Section(
                    row,
                    num_rows,
                    column,
                    num_columns,
                    # Rows without a group are the fallback: 8 bit, a scale per row.
                    width if num_groups or not is_key else max(width, 8),
                    num_groups,
                    0 if num_groups else span,
                    0,
                    0,
                )
                sections.append(cursor.place(cell))
            row += num_rows
    order = [token for _, tokens in tiers for token in tokens]
    in_order = order == list(range(len(classes)))
    num_columns = sum(span[1] for span in columns)
    return Matrix(num_columns, None if in_order else tuple(order), tuple(sections))


def _tiers(
    classes: bytes, policy: BitPolicy, *, is_key: bool
) -> list[tuple[int, list[int]]]:
    """Tokens by bits, most bits first; first tokens and pinned ones at 16."""
    per_class = policy.key_bits if is_key else policy.value_bits
    tiers: dict[int, list[int]] = {}
    for token, kind in enumerate(classes):
        pinned = token < policy.num_first or kind & PINNED
        width = HALF if pinned else per_class[kind]
        tiers.setdefault(width, []).append(token)
    return sorted(tiers.items(), reverse=True)


def _cut(
    num_rows: int, tier: int, policy: BitPolicy, *, is_key: bool
) -> Iterator[tuple[int, int]]:
    """Cut a tier's rows into (rows, groups); groups 0 where scales are per row."""
    if tier == HALF or not is_key or num_rows < policy.min_group:
        yield num_rows, 0
        return
    num_groups = max(1, round(num_rows / policy.group))
    size, num_larger = divmod(num_rows, num_groups)
    if num_larger:
        yield num_larger * (size + 1), num_larger
    if num_groups > num_larger:
        yield (num_groups - num_larger) * size, num_groups - num_larger


def _columns(
    shapes: Shapes, policy: BitPolicy, *, is_key: bool
) -> Iterator[tuple[int, int, int, int]]:
    """Runs of channels treated alike: (start, number, least bits, scale's span)."""
    kinds: list[tuple[int, int, int]] = []
    important = set(policy.heads)
    for layer, (num_heads, key_dim, value_dim) in enumerate(shapes):
        is_edge = min(layer, len(shapes) - 1 - layer) < policy.edge_layers
        least = policy.edge_bits if is_edge else 0
        dim = key_dim if is_key else value_dim
        kept = [(layer, head) in important for head in range(num_heads)]
        span = _span(num_heads, dim, policy.value_group, is_whole=not any(kept))
        for is_kept in kept:
            kinds.append((dim, HALF if is_kept else least, dim if is_key else span))
    start = 0
    for (least, span), run in groupby(kinds, key=lambda kind: kind[1:]):
        num = sum(kind[0] for kind in run)
        yield start, num, least, span
        start += num


def _span(num_heads: int, dim: int, wanted: int, *, is_whole: bool) -> int:
    """Value channels per scale: `wanted` where it tiles a layer or a head."""
    tiles_layer = is_whole and (num_heads * dim) % wanted == 0 and wanted % dim == 0
    return wanted if tiles_layer or dim % wanted == 0 else dim
