"""What an offered text must never do, checked by other rules than it was made with.

The filters that trim an answer go by lines and a bracket scanner; this goes by what
the parser says of the document as it would be with the answer taken.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from codekv.structure.parser import Parser
from codekv.text.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from bench.traces.cursors import Cursor
    from codekv.completion.api import Item

DUPLICATES = ("repeats-rest", "repeats-below")
INDENTATION = ("tabs", "indent-unit", "indent-level")
UNBALANCED = ("brackets", "quotes")
KINDS = (*DUPLICATES, *INDENTATION, *UNBALANCED, "special-token")

_SPECIAL = re.compile(r"<\|[a-z_]+\|>|<(?:fim|file|repo)_\w+>")
_LEAST_SAID = 4
"""Shorter pieces (`end`, `if`, `);`) recur by accident."""

_OPENED = {"(": ")", "[": "]", "{": "}", "${": "}", "#{": "}"}
_CLOSING = frozenset(")]}")
_QUOTES = frozenset({'"', "'", "`", '"""', "'''"})
_BRACES = re.compile(rb"\{\s*$")


def faults(cursor: Cursor, item: Item) -> tuple[str, ...]:
    """Name what is wrong with an answer; nothing if it keeps all promises."""
    text = item.text.replace("\r\n", "\n").encode()
    found = []
    if _repeats_rest(cursor, item, text):
        found.append("repeats-rest")
    if _repeats_below(cursor, text):
        found.append("repeats-below")
    found += _indentation(cursor, item, text)
    found += _balance(cursor, item, text)
    if _SPECIAL.search(item.text) and not _SPECIAL.search(cursor.whole.decode()):
        found.append("special-token")
    return tuple(found)


def taken(cursor: Cursor, item: Item) -> bytes:
    """The document once an answer is accepted."""
    text = item.text.replace("\r\n", "\n").encode()
    return cursor.data[: item.start_byte] + text + cursor.data[item.end_byte :]


def _line(data: bytes, at: int) -> tuple[int, int]:
    end = data.find(b"\n", at)
    return data.rfind(b"\n", 0, at) + 1, len(data) if end < 0 else end


def _says(text: bytes) -> bool:
    """Whether a text has enough letters for its repetition to be no accident."""
    return sum(chr(byte).isalnum() for byte in text) >= _LEAST_SAID


def _repeats_rest(cursor: Cursor, item: Item, text: bytes) -> bool:
    _, end = _line(cursor.data, cursor.cursor_byte)
    rest = cursor.data[item.end_byte : end].rstrip()
    last = text.rsplit(b"\n", 1)[-1]
    sizes = range(1, min(len(rest), len(last)) + 1)
    return any(_says(rest[:n]) and last.endswith(rest[:n]) for n in sizes)


def _repeats_below(cursor: Cursor, text: bytes) -> bool:
    start, end = _line(cursor.data, cursor.cursor_byte)
    lines = cursor.data[end + 1 :].split(b"\n")
    below = next((line.rstrip() for line in lines if line.strip()), b"")
    if not _says(below) or cursor.wanted.rstrip().endswith(below.strip()):
        return False
    typed = cursor.data[start : cursor.cursor_byte]
    return below in [line.rstrip() for line in (typed + text).split(b"\n")]


def _indentation(cursor: Cursor, item: Item, text: bytes) -> Iterator[str]:
    """Tabs among spaces, widths beside the file's grid, levels that cannot be."""
    after = taken(cursor, item)
    first = after.rfind(b"\n", 0, item.start_byte) + 1
    is_blank = not after[first : item.start_byte].strip()
    begin = first if is_blank else after.find(b"\n", item.start_byte) + 1
    stop = item.start_byte + len(text)
    leads = []
    for at in _line_starts(after, begin, stop) if begin else ():
        lead = re.match(rb"[ \t]*", after[at:])
        assert lead is not None
        if _begins_code(cursor, after, at + lead.end()):
            leads.append(lead.group())
    step = unit(cursor.whole)
    if any((b"\t" in lead) != (step == b"\t") for lead in leads if lead):
        yield "tabs"
    elif step and step != b"\t" and any(len(lead) % len(step) for lead in leads):
        yield "indent-unit"
    if cursor.language == "python" and _cannot_be(after, cursor.whole):
        yield "indent-level"


def _line_starts(data: bytes, begin: int, stop: int) -> Iterator[int]:
    while begin < stop:
        yield begin
        begin = data.find(b"\n", begin) + 1
        if begin == 0:
            return


def unit(data: bytes) -> bytes:
    """One step of a file's indentation: the commonest one; empty if there is none."""
    steps: Counter[bytes] = Counter()
    lines = [line for line in data.split(b"\n") if line.strip()]
    for above, line in pairwise(lines):
        lead = line[: len(line) - len(line.lstrip(b" \t"))]
        before = above[: len(above) - len(above.lstrip(b" \t"))]
        if lead.startswith(b"\t"):
            steps[b"\t"] += len(lead) > len(before)
        elif len(lead) > len(before) and above.rstrip()[-1:] in b":{":
            steps[b" " * (len(lead) - len(before))] += 1
    return steps.most_common(1)[0][0] if steps else b""


def _begins_code(cursor: Cursor, data: bytes, at: int) -> bool:
    """Whether a statement begins here: not in a string, a comment or brackets."""
    root = _root(cursor, data)
    if root is None or data[at : at + 1] in (b"", b"\n"):
        return False
    node = root.descendant_for_byte_range(at, at + 1)
    if node is None or node.start_byte != at or "comment" in node.type:
        return False
    while node.parent is not None and node.parent.start_byte == at:
        node = node.parent
    above = node.parent
    while above is not None:
        if above.type in _BODIES:
            return True
        if above.is_error or any(each.type in _OPENED for each in above.children[:2]):
            return False
        above = above.parent
    return False


_BODIES = frozenset(
    {"module", "program", "source_file", "translation_unit", "block", "class_body"}
    | {"statement_block", "compound_statement", "declaration_list"}
    | {"field_declaration_list"}
)


def _cannot_be(after: bytes, whole: bytes) -> bool:
    """Whether Python finds an indentation at fault that it did not find before."""
    return _indent_error(after) and not _indent_error(whole)


def _indent_error(data: bytes) -> bool:
    try:
        ast.parse(data)
    except IndentationError as error:
        # A header whose body is still to come is no fault.
        return "expected an indented block" not in str(error)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return False


def _balance(cursor: Cursor, item: Item, text: bytes) -> Iterator[str]:
    """More brackets or quotes left open than before, or by the author."""
    states = [
        _open(cursor, data) for data in (taken(cursor, item), cursor.data, cursor.whole)
    ]
    begins_block = cursor.language != "python" and bool(_BRACES.search(text))
    for number, name in enumerate(UNBALANCED):
        after, before, whole = (state[number] for state in states)
        if after > max(before, whole) + (begins_block and name == "brackets"):
            yield name


def _open(cursor: Cursor, data: bytes) -> tuple[int, int]:
    """How many brackets and quotes have no partner."""
    root = _root(cursor, data)
    brackets: Counter[str] = Counter()
    quotes: Counter[str] = Counter()
    for leaf in _leaves(root) if root is not None else ():
        kind = leaf.type
        if leaf.is_missing:
            continue
        if kind in _OPENED:
            brackets[_OPENED[kind]] += 1
        elif kind in _CLOSING:
            brackets[kind] -= 1
        elif kind in _QUOTES:
            quotes[kind] ^= 1
        elif kind in ("string_start", "string_end"):
            quotes["string"] += 1 if kind == "string_start" else -1
    return sum(map(abs, brackets.values())), sum(map(abs, quotes.values()))


def _leaves(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.child_count == 0:
            yield node
        waiting.extend(node.children)


def _root(cursor: Cursor, data: bytes) -> Node | None:
    snapshot = Snapshot(cursor.uri, 0, cursor.language, data)
    tree = Parser().parse(snapshot, None).tree
    return None if tree is None else tree.root_node
