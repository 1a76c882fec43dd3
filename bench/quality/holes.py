"""Holes cut into real code: where shaping an answer goes wrong most easily.

Each hole is a node of the author's own syntax tree, so the right answer is known and
the file is whole again with it. What a model may plausibly write into a hole is made
from the author's text and what stands around it. No language is named here: nodes are
told by what their grammars agree to call them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.traces.cursors import Cursor
from codekv.structure.errors import num_errors
from codekv.structure.lines import line_at, line_end, line_start
from codekv.structure.parser import Parser
from codekv.text.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from codekv.structure.parser import SyntaxTree

HOLES = ("operand", "argument", "string-part", "chain-link", "block-tail")
MOST_REPEATED = 8
"""Bytes of its neighbours that an answer may begin or end with by accident."""

MAX_HOLE = 120
"""Bytes of a hole in one line; longer ones are no single answer."""

_LEAST_STRING = 8
"""Shorter strings have no half worth asking for."""

_MAX_TAIL = 3
"""Statements of a block's tail: as many as one answer may hold."""

_MAX_AROUND = 200
"""Bytes of the text around a hole that its answer is compared with."""

_CLOSERS = (b")", b"}", b"]", b"))", b"})", b'"', b'")', b"}}", b";")
"""What a model writes too much at an end."""


@dataclass(frozen=True, slots=True)
class Damage:
    """What taking an answer did to a file that it must never do."""

    parses_worse: bool
    repeats: bool
    drops: bool

    def __bool__(self) -> bool:
        return self.parses_worse or self.repeats or self.drops


def holes(tree: SyntaxTree) -> Iterator[Cursor]:
    """Cut every hole of every kind into one file, in the file's order."""
    if tree.tree is None or num_errors(tree):
        return
    waiting = [tree.tree.root_node]
    while waiting:
        node = waiting.pop()
        for kind, start, end in _holes_of(node, tree.snapshot.data):
            yield _cursor(kind, start, end, tree.snapshot)
        waiting.extend(reversed(node.children))


def _cursor(kind: str, start: int, end: int, snapshot: Snapshot) -> Cursor:
    data = snapshot.data
    left = data[:start] + data[end:]
    wanted = data[start:end]
    uri, language = snapshot.uri, snapshot.language
    return Cursor(kind, uri, language, left, start, wanted, data)


_Hole = tuple[str, int, int]


def _holes_of(node: Node, data: bytes) -> Iterator[_Hole]:
    kind = node.type
    if "binary" in kind or "boolean" in kind:
        yield from _operands(node, data)
    elif "argument" in kind and "type" not in kind:
        yield from _arguments(node)
    elif "interpolation" in kind or "substitution" in kind:
        first = node.named_children[:1]
        yield from (
            ("string-part", n.start_byte, n.end_byte) for n in first if _fits(n)
        )
    elif "string_content" in kind or "string_fragment" in kind:
        yield from _string_halves(node, data)
    elif kind.endswith(("block", "body", "compound_statement")):
        yield from _tails(node, data)


def _operands(node: Node, data: bytes) -> Iterator[_Hole]:
    sides = [node.child_by_field_name("left"), *node.named_children[-1:]]
    for side in sides:
        if side is not None and _fits(side):
            own = line_start(data, side.start_byte)
            is_line = not data[own : side.start_byte].strip()
            name = "chain-link" if is_line else "operand"
            yield name, side.start_byte, side.end_byte


def _arguments(node: Node) -> Iterator[_Hole]:
    for child in node.named_children:
        if _fits(child) and "comment" not in child.type:
            yield "argument", child.start_byte, child.end_byte


def _string_halves(node: Node, data: bytes) -> Iterator[_Hole]:
    """The second half of a string's text."""
    start, end = node.start_byte, node.end_byte
    half = start + (end - start) // 2
    is_text = data[half : half + 1] < b"\x80" and b"\\" not in data[start:end]
    if _LEAST_STRING <= end - start <= MAX_HOLE and _fits(node) and is_text:
        yield "string-part", half, end


def _tails(node: Node, data: bytes) -> Iterator[_Hole]:
    """The last statements of a block, the header of the block staying."""
    inner = [child for child in node.named_children if "comment" not in child.type]
    for count in range(1, min(_MAX_TAIL, len(inner)) + 1):
        start, end = inner[-count].start_byte, inner[-1].end_byte
        end += data[end : end + 1] == b";"
        own = data[line_start(data, start) : start]
        if not own.strip() and not data[end : line_end(data, end)].strip():
            yield "block-tail", start, end


def _fits(node: Node) -> bool:
    size = node.end_byte - node.start_byte
    return 0 < size <= MAX_HOLE and node.start_point[0] == node.end_point[0]


def writings(cursor: Cursor) -> Iterator[tuple[str, bytes]]:
    """What a model may write into a hole: the truth, and what goes wrong after it.

    A name tells what the text is; `half` and `half-rest` break off at the length
    limit.
    """
    data, at, truth = cursor.data, cursor.cursor_byte, cursor.wanted
    end, own = line_end(data, at), line_start(data, at)
    rest, typed = data[at:end], data[own:at]
    below = data[end + 1 :].split(b"\n")[:3]
    above = line_at(data, own - 1) if own else b""
    behind = rest + b"\n" + b"\n".join(below)
    yield "truth", truth + b"\n"
    yield "rest", truth + rest + b"\n"
    yield "half-rest", truth + rest[: (len(rest) + 1) // 2]
    yield "rest-and-below", truth + behind + b"\n"
    yield "below", truth + b"\n" + b"\n".join(below) + b"\n"
    one_line = rest.rstrip() + b" " + b" ".join(b" ".join(below).split())
    yield "on-one-line", truth + one_line + b"\n"
    for closers in _CLOSERS:
        yield "closers", truth + closers + b"\n"
    yield "echo", typed.lstrip() + truth + b"\n"
    yield "twice", (truth + b"\n") * 3
    yield "above-again", above.strip() + b"\n"
    yield "below-again", below[0].strip() + b"\n"
    yield "half", truth[: (len(truth) + 1) // 2]


def damage(cursor: Cursor, start: int, end: int, text: bytes) -> Damage:
    """Judge an answer: `text` in place of `[start, end)` of the file with the hole."""
    data = cursor.data
    after = data[:start] + text + data[end:]
    allowed = max(_errors(cursor, data), _errors(cursor, cursor.whole))
    return Damage(
        _errors(cursor, after) > allowed,
        _repeats(cursor, text, end),
        not _is_part(data[start:end], text),
    )


def _errors(cursor: Cursor, data: bytes) -> int:
    snapshot = Snapshot(cursor.uri, 0, cursor.language, data)
    return num_errors(Parser().parse(snapshot, None))


def _is_part(replaced: bytes, text: bytes) -> bool:
    """Whether all that is replaced stands in the text again, in its order."""
    left = iter(text)
    return all(byte in left for byte in b"".join(replaced.split()))


def _repeats(cursor: Cursor, text: bytes, end: int) -> bool:
    """Whether the text's end is what follows, or its beginning what stands before."""
    data = cursor.data
    # A statement may be like the one above it, so the cursor's own line counts alone.
    own = line_start(data, cursor.cursor_byte)
    before = b" ".join(data[own : cursor.cursor_byte].split())
    behind = b" ".join(data[end : end + _MAX_AROUND].split())
    said = b" ".join(text.split())
    wanted = b" ".join(cursor.wanted.split())
    tail, head = _overlap(said, behind), _overlap(before, said)
    is_tail = tail > max(MOST_REPEATED, _overlap(wanted, behind))
    return is_tail or head > max(MOST_REPEATED, _overlap(before, wanted))


def _overlap(text: bytes, follows: bytes) -> int:
    sizes = range(min(len(text), len(follows)), 0, -1)
    return next((size for size in sizes if text.endswith(follows[:size])), 0)
