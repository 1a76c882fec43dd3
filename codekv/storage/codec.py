"""Quantise a block's keys and values by syntax class, and back.

Keys get one scale per channel over a group of tokens of one tier, values one scale
per token over a group of channels (KIVI, Liu et al., 2024; on un-rotated keys:
KVQuant, Hooper et al., 2024). All layers and heads are handled at once. A block is
quantised once, from its originals. Knows nothing of files or of what a class means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from codekv.errors import BlockFormatError
from codekv.storage import bits
from codekv.storage.encoded import EncodedBlock, Planes
from codekv.storage.hadamard import can_rotate, rotate_heads
from codekv.storage.layout import (
    HALF,
    BlockLayout,
    Matrix,
    Section,
    Shapes,
    make_layout,
)

if TYPE_CHECKING:
    from codekv.storage.presets import BitPolicy

# As in the block file: twice the longest context.
MAX_TOKENS = 1 << 16
# A 70B model has 163,840 key and value channels.
MAX_CHANNELS = 1 << 20
# Sizes stay within 32-bit arithmetic of the kernels.
MAX_ELEMENTS = 1 << 31
_SMALLEST_SCALE = 2.0**-14  # below this, half precision loses digits
_LARGEST_HALF = 65504.0


class ClassCodec:
    """A `Codec` that follows a `BitPolicy`; immutable, thread-safe."""

    def __init__(self, policy: BitPolicy) -> None:
        """Make a codec; its blocks can be read by codecs of an equal policy."""
        self.policy = policy
        self.name = policy.name
        self.fingerprint = f"class-{policy.fingerprint}"

    def encode(self, planes: Planes, classes: bytes) -> EncodedBlock:
        """Quantise a block once, from its original values.

        Args:
            planes: Per layer float [H, T, D]; not mutated.
            classes: One byte per token; `PINNED` may be set on any.
        """
        shapes = tuple((k.shape[0], k.shape[2], v.shape[2]) for k, v in planes)
        layout = make_layout(shapes, classes, self.policy)
        keys = self._turn(_gather([pair[0] for pair in planes]), shapes)
        values = _gather([pair[1] for pair in planes])
        pieces: dict[int, list[Tensor]] = {width: [] for width, _ in layout.widths}
        scales: list[Tensor] = []
        minima: list[Tensor] = []
        for matrix, data in ((layout.keys, keys), (layout.values, values)):
            rows = _in_tier_order(data, matrix)
            for section in matrix.sections:
                part = _rectangle(rows, section)
                if section.width == HALF:
                    pieces[HALF].append(_to_half(part).view(-1))
                    continue
                scale, minimum = _ranges(part, section)
                codes = _quantise(part, section, scale, minimum)
                pieces[section.width].append(codes.view(-1))
                scales.append(scale.view(-1))
                minima.append(minimum.view(-1))
        meta = torch.cat([torch.empty(0, dtype=torch.float16), *scales, *minima])
        packed = [_pack(pieces[width], width) for width, _ in layout.widths]
        header = {
            "policy": self.policy.fingerprint,
            "shapes": [list(shape) for shape in shapes],
            "classes": classes,
        }
        return EncodedBlock(header, [meta.view(torch.uint8), *packed])

    def decode(self, encoded: EncodedBlock) -> Planes:
        """Make new float32 tensors; views of one buffer for all layers.

        Raises:
            BlockFormatError: The header does not fit the planes or this codec.
        """
        shapes, layout = read_plan(encoded, self.policy)
        meta = encoded.planes[0].view(torch.float16).to(torch.float32)
        scales, minima = meta[: layout.num_scales], meta[layout.num_scales :]
        plain = {
            width: _unpack(plane, num, width)
            for (width, num), plane in zip(
                layout.widths, encoded.planes[1:], strict=True
            )
        }
        restored = []
        for matrix in (layout.keys, layout.values):
            rows = torch.empty(layout.num_tokens, matrix.num_columns)
            for section in matrix.sections:
                _restore(_rectangle(rows, section), section, plain, (scales, minima))
            restored.append(_in_token_order(rows, matrix))
        keys, values = self._turn(restored[0], shapes), restored[1]
        return _scatter(keys, values, shapes)

    def _turn(self, keys_TC: Tensor, shapes: Shapes) -> Tensor:
        dims = {shape[1] for shape in shapes}
        if not self.policy.hadamard or len(dims) != 1:
            return keys_TC
        dim = dims.pop()
        return rotate_heads(keys_TC, dim) if can_rotate(dim) else keys_TC


def read_plan(
    encoded: EncodedBlock, policy: BitPolicy, *, is_whole: bool = True
) -> tuple[Shapes, BlockLayout]:
    """Read a header and plan its block.

    Args:
        encoded: From anywhere.
        policy: That must have written it.
        is_whole: Whether the planes must have the sizes of a decodable block.

    Raises:
        BlockFormatError: The block breaks a rule.
    """
    header = encoded.header
    if header.get("policy") != policy.fingerprint:
        raise BlockFormatError(f"block was not written by policy {policy.name}")
    shapes, classes = _shapes(header.get("shapes")), header.get("classes")
    if not isinstance(classes, bytes) or not 0 < len(classes) <= MAX_TOKENS:
        raise BlockFormatError("block's classes are not one byte per token")
    if len(classes) * sum(h * (k + v) for h, k, v in shapes) > MAX_ELEMENTS:
        raise BlockFormatError("block has too many elements")
    layout = make_layout(shapes, classes, policy)
    if any(p.dtype != torch.uint8 or p.dim() != 1 for p in encoded.planes):
        raise BlockFormatError("planes are not flat bytes")
    sizes = tuple(plane.numel() for plane in encoded.planes)
    if is_whole and sizes != layout.plane_bytes:
        raise BlockFormatError(
            f"planes hold {sizes} bytes where {layout.plane_bytes} are due"
        )
    return shapes, layout


def _shapes(value: object) -> Shapes:
    if not isinstance(value, list) or not value:
        raise BlockFormatError("block's shapes are not a list")
    shapes = []
    for shape in value:
        if not isinstance(shape, list | tuple) or len(shape) != 3:
            raise BlockFormatError("a layer's shape is not three numbers")
        if not all(type(n) is int and 0 < n <= MAX_CHANNELS for n in shape):
            raise BlockFormatError("a layer's shape is out of range")
        shapes.append((shape[0], shape[1], shape[2]))
    if sum(h * (k + v) for h, k, v in shapes) > MAX_CHANNELS:
        raise BlockFormatError("block has too many channels")
    return tuple(shapes)


def _gather(planes_HTD: list[Tensor]) -> Tensor:
    """All layers side by side: float32 [T, C], new."""
    num_tokens = planes_HTD[0].shape[1]
    widths = [plane.shape[0] * plane.shape[2] for plane in planes_HTD]
    out = torch.empty(num_tokens, sum(widths))
    for plane, columns in zip(planes_HTD, out.split(widths, dim=1), strict=True):
        columns.unflatten(1, (plane.shape[0], -1)).copy_(plane.transpose(0, 1))
    return out


def _scatter(keys_TC: Tensor, values_TC: Tensor, shapes: Shapes) -> Planes:
    planes: Planes = []
    key, value = 0, 0
    for num_heads, key_dim, value_dim in shapes:
        next_key, next_value = key + num_heads * key_dim, value + num_heads * value_dim
        planes.append(
            (
                keys_TC[:, key:next_key].unflatten(1, (num_heads, -1)).transpose(0, 1),
                values_TC[:, value:next_value]
                .unflatten(1, (num_heads, -1))
                .transpose(0, 1),
            )
        )
        key, value = next_key, next_value
    return planes


def _in_tier_order(data: Tensor, matrix: Matrix) -> Tensor:
    if matrix.order is None:
        return data
    return data.index_select(0, torch.tensor(matrix.order))


def _in_token_order(rows: Tensor, matrix: Matrix) -> Tensor:
    if matrix.order is None:
        return rows
    return rows.index_select(0, torch.tensor(matrix.order).argsort())


def _rectangle(rows: Tensor, section: Section) -> Tensor:
    """A section's elements as a view: [G, rows, C], or [rows, C / span, span]."""
    part = rows[
        section.row : section.row + section.num_rows,
        section.column : section.column + section.num_columns,
    ]
    if section.num_groups:
        return part.unflatten(0, (section.num_groups, -1))
    return part.unflatten(1, (-1, section.span))


def _ranges(part: Tensor, section: Section) -> tuple[Tensor, Tensor]:
    """Scales and minima in half precision, shaped to broadcast over `part`."""
    dim = 1 if section.num_groups else 2
    minimum = part.amin(dim, keepdim=True)
    span = part.amax(dim, keepdim=True).sub_(minimum)
    scale = span.div_((1 << section.width) - 1).clamp_(min=_SMALLEST_SCALE)
    return _to_half(scale), _to_half(minimum)


def _quantise(part: Tensor, section: Section, scale: Tensor, minimum: Tensor) -> Tensor:
    # Codes are made against the rounded scale and minimum that decoding will see.
    step = scale.to(torch.float32).reciprocal_()
    offset = 0.5 - minimum.to(torch.float32) * step
    largest = (1 << section.width) - 1
    if section.num_groups:
        codes = torch.addcmul(offset, part, step)
    else:
        codes = (part * step).add_(offset)
    codes = codes.clamp_(0, largest + 0.5)
    # Conversion cuts the fraction off, hence the half added above.
    return codes.to(torch.uint8)


def _restore(
    out: Tensor,
    section: Section,
    plain: dict[int, Tensor],
    ranges: tuple[Tensor, Tensor],
) -> None:
    stop = section.offset + section.num_elements
    codes = plain[section.width][section.offset : stop].view(out.shape)
    if section.width == HALF:
        out.copy_(codes)
        return
    last = section.meta + section.num_scales
    shape = (out.shape[0], 1, -1) if section.num_groups else (*out.shape[:2], 1)
    scale, minimum = (part[section.meta : last].view(shape) for part in ranges)
    if section.num_groups:
        torch.addcmul(minimum, codes, scale, out=out)
        return
    # Fusing is slower here: the scale is constant along the innermost dimension.
    torch.mul(codes, scale, out=out)
    out.add_(minimum)


def _to_half(values: Tensor) -> Tensor:
    return values.clamp(-_LARGEST_HALF, _LARGEST_HALF).to(torch.float16).contiguous()


def _pack(pieces: list[Tensor], width: int) -> Tensor:
    flat = torch.cat(pieces) if len(pieces) > 1 else pieces[0]
    if width == HALF:
        return flat.view(torch.uint8)
    short = bits.padded(flat.numel()) - flat.numel()
    if short:
        flat = torch.cat((flat, flat.new_zeros(short)))
    return bits.pack(flat, width)


def _unpack(plane: Tensor, num_elements: int, width: int) -> Tensor:
    if width == HALF:
        return plane.view(torch.float16)
    return bits.unpack(plane, bits.padded(num_elements), width).to(torch.float32)
