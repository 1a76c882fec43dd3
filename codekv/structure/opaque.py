"""Which bytes of a text lie inside strings and comments: intervals, page by page.

Asked for every line of a walk, a tree costs its depth each time; asked once for a page
of bytes, it costs its depth and the nodes of that page. So intervals are found per
page, when one is first asked about, and a keystroke pays for the pages near it only.
"""

from __future__ import annotations

import functools
from bisect import bisect_left
from typing import TYPE_CHECKING

from tree_sitter import Query, QueryCursor, QueryError

if TYPE_CHECKING:
    from tree_sitter import Tree

    from grammars.registry import Grammar

PAGE_BYTES = 1 << 13
"""Some 200 lines: what a walk around a cursor needs, at the price of one keystroke."""


class OpaqueSpans:
    """Outermost strings and comments of one tree, by where they begin and end."""

    __slots__ = ("_grammar", "_pages", "_tree")

    def __init__(self, grammar: Grammar | None, tree: Tree | None) -> None:
        """Know nothing yet; without a tree every byte is code."""
        self._grammar = grammar
        self._tree = tree
        self._pages: dict[int, tuple[list[int], list[int]]] = {}

    def start_of(self, offset: int) -> int | None:
        """Where the string or comment that runs over `offset` from before begins.

        Returns:
            None if the byte is code, or if such a text begins just there.
        """
        if self._tree is None or self._grammar is None:
            return None
        page = offset // PAGE_BYTES
        found = self._pages.get(page)
        if found is None:
            found = self._pages[page] = self._find(page)
        starts, ends = found
        index = bisect_left(starts, offset) - 1
        if index >= 0 and offset < ends[index]:
            return starts[index]
        return None

    def _find(self, page: int) -> tuple[list[int], list[int]]:
        assert self._grammar is not None
        assert self._tree is not None
        query = _query(self._grammar)
        if query is None:
            return [], []
        cursor = QueryCursor(query)
        cursor.set_byte_range(page * PAGE_BYTES, (page + 1) * PAGE_BYTES)
        nodes = cursor.captures(self._tree.root_node).get("opaque", ())
        starts: list[int] = []
        ends: list[int] = []
        spans = sorted((node.start_byte, -node.end_byte) for node in nodes)
        for start, negative_end in spans:
            # What stands inside another one is part of it.
            if not ends or start >= ends[-1]:
                starts.append(start)
                ends.append(-negative_end)
        return starts, ends


@functools.cache
def _query(grammar: Grammar) -> Query | None:
    """One query for all opaque node types that the language's parser knows."""
    assert grammar.language is not None
    known = [name for name in sorted(grammar.opaque) if _is_known(grammar, name)]
    if not known:
        return None
    body = " ".join(f"({name})" for name in known)
    return Query(grammar.language, f"[{body}] @opaque")


def _is_known(grammar: Grammar, name: str) -> bool:
    assert grammar.language is not None
    try:
        Query(grammar.language, f"({name}) @opaque")
    except QueryError:
        return False
    return True
