"""Trees to segments: the pieces of a buffer that are edited and reused as one.

A segment begins at the line on which a function, a method or a class header begins;
what lies between them is glue. Segments tile the buffer. A function inside a function
belongs to the outer one.

Broken code must not move the cuts of functions that nobody touched: while a tree has
errors, the cuts of an earlier version are carried through the edit, and only the
edited lines are looked at anew.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple

from tree_sitter import QueryCursor

from codekv.cooperative import Cooperative, finish
from codekv.structure.lines import (
    header_text,
    is_blank,
    lead_start,
    line_at,
    line_end,
    line_start,
    says_nothing,
    width,
)
from codekv.text.edit import Revision, edit_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from codekv.structure.parser import SyntaxTree

Kind = Literal["function", "class", "glue"]

_NOT_BLANK = re.compile(rb"[^\s]")
_WORD = re.compile(rb"[\w$~]+")
_NAME_END = re.compile(rb"[(=:{]")

_CUTS_PER_STEP = 64
"""So many functions are looked at in a few milliseconds."""


class Segment(NamedTuple):
    """Bytes `[start_byte, end_byte)` of a buffer; both are line starts or the end.

    Attributes:
        kind: A function, a class's header and fields, or what lies between.
        name: The function's or class's name; empty for glue.
    """

    kind: Kind
    start_byte: int
    end_byte: int
    name: str

    def moved(self, shift: int) -> Segment:
        """The same segment further back or on."""
        return Segment(
            self.kind, self.start_byte + shift, self.end_byte + shift, self.name
        )


@dataclass(frozen=True, slots=True)
class _Cut:
    byte: int
    kind: Kind
    name: str = ""


@dataclass(frozen=True, slots=True)
class _Definition:
    start: int
    end: int
    kind: Kind
    name: str


def segments(
    tree: SyntaxTree, before: tuple[SyntaxTree, tuple[Segment, ...]] | None = None
) -> tuple[Segment, ...]:
    """Cut a buffer into segments; see `segments_in_steps`."""
    return finish(segments_in_steps(tree, before))


def segments_in_steps(
    tree: SyntaxTree,
    before: tuple[SyntaxTree, tuple[Segment, ...]] | None = None,
    revision: Revision | None = None,
) -> Cooperative[tuple[Segment, ...]]:
    """Cut a buffer into segments, set aside after every few cuts.

    Args:
        tree: The buffer's tree.
        before: An earlier tree of the same document with its segments; used while the
            new tree has errors.
        revision: From the earlier text to the new one, if it is known already.

    Returns:
        Segments in order; they cover the buffer without gap or overlap. An empty
        buffer has none.
    """
    cuts: Iterable[_Cut]
    if tree.grammar is None or tree.grammar.language is None:
        cuts = ()
    elif tree.is_late and (before is None or before[0].grammar is not tree.grammar):
        cuts = _line_cuts(tree, 0, len(tree.snapshot.data))
    elif tree.is_late and before is not None:
        cuts = _carried_cuts(tree, *before, revision)
    elif not tree.has_error:
        moved = None if before is None else _moved(tree, *before, revision)
        if moved is not None:
            return moved
        cuts = _tree_cuts(tree)
    elif before is None or before[0].grammar is not tree.grammar:
        cuts = chain(_tree_cuts(tree), _line_cuts(tree, 0, len(tree.snapshot.data)))
    else:
        cuts = _carried_cuts(tree, *before, revision)
    gathered: list[_Cut] = []
    for cut in cuts:
        gathered.append(cut)
        if len(gathered) % _CUTS_PER_STEP == 0:
            yield
    return _tile(tree.snapshot.data, gathered)


def _tile(data: bytes, cuts: Iterable[_Cut]) -> tuple[Segment, ...]:
    chosen: dict[int, _Cut] = {0: _Cut(0, "glue")}
    for cut in cuts:
        there = chosen.get(cut.byte)
        if there is None or there.kind == "glue" or _says_more(cut, there):
            chosen[cut.byte] = cut
    starts: list[int] = []
    for byte in sorted(byte for byte in chosen if byte < len(data)):
        is_more_glue = starts and chosen[byte].kind == chosen[starts[-1]].kind == "glue"
        if not is_more_glue:
            starts.append(byte)
    ends = [*starts[1:], len(data)]
    return tuple(
        Segment(chosen[start].kind, start, end, chosen[start].name)
        for start, end in zip(starts, ends, strict=False)
    )


def _says_more(cut: _Cut, there: _Cut) -> bool:
    """Whether a cut has the whole of a dotted name of which a line tells the end."""
    is_longer = len(cut.name) > len(there.name) > 0
    return cut.kind == there.kind and is_longer and cut.name.endswith(there.name)


def _moved(
    tree: SyntaxTree,
    old: SyntaxTree,
    found: tuple[Segment, ...],
    revision: Revision | None,
) -> tuple[Segment, ...] | None:
    """The old segments, moved, if an edit lies in one function and leaves its bounds.

    Only that function is looked at, so a keystroke costs the same in any file.
    """
    if old.has_error or old.is_late or old.grammar is not tree.grammar:
        return None
    edit = edit_of(revision, old.snapshot.data, tree.snapshot.data)
    if edit is None:
        return found
    starts = [segment.start_byte for segment in found]
    number = bisect.bisect_right(starts, edit.start_byte) - 1
    touched = found[number] if number >= 0 else None
    if touched is None or touched.kind != "function":
        return None
    if not touched.start_byte < edit.start_byte <= edit.old_end_byte < touched.end_byte:
        return None
    start, end = touched.start_byte, touched.end_byte + edit.shift
    inside = [d for d in _definitions(tree, (start, end)) if start <= d.start < end]
    outer = min(inside, key=lambda d: (d.start, -d.end), default=None)
    if outer is None or (outer.start, outer.end, outer.kind) != (
        start,
        end,
        "function",
    ):
        return None
    now = Segment("function", start, end, outer.name)
    rest = found[number + 1 :]
    return (*found[:number], now, *(s.moved(edit.shift) for s in rest))


def _tree_cuts(tree: SyntaxTree) -> Iterator[_Cut]:
    """Cuts that the tree's definitions ask for, functions inside functions left out."""
    inside = 0
    for found in sorted(_definitions(tree), key=lambda d: (d.start, -d.end)):
        if found.start < inside:
            continue
        yield _Cut(found.start, found.kind, found.name)
        yield _Cut(found.end, "glue")
        if found.kind == "function":
            inside = found.end


def _definitions(
    tree: SyntaxTree, window: tuple[int, int] | None = None
) -> Iterator[_Definition]:
    """All definitions, or those that reach into a window of bytes."""
    assert tree.grammar is not None
    assert tree.tree is not None
    data, rules = tree.snapshot.data, tree.grammar.lines
    cursor = QueryCursor(tree.grammar.query("segments"))
    if window is not None:
        cursor.set_byte_range(*window)
    for _, match in cursor.matches(tree.tree.root_node):
        kind: Kind = "function" if "function" in match else "class"
        node = match[kind][0]
        start = lead_start(rules, data, line_start(data, node.start_byte))
        names = match.get("name")
        name = _name(names[0].text or b"") if names else ""
        yield _Definition(start, _after(data, node.end_byte), kind, name)


def _name(text: bytes) -> str:
    """Cut a declarator to the name it declares."""
    return text.split(b"(")[0].strip(b"*& \t\n").decode("utf-8", errors="replace")


def _after(data: bytes, end: int) -> int:
    """The first line with text behind the line on which a definition ends.

    Tokenizers of the usual kind always end a token before it.
    """
    if end and data[end - 1] == 0x0A:
        end -= 1
    found = _NOT_BLANK.search(data, line_end(data, end))
    return line_start(data, found.start()) if found else len(data)


def _line_cuts(
    tree: SyntaxTree, start: int, end: int, inside: int = -1
) -> Iterator[_Cut]:
    """Cuts at the lines of `[start, end)` that look like headers.

    `inside` is the indentation of the function that the first line belongs to.
    """
    assert tree.grammar is not None
    data, rules = tree.snapshot.data, tree.grammar.lines
    at = start
    while at < end:
        line = data[at : line_end(data, at)]
        if not is_blank(line) and not says_nothing(tree, at, line):
            if width(line) <= inside:
                inside = -1
            header = header_text(data, at)
            if inside < 0 and rules.begins_function(header):
                inside = width(line)
                name = _header_name(header)
                yield _Cut(lead_start(rules, data, at), "function", name)
            elif inside < 0 and rules.begins_container(line):
                yield _Cut(lead_start(rules, data, at), "class", _header_name(line))
        at += len(line) + 1


def _header_name(header: bytes) -> str:
    """The last word before a header's parameters, bases or body."""
    words = _WORD.findall(_NAME_END.split(header, maxsplit=1)[0])
    return words[-1].decode("utf-8", errors="replace") if words else ""


def _carried_cuts(
    tree: SyntaxTree,
    old: SyntaxTree,
    found: tuple[Segment, ...],
    revision: Revision | None,
) -> Iterator[_Cut]:
    data = tree.snapshot.data
    edit = edit_of(revision, old.snapshot.data, data)
    if edit is None:
        yield from (_Cut(s.start_byte, s.kind, s.name) for s in found)
        return
    start = line_start(data, edit.start_byte)
    end = line_end(data, edit.new_end_byte)
    yield from _line_cuts(tree, start, end, _function_width(tree, found, start))
    for segment in found:
        # What was inserted just before a cut stays before it if that is a whole line.
        byte = segment.start_byte
        # Where equal text stands on both sides, an edit may be told to lie further on.
        kept = old.snapshot.data[max(byte, edit.start_byte) : edit.old_end_byte]
        is_kept = byte > edit.start_byte and data.endswith(kept, 0, edit.new_end_byte)
        is_behind = byte >= edit.old_end_byte or is_kept
        places = [byte + edit.shift] if is_behind else []
        places += [byte] if byte <= edit.start_byte else []
        for place in places:
            if place == 0 or data[place - 1 : place] == b"\n":
                yield _Cut(place, segment.kind, segment.name)
                break


def _function_width(tree: SyntaxTree, found: tuple[Segment, ...], start: int) -> int:
    """Indentation of the function whose segment holds `start`, -1 outside of any.

    `start` lies at or before the edit, where old and new offsets are the same.
    """
    for segment in found:
        if segment.start_byte < start < segment.end_byte:
            header = line_at(tree.snapshot.data, segment.start_byte)
            return width(header) if segment.kind == "function" else -1
    return -1
