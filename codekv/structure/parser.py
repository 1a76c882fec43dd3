"""Snapshots to syntax trees, incrementally.

The edit between two versions is found from their bytes, so a tree cannot drift from
its text whatever the editor reported. Trees never change once handed out.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import tree_sitter

from codekv.cooperative import Cooperative, finish
from codekv.structure.opaque import OpaqueSpans
from codekv.text.edit import Edit, Revision, edit_of
from grammars.registry import Grammar, grammar_for, guessed_grammar

if TYPE_CHECKING:
    from codekv.text.snapshot import Snapshot


@dataclass(frozen=True, eq=False, slots=True)
class SyntaxTree:
    """The structure of one snapshot.

    Attributes:
        snapshot: The text.
        grammar: Of an unknown language, the rules of the block style that its lines
            show; None if they show none. Then `tree` is None as well and everything in
            this package falls back to lines and indentation.
        tree: Owned by this object; treat it as read-only. None also where parsing took
            longer than it may: then lines alone tell the structure.
        opaque: Strings and comments of the tree.
    """

    snapshot: Snapshot
    grammar: Grammar | None
    tree: tree_sitter.Tree | None
    opaque: OpaqueSpans = field(init=False)

    def __post_init__(self) -> None:
        """Begin with no strings and comments looked up."""
        opaque = OpaqueSpans(self.grammar, self.tree)
        object.__setattr__(self, "opaque", opaque)

    @property
    def is_late(self) -> bool:
        """Whether the language has a parser but it did not end in time."""
        has_parser = self.grammar is not None and self.grammar.language is not None
        return has_parser and self.tree is None

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
        return finish(self.parse_in_steps(snapshot, previous))

    def without_tree(self, snapshot: Snapshot) -> SyntaxTree:
        """Leave the parser out: lines alone tell the structure."""
        return SyntaxTree(snapshot, grammar_for(snapshot.language, snapshot.uri), None)

    def parse_in_steps(
        self,
        snapshot: Snapshot,
        previous: SyntaxTree | None,
        limit_ms: float = math.inf,
        revision: Revision | None = None,
    ) -> Cooperative[SyntaxTree]:
        """Parse as `parse`, set aside every few milliseconds.

        Args:
            snapshot: The text.
            previous: An earlier tree of the same document, if there is one.
            limit_ms: After so much processor time the tree is left out.
            revision: From the text of `previous` to this one, if it is known already.
        """
        grammar = grammar_for(snapshot.language, snapshot.uri)
        if grammar is None:
            return SyntaxTree(snapshot, guessed_grammar(snapshot.data), None)
        old: tree_sitter.Tree | None = None
        if (
            previous is not None
            and previous.tree is not None
            and previous.grammar is grammar
        ):
            edit = edit_of(revision, previous.snapshot.data, snapshot.data)
            if edit is None:
                return SyntaxTree(snapshot, grammar, previous.tree)
            old = previous.tree.copy()
            _apply(old, edit, previous.snapshot.data, snapshot.data)
        tree = yield from _run(grammar, snapshot.data, old, limit_ms)
        return SyntaxTree(snapshot, grammar, tree)


def _run(
    grammar: Grammar, data: bytes, old: tree_sitter.Tree | None, limit_ms: float
) -> Cooperative[tree_sitter.Tree | None]:
    """Run a parser slice by slice; None once it has taken `limit_ms`."""
    parser = tree_sitter.Parser(grammar.language)
    spent, end = 0.0, 0.0

    def read(offset: int, _point: tree_sitter.Point) -> bytes:
        return data[offset : offset + _READ_BYTES]

    def is_over(_offset: int, _has_error: bool) -> bool:
        return time.perf_counter() > end

    def advance() -> tree_sitter.Tree:
        if old is None:
            return parser.parse(read, progress_callback=is_over)
        return parser.parse(read, old, progress_callback=is_over)

    while True:
        # Slices are cut by the clock; what counts against the limit is processor time,
        # so that another program's burst makes no document dear.
        started = time.thread_time()
        end = time.perf_counter() + min(SLICE_MS, limit_ms - spent) / 1e3
        try:
            return advance()
        except ValueError:
            # The slice is over; the parser goes on from here when called again.
            spent += (time.thread_time() - started) * 1e3
        if spent >= limit_ms:
            return None
        yield


SLICE_MS = 5.0
"""A third of the time in which work has to give way, for slices overrun a little."""

_READ_BYTES = 1 << 16
"""Bytes that the parser is handed at a time."""


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
