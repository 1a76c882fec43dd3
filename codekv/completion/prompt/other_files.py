"""What a prompt says of other files: outlines of what is imported, and recent edits.

Stands first in the prompt and changes rarely, so that it stays computed: a document
keeps what it was given until a pause finds that its imports ask for something else;
what is new then goes behind what was there. Belongs to the engine's thread.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.completion.privacy.exclusion import path_of
from codekv.structure.anchor import find_anchor
from codekv.structure.lines import line_end

if TYPE_CHECKING:
    from codekv.completion.document import CodeDocument
    from codekv.completion.prompt.workspace import Entry, WorkspaceIndex
    from codekv.tokens.tokenizer import Tokenizer

MAX_TOKENS = 320
"""Tokens of other files in one prompt."""

# Two files are what a person goes back and forth between.
NUM_RECENT = 2
# Some 15 lines: what one screen shows around the cursor.
MAX_RECENT_BYTES = 600


@dataclass(frozen=True, slots=True)
class _Given:
    """What one document's prompts begin with."""

    entries: tuple[Entry, ...] = ()
    recent: tuple[tuple[str, bytes], ...] = ()
    tokens: tuple[int, ...] = ()


class OtherFiles:
    """Chooses, lays out and keeps the lines of each document."""

    def __init__(
        self, index: WorkspaceIndex, tokenizer: Tokenizer, room: int = MAX_TOKENS
    ) -> None:
        self.index = index
        self._tokenizer = tokenizer
        self._room = room
        self._given: dict[str, _Given] = {}
        # Where each document was last worked on; the newest last.
        self._recent: OrderedDict[str, tuple[str, bytes]] = OrderedDict()

    def tokens(self, uri: str) -> tuple[int, ...]:
        """What this document's prompts begin with now."""
        given = self._given.get(uri)
        return given.tokens if given else ()

    def visited(self, document: CodeDocument, cursor_byte: int) -> None:
        """Note where a document is worked on."""
        data = document.snapshot.data
        start = find_anchor(document.tree, cursor_byte)
        start = max(start, line_end(data, max(0, cursor_byte - MAX_RECENT_BYTES)) + 1)
        text = data[start : line_end(data, cursor_byte)]
        uri = document.snapshot.uri
        if not self.index.is_kept(path_of(uri)):
            self._recent.pop(uri, None)
        elif text.strip() and document.tree.grammar is not None:
            self._recent[uri] = (document.tree.grammar.kin, text)
            self._recent.move_to_end(uri)

    def refresh(self, document: CodeDocument) -> bool:
        """Choose anew, in a pause; whether anything changed."""
        uri = document.snapshot.uri
        self.index.update(document.tree)
        old = self._given.get(uri, _Given())
        wanted = self.index.wanted(document.tree)
        recent = self._recent_beside(document)
        if set(wanted) == set(old.entries) and recent == old.recent:
            return False
        names = [(entry.path, entry.outline.name) for entry in old.entries]
        known = [e for e in wanted if (e.path, e.outline.name) in names]
        known.sort(key=lambda e: names.index((e.path, e.outline.name)))
        entries = (*known, *(entry for entry in wanted if entry not in known))
        self._given[uri] = _Given(entries, recent, self._lay_out(document, entries))
        return self._given[uri].tokens != old.tokens

    def forget(self, uri: str) -> None:
        """Drop a closed document; the index has it from the disk from now on."""
        self._given.pop(uri, None)
        self._recent.pop(uri, None)
        self.index.close(uri)

    def _recent_beside(self, document: CodeDocument) -> tuple[tuple[str, bytes], ...]:
        grammar, own = document.tree.grammar, document.snapshot.uri
        wanted = grammar.kin if grammar else ""
        found = [
            (uri, text)
            for uri, (kin, text) in reversed(self._recent.items())
            if uri != own and kin == wanted
        ]
        return tuple(reversed(found[:NUM_RECENT]))

    def _lay_out(
        self, document: CodeDocument, entries: tuple[Entry, ...]
    ) -> tuple[int, ...]:
        """As many whole pieces as there is room for, outlines first."""
        assert document.tree.grammar is not None
        grammar = document.tree.grammar
        ids: list[int] = []
        last = ""
        pieces = [(entry.path, entry.outline.text) for entry in entries]
        recent = self._recent_beside(document)
        pieces += [(path_of(uri), text) for uri, text in recent]
        for path, text in pieces:
            head = "" if path == last else grammar.comment_line(self._shown(path))
            piece = self._tokenizer.encode(head.encode() + text + b"\n").ids
            if len(ids) + len(piece) <= self._room:
                ids += piece
                last = path
        return tuple(ids)

    def _shown(self, path: str) -> str:
        try:
            return self.index.shown_path(path)
        except ValueError:
            return path.rsplit("/", 1)[-1]
