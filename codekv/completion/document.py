"""What the engine's thread remembers of each open document: tree and tokens.

Everything here is derived from the newest snapshot; dropping it costs time, never
correctness.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.structure.blocks import blocks_of
from codekv.structure.segment import Segment, segments
from codekv.tokens.buffer import TokenBuffer

if TYPE_CHECKING:
    from codekv.structure.parser import Parser, SyntaxTree
    from codekv.text.snapshot import Snapshot
    from codekv.tokens.tokenizer import Encoding, Tokenizer


@dataclass(frozen=True, eq=False, slots=True)
class CodeDocument:
    """One version of a document, parsed, cut and tokenised.

    Attributes:
        cuts: Token indices at which blocks begin, ascending.
    """

    snapshot: Snapshot
    tree: SyntaxTree
    segments: tuple[Segment, ...]
    encoding: Encoding
    cuts: tuple[int, ...]

    def function_at(self, byte: int) -> str:
        """The name of the function or class around a byte; empty for none."""
        names = (
            segment.name
            for segment in self.segments
            if segment.start_byte <= byte < max(segment.end_byte, byte + 1)
            and byte <= segment.end_byte
        )
        return next((name for name in names if name), "")


class CodeDocuments:
    """The newest version of each of a bounded number of documents."""

    def __init__(
        self, tokenizer: Tokenizer, parser: Parser, chunk_size: int, limit: int = 32
    ) -> None:
        self._tokenizer = tokenizer
        self._parser = parser
        self._chunk_size = chunk_size
        self._limit = limit
        self._entries: OrderedDict[str, tuple[CodeDocument, TokenBuffer]] = (
            OrderedDict()
        )

    def update(self, snapshot: Snapshot) -> CodeDocument:
        """Bring a document to a snapshot, redoing only what the edit touched."""
        old, buffer = self._entries.get(snapshot.uri, (None, None))
        if old is not None and _same(old.snapshot, snapshot):
            self._entries.move_to_end(snapshot.uri)
            return old
        buffer = buffer or TokenBuffer(self._tokenizer)
        tree = self._parser.parse(snapshot, old.tree if old else None)
        parts = segments(tree, (old.tree, old.segments) if old else None)
        encoding = buffer.update(snapshot.data)
        found = blocks_of(tree, parts, encoding.ends, self._chunk_size)
        cuts = tuple(start for start, _ in found)
        document = CodeDocument(snapshot, tree, parts, encoding, cuts)
        self._entries[snapshot.uri] = (document, buffer)
        self._entries.move_to_end(snapshot.uri)
        while len(self._entries) > self._limit:
            self._entries.popitem(last=False)
        return document

    def get(self, uri: str) -> CodeDocument | None:
        """The newest known version."""
        entry = self._entries.get(uri)
        return entry[0] if entry else None

    def all(self) -> list[CodeDocument]:
        """The newest known version of every document."""
        return [document for document, _ in self._entries.values()]

    def forget(self, uri: str) -> None:
        """Drop a document."""
        self._entries.pop(uri, None)


def _same(old: Snapshot, new: Snapshot) -> bool:
    return old.data == new.data and old.language == new.language
