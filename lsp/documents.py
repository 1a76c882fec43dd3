r"""The open documents, as the editor sees them.

Owns the raw text, line ends included, split at `\n`, `\r\n` and `\r` and at nothing
else, and the one place where editor positions meet byte offsets. Knows no protocol
types and no syntax; asks nobody's file system.
"""

from __future__ import annotations

import io
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from codekv.text.snapshot import Snapshot
from codekv.units import ByteOffset
from lsp.convert import index_of_units, join_surrogates, num_units_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lsp.convert import Encoding


class DocumentPlace(NamedTuple):
    """A position as editors count: zero-based line, column in the editor's units."""

    line: int
    character: int


class TextSpan(NamedTuple):
    """A range as editors count; the end is exclusive."""

    start: DocumentPlace
    end: DocumentPlace


class Change(NamedTuple):
    """One edit; without a span it replaces everything."""

    span: TextSpan | None
    text: str


def split_lines(text: str) -> list[str]:
    r"""Split at `\n`, `\r\n` and `\r`, keeping them; the last line has none."""
    lines = list(io.StringIO(text, newline=""))
    if not lines or lines[-1].endswith(("\n", "\r")):
        lines.append("")
    return lines


@dataclass(slots=True)
class OpenDocument:
    """One open document.

    Attributes:
        version: What the editor last called it; only reported.
        revision: Grows with every text of every document, across closing and opening
            again, so that it names one text for good.
        in_sync: False after an edit that could not be understood, until the editor
            sends the whole text again.
    """

    uri: str
    language: str
    encoding: Encoding
    version: int = 0
    revision: int = 0
    in_sync: bool = True
    lines: list[str] = field(default_factory=lambda: [""])
    _snapshot: Snapshot | None = None

    def replace_all(self, text: str) -> None:
        """Take a whole new text."""
        self.lines = split_lines(join_surrogates(text))
        self.in_sync = True

    def apply(self, change: Change) -> None:
        """Take one edit; positions outside the text mean its nearest end."""
        if change.span is None:
            self.replace_all(change.text)
            return
        first, second = sorted(map(self._locate, change.span))
        start_line, start = first
        end_line, end = second
        head = self.lines[start_line][:start]
        tail = self.lines[end_line][end:]
        text = head + change.text + tail
        if start_line and text.startswith("\n"):
            above = self.lines[start_line - 1]
            if above.endswith("\r"):
                start_line -= 1
                text = above + text
        lines = split_lines(join_surrogates(text))
        if end_line + 1 < len(self.lines) and not lines[-1]:
            lines.pop()
        self.lines[start_line : end_line + 1] = lines

    def text(self) -> str:
        """Give the whole raw text."""
        return "".join(self.lines)

    def snapshot(self) -> Snapshot:
        """Give the present text as a frozen value; made once per revision."""
        made = self._snapshot
        if made is None or made.version != self.revision:
            made = Snapshot.from_text(
                self.uri, self.revision, self.language, self.text()
            )
            self._snapshot = made
        return made

    def byte_of(self, place: DocumentPlace) -> ByteOffset:
        """Turn an editor position into an offset of the snapshot's data."""
        line, index = self._locate(place)
        above = "".join(self.lines[:line]) + self.lines[line][:index]
        return ByteOffset(_num_plain_bytes(above))

    def place_of(self, offset: int) -> DocumentPlace:
        """Turn an offset of the snapshot's data into an editor position."""
        data = self.snapshot().data
        line = data.count(b"\n", 0, offset)
        start = data.rfind(b"\n", 0, offset) + 1
        # Code points, because lone surrogates take other units here than there.
        index = len(data[start:offset].decode("utf-8", "ignore"))
        return DocumentPlace(
            line, num_units_of(self.lines[line][:index], self.encoding)
        )

    def _locate(self, place: DocumentPlace) -> tuple[int, int]:
        """Find the line and the code point in it that a position means."""
        last = len(self.lines) - 1
        if place.line < 0:
            return 0, 0
        if place.line > last:
            return last, len(self.lines[last])
        bare = self.lines[place.line].rstrip("\r\n")
        return place.line, index_of_units(bare, place.character, self.encoding)


class DocumentStore:
    """All open documents of one editor."""

    def __init__(self) -> None:
        self.encoding: Encoding = "utf-16"
        self._documents: dict[str, OpenDocument] = {}
        self._revisions = itertools.count(1)

    def __len__(self) -> int:
        return len(self._documents)

    def __iter__(self) -> Iterator[OpenDocument]:
        return iter(list(self._documents.values()))

    def open(self, uri: str, language: str, version: int, text: str) -> OpenDocument:
        """Take a document; one that is open already is replaced."""
        document = OpenDocument(uri, language.lower(), self.encoding, version)
        document.replace_all(text)
        document.revision = self.next_revision()
        self._documents[uri] = document
        return document

    def change(
        self, uri: str, version: int, changes: Iterable[Change]
    ) -> OpenDocument | None:
        """Apply edits in their order; None if the document is not open."""
        document = self._documents.get(uri)
        if document is None:
            return None
        for change in changes:
            document.apply(change)
        document.version = version
        document.revision = self.next_revision()
        return document

    def lose(self, uri: str) -> None:
        """Note that an edit was missed, so that the text cannot be trusted."""
        document = self._documents.get(uri)
        if document is not None:
            document.in_sync = False
            document.revision = self.next_revision()

    def close(self, uri: str) -> None:
        """Forget a document; one that is not open is no error."""
        self._documents.pop(uri, None)

    def next_revision(self) -> int:
        """Give a number that no text has had."""
        return next(self._revisions)

    def get(self, uri: str) -> OpenDocument | None:
        """Give an open document, or None."""
        return self._documents.get(uri)


def _num_plain_bytes(text: str) -> int:
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return len(plain.encode("utf-8", "replace"))
