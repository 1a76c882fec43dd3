"""A document frozen for one question, be it a file or a notebook's joined cells.

The only place that knows how positions in what the editor shows relate to offsets in
what the service sees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codekv.units import ByteOffset

if TYPE_CHECKING:
    from codekv.text.snapshot import Snapshot
    from lsp.documents import DocumentPlace, DocumentStore, OpenDocument
    from lsp.notebooks import NotebookStore


@dataclass(frozen=True, slots=True)
class View:
    """What the service sees of a document at one moment.

    Attributes:
        snapshot: A file, or all cells of a notebook in the language of one.
        document: The file or the cell in which the person types.
        base_byte: Where the document's text begins in the snapshot.
    """

    snapshot: Snapshot
    document: OpenDocument
    base_byte: int = 0

    @property
    def revision(self) -> int:
        """Names the text for good."""
        return self.snapshot.version

    @property
    def end_byte(self) -> int:
        """Where the document's text ends in the snapshot."""
        return self.base_byte + len(self.document.snapshot().data)

    def byte_of(self, place: DocumentPlace) -> ByteOffset:
        """Turn an editor position into an offset of the snapshot."""
        return ByteOffset(self.base_byte + self.document.byte_of(place))

    def place_of(self, offset: int) -> DocumentPlace:
        """Turn an offset of the snapshot into an editor position."""
        return self.document.place_of(offset - self.base_byte)


class Views:
    """Finds what a document's uri stands for.

    Args:
        documents: The client's documents.
        notebooks: The client's notebooks.
        number: Tells this client from others of the same service; the first is 1.
    """

    def __init__(
        self, documents: DocumentStore, notebooks: NotebookStore, number: int = 1
    ) -> None:
        self._documents = documents
        self._notebooks = notebooks
        self._number = number

    def service_uri(self, uri: str) -> str:
        """Tell under which uri the service knows a document.

        Two clients may have the same file open with different texts; a fragment keeps
        them apart and the path readable.
        """
        key = self._notebooks.key_of(uri)
        if self._number == 1:
            return key
        return f"{key}{'&' if '#' in key else '#'}client-{self._number}"

    def of(self, uri: str) -> View | None:
        """Freeze a document; None if it is not open or its text is not certain."""
        document = self._documents.get(uri)
        if document is None or not document.in_sync:
            return None
        joined = self._notebooks.join(document)
        snapshot, base_byte = joined or (document.snapshot(), 0)
        known_as = self.service_uri(uri)
        if known_as != snapshot.uri:
            snapshot = replace(snapshot, uri=known_as)
        return View(snapshot, document, base_byte)
