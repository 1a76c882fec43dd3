"""How broken a text is: the number of places its parser could not make sense of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from codekv.cooperative import finish
from codekv.structure.parser import Parser, SyntaxTree

if TYPE_CHECKING:
    from tree_sitter import Node

_PARSER = Parser()

MAX_CHECK_MS = 60.0
"""Processor time for one look at a file with an answer in it: a fifth of the latency
budget. Ordinary files take a millisecond or two."""

# More errors than this decide nothing: the file does not parse.
_ENOUGH = 1000


def num_errors(tree: SyntaxTree) -> int:
    """Count error and missing nodes; stops at 1000. Text without grammar has none."""
    if tree.tree is None or not tree.has_error:
        return 0
    found, waiting = 0, [tree.tree.root_node]
    while waiting and found < _ENOUGH:
        node: Node = waiting.pop()
        if node.is_error or node.is_missing:
            found += 1
        waiting += [child for child in node.children if child.has_error]
    return found


def with_text(
    tree: SyntaxTree, start_byte: int, end_byte: int, text: bytes
) -> SyntaxTree:
    """The tree the document would have with `text` in place of the range.

    Where the document's own tree was late, or this one would be, it is left out.
    """
    snapshot = tree.snapshot
    data = snapshot.data[:start_byte] + text + snapshot.data[end_byte:]
    changed = replace(snapshot, data=data)
    if tree.is_late:
        return _PARSER.without_tree(changed)
    return finish(_PARSER.parse_in_steps(changed, tree, MAX_CHECK_MS))
