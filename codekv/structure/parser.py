"""Snapshots to syntax trees, incrementally.

The edit between two versions is found from their bytes, so a tree cannot drift from
its text whatever the editor reported. Trees never change once handed out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import tree_sitter

from codekv.text.edit import Edit, find_edit
from grammars.registry import Grammar, grammar_for

if TYPE_CHECKING:
    from codekv.text.snapshot import Snapshot


@dataclass(frozen=True, eq=False, slots=True)
class SyntaxTree:
    """The structure of one snapshot.

    Attributes:
        snapshot: The text.
        grammar: None if the language has no grammar; then `tree` is None as well and
            everything in this package falls back to lines and indentation.
        tree: Owned by this object; treat it as read-only.
    """

    snapshot: Snapshot
    grammar: Grammar | None
    tree: tree_sitter.Tree | None

    @property
    def has_error(self) -> bool:
        """Whether the text breaks its language's rules somewhere."""
        return self.tree is not None and self.tree.root_node.has_error


class Parser:
    """Makes syntax trees; holds no state, so it may be shared between threads."""

    def parse(self, snapshot: Snapshot, previous: SyntaxTree | None) -> SyntaxTree:
        """Parse a snapshot, reusing what an earlier version's tree still tells.

        `previous` may belong to any text; the nearer it is, the cheaper this gets.
        The result equals a parse from nothing.
        """
        grammar = grammar_for(snapshot.language, snapshot.uri)
        if grammar is None:
            return SyntaxTree(snapshot, None, None)
        parser = tree_sitter.Parser(grammar.language)
        if previous is None or previous.tree is None or previous.grammar is not grammar:
            return SyntaxTree(snapshot, grammar, parser.parse(snapshot.data))
        edit = find_edit(previous.snapshot.data, snapshot.data)
        if edit is None:
            return SyntaxTree(snapshot, grammar, previous.tree)
        old = previous.tree.copy()
        _apply(old, edit, previous.snapshot.data, snapshot.data)
        return SyntaxTree(snapshot, grammar, parser.parse(snapshot.data, old))


def _apply(tree: tree_sitter.Tree, edit: Edit, old: bytes, new: bytes) -> None:
    tree.edit(
        edit.start_byte,
        edit.old_end_byte,
        edit.new_end_byte,
        _point(old, edit.start_byte),
        _point(old, edit.old_end_byte),
        _point(new, edit.new_end_byte),
    )


def _point(data: bytes, offset: int) -> tuple[int, int]:
    """Row and byte column, as tree-sitter counts them."""
    return data.count(b"\n", 0, offset), offset - (data.rfind(b"\n", 0, offset) + 1)
