"""What a file offers to others, and what it takes from them.

The outline of a definition is its header without its body, for a class those of its
methods as well: what one has to know to use it. Found with the queries that cut the
cache (`segments.scm`) and with `imports.scm`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tree_sitter import QueryCursor

from codekv.structure.lines import is_blank, line_start

if TYPE_CHECKING:
    from tree_sitter import Node

    from codekv.structure.parser import SyntaxTree
    from grammars.registry import Grammar

# An outline is for orientation; whole classes stand in the prompt themselves.
MAX_MEMBERS = 16
# As above: about a tenth of a usual prompt.
MAX_LINES = 12
# Bytes: three lines of signature.
MAX_HEADER = 240
# Module, class, function, inner function.
_MAX_DEPTH = 4
_WORD = re.compile(rb"[A-Za-z_$][\w$]*")


@dataclass(frozen=True, slots=True)
class Outline:
    """A definition that other files may use.

    Attributes:
        text: Whole lines, without the last line's end.
    """

    name: bytes
    text: bytes


@dataclass(frozen=True, slots=True)
class _Found:
    node: Node
    body: Node | None
    name: bytes
    is_class: bool


def outlines(tree: SyntaxTree) -> tuple[Outline, ...]:
    """Everything a file defines for others, in its order.

    Functions inside functions are nobody else's, and a language without imports, such
    as one of data, defines nothing for other files.
    """
    if tree.tree is None or tree.grammar is None or not tree.grammar.has_imports:
        return ()
    cursor = QueryCursor(tree.grammar.query("segments"))
    found = []
    for _, match in cursor.matches(tree.tree.root_node):
        names = match.get("name")
        if names:
            is_class = "class" in match
            node = match["class" if is_class else "function"][0]
            # Some grammars give bodies no field; the query tells them then.
            body = match["body"][0] if match.get("body") else _body(node)
            found.append(_Found(node, body, _plain(names[0].text or b""), is_class))
    found.sort(key=lambda each: (each.node.start_byte, -each.node.end_byte))
    return tuple(_public(found, tree.grammar, tree.snapshot.data))


def imports(tree: SyntaxTree) -> tuple[bytes, ...]:
    """Names that a file takes from other files, in the order of first appearance."""
    if tree.tree is None or tree.grammar is None or not tree.grammar.has_imports:
        return ()
    cursor = QueryCursor(tree.grammar.query("imports"))
    nodes = cursor.captures(tree.tree.root_node).get("import", [])
    nodes.sort(key=lambda node: node.start_byte)
    return tuple(dict.fromkeys(node.text for node in nodes if node.text))


def _plain(name: bytes) -> bytes:
    """The last word of a declarator: no stars, parameters or qualifiers."""
    words = _WORD.findall(re.split(rb"[(<]", name)[0])
    return words[-1] if words else b""


def _public(found: list[_Found], grammar: Grammar, data: bytes) -> list[Outline]:
    result: list[Outline] = []
    around: list[_Found] = []
    members: dict[int, list[_Found]] = {}
    order: list[_Found] = []
    for each in found:
        while around and around[-1].node.end_byte <= each.node.start_byte:
            around.pop()
        inside = around[-1] if around else None
        if inside is None or inside.is_class:
            if inside is not None and not each.is_class:
                members.setdefault(inside.node.start_byte, []).append(each)
            else:
                order.append(each)
        around.append(each)
    for each in order:
        inner = members.get(each.node.start_byte, [])
        text = _text(each, inner, grammar, data)
        if each.name and text:
            result.append(Outline(each.name, text))
    return result


def _text(each: _Found, members: list[_Found], grammar: Grammar, data: bytes) -> bytes:
    if not each.is_class:
        return _header(each, grammar, data, is_closed=True)
    if not members:
        start = line_start(data, each.node.start_byte)
        lines = data[start : each.node.end_byte].split(b"\n")
        return b"\n".join(line for line in lines[:MAX_LINES] if not is_blank(line))
    lines = [_header(each, grammar, data, is_closed=False)]
    for member in members[:MAX_MEMBERS]:
        if header := _header(member, grammar, data, is_closed=True):
            lines.append(grammar.outline.step + header)
    if grammar.outline.ends:
        lines.append(grammar.outline.ends)
    return b"\n".join(lines)


def _header(found: _Found, grammar: Grammar, data: bytes, is_closed: bool) -> bytes:
    """A definition on one line, up to its body; nothing if it is very long."""
    if found.body is None:
        return b""
    header = b" ".join(data[found.node.start_byte : found.body.start_byte].split())
    if len(header) > MAX_HEADER:
        return b""
    style = grammar.outline
    return header + (style.elided if is_closed else style.begins)


def _body(node: Node, depth: int = 0) -> Node | None:
    body = node.child_by_field_name("body")
    if body is not None or depth == _MAX_DEPTH:
        return body
    for child in reversed(node.named_children):
        inner = _body(child, depth + 1)
        if inner is not None:
            return inner
    return None
