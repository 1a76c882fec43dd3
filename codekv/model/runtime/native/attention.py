"""Attention of one token over its own positions, in fixed partitions.

Keys and values are read by lists of slots in the order of positions, so a token of a
tree of drafts, whose ancestors lie scattered, sums what it will sum once they are text.
Parts of 64 positions are joined by rescaling (online softmax: Milakov and Gimelshein,
2018), ranges of 256 are shared out among threads and joined in their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codekv.model.runtime.native.ir import FunctionText, floats
from codekv.model.runtime.native.product import fused
from codekv.model.runtime.native.vectors import (
    constant,
    exponential,
    folded,
    quantise,
    record,
)

if TYPE_CHECKING:
    from codekv.model.runtime.native.attention_shape import AttentionShape
    from codekv.model.runtime.native.target import KernelTarget

PART = 64
"""Positions whose scores are summed before an earlier sum is rescaled; as long as
keys and values of one head stay in the first cache (2 x 16 KB at D = 64)."""

RANGE = 256
"""Positions of one chunk of attention: so many can be shared out among threads."""

# Places of arguments, see `program.py`.
A_QKV, A_STRIDE, A_RANGES, A_KEYS, A_VALUES, A_HEAD, A_SEEN, A_PARTIAL = range(3, 11)
M_PARTIAL, M_RANGES, M_SEEN, M_RECORDS, M_WIDE = range(3, 8)

SEEN_WORDS = 4
"""Per token: positions that lie in slots from 0 on, further ones, where their slots
are listed, and how many there are together."""


def functions(target: KernelTarget, shape: AttentionShape) -> list[FunctionText]:
    """The operations `attend` and `merge`."""
    return [_attend(target, shape), _merge(target, shape)]


def _attend(target: KernelTarget, shape: AttentionShape) -> FunctionText:
    """`attend`: one kv head's queries of one token over one range of its positions.

    A chunk is (token, kv head, range). Writes, per query head, the weighted sum of
    values, the sum of weights and the largest score.
    """
    f = FunctionText("attend", ["ptr %a", "i64 %chunk", "ptr %scratch"])
    f.do(f"%slots = alloca [{PART} x i64], align 64")
    f.do(f"%scores = alloca [{PART} x float], align 64")
    ranges = f.slot("%a", A_RANGES)
    pair = f.let(f"udiv i64 %chunk, {ranges}")
    number = f.let(f"urem i64 %chunk, {ranges}")
    token = f.let(f"udiv i64 {pair}, {shape.kv_heads}")
    head = f.let(f"urem i64 {pair}, {shape.kv_heads}")
    seen = f.at(
        f.slot("%a", A_SEEN, "ptr"), f.let(f"mul i64 {token}, {SEEN_WORDS}"), "i64"
    )
    total = f.slot(seen, 3)
    first = f.let(f"mul i64 {number}, {RANGE}")
    last = f.smaller(f.let(f"add i64 {first}, {RANGE}"), total)
    partial = f.at(
        f.slot("%a", A_PARTIAL, "ptr"),
        f.let(f"mul i64 %chunk, {shape.group * shape.partial}"),
        "float",
    )
    _clear(f, shape, partial)
    query = _query(f, shape, token, head)
    offset = f.let(f"mul i64 {head}, {f.slot('%a', A_HEAD)}")
    keys = f.at(f.slot("%a", A_KEYS, "ptr"), offset, "float")
    values = f.at(f.slot("%a", A_VALUES, "ptr"), offset, "float")
    with f.loop(first, last, PART) as part:
        count = f.smaller(f.let(f"sub i64 {last}, {part.index}"), str(PART))
        _list_slots(f, shape, seen, part.index, count)
        with f.loop("0", str(shape.group)) as one:
            own = f.at(query, f.let(f"mul i64 {one.index}, {shape.head_dim}"), "float")
            into = f.at(
                partial, f.let(f"mul i64 {one.index}, {shape.partial}"), "float"
            )
            _score(f, target, shape, (own, keys, count))
            _add_values(f, target, shape, (into, values, count))
    return f


def _clear(f: FunctionText, shape: AttentionShape, partial: str) -> None:
    with f.loop("0", str(shape.group)) as one:
        place = f.at(partial, f.let(f"mul i64 {one.index}, {shape.partial}"), "float")
        with f.loop("0", str(shape.partial), 8) as lane:
            f.store("<8 x float>", "zeroinitializer", f.at(place, lane.index, "float"))
        top = f.at(place, str(shape.head_dim + 1), "float")
        f.store("float", floats(-1e30), top)


def _query(f: FunctionText, shape: AttentionShape, token: str, head: str) -> str:
    row = f.let(f"mul i64 {token}, {f.slot('%a', A_STRIDE)}")
    place = f.let(f"mul i64 {head}, {shape.group * shape.head_dim}")
    return f.at(f.slot("%a", A_QKV, "ptr"), f.let(f"add i64 {row}, {place}"), "float")


def _list_slots(
    f: FunctionText, shape: AttentionShape, seen: str, first: str, count: str
) -> None:
    """Note where each position of a part lies, in floats from a head's start."""
    straight, listed = f.slot(seen, 0), f.slot(seen, 2, "ptr")
    end = f.let(f"sub i64 {count}, 1")
    with f.loop("0", str(PART)) as lane:
        # Lanes without a position repeat the last one; their weight is zero.
        place = f.let(f"add i64 {first}, {f.smaller(lane.index, end)}")
        below = f.let(f"icmp ult i64 {place}, {straight}")
        further = f.let(f"sub i64 {place}, {straight}")
        further = f.let(f"select i1 {below}, i64 0, i64 {further}")
        other = f.load("i64", f.at(listed, further, "i64"))
        slot = f.let(f"select i1 {below}, i64 {place}, i64 {other}")
        slot = f.let(f"mul i64 {slot}, {shape.head_dim}")
        f.store("i64", slot, f.at("%slots", lane.index, "i64"))


def _score(
    f: FunctionText,
    target: KernelTarget,
    shape: AttentionShape,
    parts: tuple[str, str, str],
) -> None:
    """Products of one query with the part's keys, eight at a time, into `%scores`."""
    query, keys, count = parts
    kind = "<8 x float>"
    vectors = [
        f.load(kind, f.at(query, str(lane), "float"))
        for lane in range(0, shape.head_dim, 8)
    ]
    scale = constant(shape.head_dim**-0.5)
    with f.loop("0", count, 8) as eight:
        sums = []
        for lane in range(8):
            number = f.let(f"add i64 {eight.index}, {lane}")
            slot = f.load("i64", f.at("%slots", number, "i64"))
            key = f.at(keys, slot, "float")
            total = ""
            for place, vector in enumerate(vectors):
                numbers = f.load(kind, f.at(key, str(8 * place), "float"))
                total = (
                    fused(f, target, 8, (vector, numbers, total))
                    if total
                    else f.let(f"fmul {kind} {vector}, {numbers}")
                )
            sums.append(total)
        scores = f.let(f"fmul {kind} {_across(f, sums)}, {scale}")
        f.store(kind, scores, f.at("%scores", eight.index, "float"))


def _across(f: FunctionText, rows: list[str]) -> str:
    """Sum each of eight vectors; lane i of the result is the sum of vector i."""
    kind = "<8 x float>"

    def shuffled(left: str, right: str, places: list[int]) -> str:
        order = ", ".join(f"i32 {place}" for place in places)
        return f.let(
            f"shufflevector {kind} {left}, {kind} {right}, <8 x i32> <{order}>"
        )

    def paired(left: str, right: str) -> str:
        even = shuffled(left, right, [0, 2, 8, 10, 4, 6, 12, 14])
        odd = shuffled(left, right, [1, 3, 9, 11, 5, 7, 13, 15])
        return f.let(f"fadd {kind} {even}, {odd}")

    for _ in range(2):
        rows = [
            paired(rows[place], rows[place + 1]) for place in range(0, len(rows), 2)
        ]
    low = shuffled(rows[0], rows[1], [0, 1, 2, 3, 8, 9, 10, 11])
    high = shuffled(rows[0], rows[1], [4, 5, 6, 7, 12, 13, 14, 15])
    return f.let(f"fadd {kind} {low}, {high}")


def _add_values(
    f: FunctionText,
    target: KernelTarget,
    shape: AttentionShape,
    parts: tuple[str, str, str],
) -> None:
    """Turn scores into weights and add the weighted values to one head's sum."""
    into, values, count = parts
    kind, dim = "<8 x float>", shape.head_dim
    lowest = constant(-1e30)
    lanes = f.let(
        "add <8 x i64> zeroinitializer, "
        "<i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>"
    )
    bound = f.splat(8, "i64", count)

    def valid(start: str) -> str:
        places = f.let(f"add <8 x i64> {f.splat(8, 'i64', start)}, {lanes}")
        return f.let(f"icmp ult <8 x i64> {places}, {bound}")

    with f.loop("0", count, 8, [(kind, lowest)]) as loop:
        scores = f.load(kind, f.at("%scores", loop.index, "float"))
        inside = valid(loop.index)
        scores = f.let(f"select <8 x i1> {inside}, {kind} {scores}, {kind} {lowest}")
        more = f.let(f"fcmp ogt {kind} {scores}, {loop.values[0]}")
        loop.carry(
            [f.let(f"select <8 x i1> {more}, {kind} {scores}, {kind} {loop.values[0]}")]
        )
    top = folded(f, loop.values[0], 8, "max")
    before = f.load("float", f.at(into, str(dim + 1), "float"))
    higher = f.let(f"fcmp ogt float {top}, {before}")
    top = f.let(f"select i1 {higher}, float {top}, float {before}")
    tops = f.splat(8, "float", top)
    gap = f.let(f"fsub {kind} {f.splat(8, 'float', before)}, {tops}")
    rescale = exponential(f, target, gap, 8)
    with f.loop("0", count, 8, [(kind, "zeroinitializer")]) as loop:
        place = f.at("%scores", loop.index, "float")
        weights = f.let(f"fsub {kind} {f.load(kind, place)}, {tops}")
        weights = exponential(f, target, weights, 8)
        inside = valid(loop.index)
        weights = f.let(
            f"select <8 x i1> {inside}, {kind} {weights}, {kind} zeroinitializer"
        )
        f.store(kind, weights, place)
        loop.carry([f.let(f"fadd {kind} {loop.values[0]}, {weights}")])
    total = folded(f, loop.values[0], 8)
    factor = f.let(f"extractelement {kind} {rescale}, i32 0")
    place = f.at(into, str(dim), "float")
    old = f.let(f"fmul float {f.load('float', place)}, {factor}")
    f.store("float", f.let(f"fadd float {old}, {total}"), place)
    f.store("float", top, f.at(into, str(dim + 1), "float"))
    _weigh_values(f, target, (into, values, count), rescale, dim)


def _weigh_values(
    f: FunctionText,
    target: KernelTarget,
    parts: tuple[str, str, str],
    rescale: str,
    dim: int,
) -> None:
    """Rescale one head's sum and add the part's weighted values in their order."""
    into, values, count = parts
    kind = "<8 x float>"
    starts = []
    for lane in range(0, dim, 8):
        old = f.load(kind, f.at(into, str(lane), "float"))
        starts.append((kind, f.let(f"fmul {kind} {old}, {rescale}")))
    with f.loop("0", count, carried=starts) as loop:
        weight = f.load("float", f.at("%scores", loop.index, "float"))
        weight = f.splat(8, "float", weight)
        slot = f.load("i64", f.at("%slots", loop.index, "i64"))
        value = f.at(values, slot, "float")
        loop.carry(
            [
                fused(
                    f,
                    target,
                    8,
                    (f.load(kind, f.at(value, str(8 * place), "float")), weight, sum_),
                )
                for place, sum_ in enumerate(loop.values)
            ]
        )
    for place, total in enumerate(loop.values):
        f.store(kind, total, f.at(into, str(8 * place), "float"))


def _merge(target: KernelTarget, shape: AttentionShape) -> FunctionText:
    """`merge`: join the ranges of token `chunk` in their order, and round to int8."""
    f = FunctionText("merge", ["ptr %a", "i64 %chunk", "ptr %scratch"])
    dim = shape.head_dim
    ranges = f.slot("%a", M_RANGES)
    seen = f.at(
        f.slot("%a", M_SEEN, "ptr"), f.let(f"mul i64 %chunk, {SEEN_WORDS}"), "i64"
    )
    rounded = f.let(f"add i64 {f.slot(seen, 3)}, {RANGE - 1}")
    own = f.let(f"udiv i64 {rounded}, {RANGE}")
    step = shape.group * shape.partial
    with f.loop("0", str(shape.heads)) as head:
        kv_head = f.let(f"udiv i64 {head.index}, {shape.group}")
        inside = f.let(f"urem i64 {head.index}, {shape.group}")
        pair = f.let(f"mul i64 %chunk, {shape.kv_heads}")
        pair = f.let(f"add i64 {pair}, {kv_head}")
        place = f.let(f"mul i64 {f.let(f'mul i64 {pair}, {ranges}')}, {step}")
        place = f.let(f"add i64 {place}, {f.let(f'mul i64 {inside}, {shape.partial}')}")
        first = f.at(f.slot("%a", M_PARTIAL, "ptr"), place, "float")
        into = f.at("%scratch", f.let(f"mul i64 {head.index}, {dim}"), "float")
        _join(f, target, shape, (first, own, into))
    blocks = shape.heads * dim // 32
    with f.loop("0", str(blocks)) as loop:
        value = f.load("<32 x float>", f.at("%scratch", loop.index, "<32 x float>"))
        places = (
            record(f, place, "%chunk", str(blocks), loop.index)
            for place in (M_RECORDS, M_WIDE)
        )
        quantise(f, value, *places)
    return f


def _join(
    f: FunctionText,
    target: KernelTarget,
    shape: AttentionShape,
    parts: tuple[str, str, str],
) -> None:
    """One head's ranges, `own` of them from `first` on, become its mean of values."""
    first, own, into = parts
    kind, dim = "<8 x float>", shape.head_dim
    step = shape.group * shape.partial
    with f.loop("0", own, carried=[("float", floats(-1e30))]) as loop:
        part = f.at(first, f.let(f"mul i64 {loop.index}, {step}"), "float")
        top = f.load("float", f.at(part, str(dim + 1), "float"))
        more = f.let(f"fcmp ogt float {top}, {loop.values[0]}")
        loop.carry([f.let(f"select i1 {more}, float {top}, float {loop.values[0]}")])
    top = loop.values[0]
    zero = (kind, "zeroinitializer")
    carried = [("float", floats(0.0)), *[zero] * (dim // 8)]
    with f.loop("0", own, carried=carried) as loop:
        part = f.at(first, f.let(f"mul i64 {loop.index}, {step}"), "float")
        gap = f.load("float", f.at(part, str(dim + 1), "float"))
        gap = f.let(f"fsub float {gap}, {top}")
        factors = exponential(f, target, f.splat(8, "float", gap), 8)
        factor = f.let(f"extractelement {kind} {factors}, i32 0")
        weight = f.load("float", f.at(part, str(dim), "float"))
        weight = f.let(f"fmul float {weight}, {factor}")
        sums = [f.let(f"fadd float {loop.values[0]}, {weight}")]
        for number, old in enumerate(loop.values[1:]):
            value = f.load(kind, f.at(part, str(8 * number), "float"))
            sums.append(fused(f, target, 8, (value, factors, old)))
        loop.carry(sums)
    below = f.splat(8, "float", loop.values[0])
    for number, value in enumerate(loop.values[1:]):
        share = f.let(f"fdiv {kind} {value}, {below}")
        f.store(kind, share, f.at(into, str(8 * number), "float"))
