"""Syntax classes: what kind of text each token is.

The codec gives classes different precision; the laboratory measures them apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tree_sitter import QueryCursor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from codekv.structure.parser import SyntaxTree

OTHER = 0
NAME = 1
# The classes' numbers are part of the block format; 0 and 1 are other and name.
INDENT = 2
# As above.
COMMENT = 3
CLASS_NAMES = ("other", "name", "indent", "comment")


def token_classes(tree: SyntaxTree, ends: Sequence[int]) -> bytes:
    """Tell the class of every token.

    Args:
        tree: The tree of the tokenised text.
        ends: Byte offset at which each token ends; tokens tile the text.

    Returns:
        One byte per token: `OTHER`, `NAME` (defined names and signatures), `INDENT`
        (indentation and line ends) or `COMMENT` (comments and docstrings). A token
        with several kinds of bytes takes the class of its first visible character.
    """
    size = len(tree.snapshot.data)
    if not len(ends):
        return b""
    if not size:
        return bytes(len(ends))
    classes, is_space = _byte_classes(tree)
    stops = np.minimum(np.asarray(ends, dtype=np.int64), size)
    starts = np.concatenate(([0], stops[:-1]))
    # Where the next visible byte stands, seen from every byte.
    index = np.where(is_space, size, np.arange(size))
    visible = np.minimum.accumulate(index[::-1])[::-1]
    first = visible[np.minimum(starts, size - 1)]
    spoken = np.where(first < stops, first, np.maximum(stops - 1, 0))
    return np.where(stops > starts, classes[spoken], OTHER).astype(np.uint8).tobytes()


def _byte_classes(tree: SyntaxTree) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """The class of every byte, and whether it is white space."""
    text = np.frombuffer(tree.snapshot.data, dtype=np.uint8)
    is_newline = text == ord("\n")
    is_space = is_newline | (text == ord(" ")) | (text == ord("\t"))
    # The last visible byte or newline before each byte: a newline means indentation.
    stop = np.where(~is_space | is_newline, np.arange(len(text)), -1)
    last = np.maximum.accumulate(stop)
    before = np.where(last < 0, ord("\n"), text[np.maximum(last, 0)])
    is_indent = is_space & (before == ord("\n"))
    classes = np.where(is_indent, INDENT, OTHER).astype(np.uint8)
    if tree.tree is None or tree.grammar is None:
        return classes, is_space
    cursor = QueryCursor(tree.grammar.query("classes"))
    found = cursor.captures(tree.tree.root_node)
    for kind, value in (("name", NAME), ("comment", COMMENT)):
        for node in found.get(kind, ()):
            classes[node.start_byte : node.end_byte] = value
        if value == NAME:
            # A signature of several lines is indented like any other code.
            classes[is_indent] = INDENT
    return classes, is_space
