"""What the engine's thread remembers of each open document: tree and tokens.

Everything here is derived from the newest snapshot; dropping it costs time, never
correctness.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.cooperative import Cooperative, finish
from codekv.structure.blocks import blocks_of
from codekv.structure.segment import Segment, segments_in_steps
from codekv.text.edit import Revision
from codekv.tokens.buffer import TokenBuffer

if TYPE_CHECKING:
    from codekv.structure.parser import Parser, SyntaxTree
    from codekv.text.snapshot import Snapshot
    from codekv.tokens.tokenizer import Encoding, Tokenizer

KEY_PARSE_MS = 120.0
"""Processor time of the parser after a keystroke: half of the latency budget, and
ten times what an ordinary file of a megabyte takes."""

FIRST_PARSE_MS = 1500.0
"""The same for a text that no tree is known of: five megabytes of ordinary code."""

LATE_PARSES = 2
"""After so many late parses a document counts as dear: one may be an accident."""


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
        self._num_late: dict[str, int] = {}
        self._entries: OrderedDict[str, tuple[CodeDocument, TokenBuffer]] = (
            OrderedDict()
        )

    def update(self, snapshot: Snapshot) -> CodeDocument:
        """Bring a document to a snapshot, redoing only what the edit touched."""
        return finish(self.update_in_steps(snapshot))

    def update_in_steps(self, snapshot: Snapshot) -> Cooperative[CodeDocument]:
        """Bring a document to a snapshot as `update`, set aside every few ms.

        A document whose parser was late twice is served from its lines alone until it
        is closed: no keystroke waits for its parser again.
        """
        uri = snapshot.uri
        old, buffer = self._entries.get(uri, (None, None))
        if old is not None and _same(old.snapshot, snapshot):
            self._entries.move_to_end(uri)
            return old
        buffer = buffer or TokenBuffer(self._tokenizer)
        known = old.snapshot.data if old else b""
        # Tree, segments and tokens ask what changed; the texts are compared once.
        revision = Revision.between(known, snapshot.data)
        tree = yield from self._parse(snapshot, old.tree if old else None, revision)
        before = (old.tree, old.segments) if old else None
        parts = yield from segments_in_steps(tree, before, revision)
        encoding = yield from buffer.update_in_steps(snapshot.data, revision)
        yield
        found = blocks_of(tree, parts, encoding.ends, self._chunk_size)
        cuts = tuple(start for start, _ in found)
        document = CodeDocument(snapshot, tree, parts, encoding, cuts)
        self._entries[snapshot.uri] = (document, buffer)
        self._entries.move_to_end(snapshot.uri)
        while len(self._entries) > self._limit:
            self._num_late.pop(self._entries.popitem(last=False)[0], None)
        return document

    def _parse(
        self, snapshot: Snapshot, old: SyntaxTree | None, revision: Revision
    ) -> Cooperative[SyntaxTree]:
        uri = snapshot.uri
        if self.is_dear(uri):
            return self._parser.without_tree(snapshot)
        has_tree = old is not None and old.tree is not None
        limit = KEY_PARSE_MS if has_tree else FIRST_PARSE_MS
        tree = yield from self._parser.parse_in_steps(snapshot, old, limit, revision)
        if tree.is_late:
            self._num_late[uri] = self._num_late.get(uri, 0) + 1
        return tree

    def is_dear(self, uri: str) -> bool:
        """Whether a document is served from lines, for parsing it takes too long."""
        return self._num_late.get(uri, 0) >= LATE_PARSES

    def num_dear(self) -> int:
        """How many documents are served from their lines."""
        return sum(self.is_dear(uri) for uri in self._num_late)

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
        self._num_late.pop(uri, None)


def _same(old: Snapshot, new: Snapshot) -> bool:
    return old.data == new.data and old.language == new.language
