"""Open notebooks: which cells they have, in which order, and their joined text.

Cells are documents of the store like any other; this knows only their order. The
service sees one text per notebook and language, so that the cells above the cursor
are its context.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codekv.text.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lsp.documents import DocumentStore, OpenDocument


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell's place in a notebook's order."""

    uri: str
    is_code: bool


@dataclass(slots=True)
class Notebook:
    """One notebook.

    Attributes:
        revision: Grows whenever the order or kind of cells changes.
    """

    uri: str
    cells: list[Cell] = field(default_factory=list)
    revision: int = 0


class NotebookStore:
    """All open notebooks of one client."""

    def __init__(self, documents: DocumentStore) -> None:
        self._documents = documents
        self._notebooks: dict[str, Notebook] = {}
        self._by_cell: dict[str, Notebook] = {}

    def __len__(self) -> int:
        return len(self._notebooks)

    def open(self, uri: str, cells: Iterable[Cell]) -> Notebook:
        """Take a notebook; one that is open already is replaced."""
        self.close(uri)
        notebook = Notebook(uri)
        self._notebooks[uri] = notebook
        self._put(notebook, 0, 0, list(cells))
        return notebook

    def splice(
        self, uri: str, start: int, num_removed: int, cells: Sequence[Cell]
    ) -> Notebook | None:
        """Replace some cells by others; None if the notebook is not open."""
        notebook = self._notebooks.get(uri)
        if notebook is not None:
            self._put(notebook, start, num_removed, cells)
        return notebook

    def set_kind(self, cell: Cell) -> None:
        """Note that a cell is code or no longer is."""
        notebook = self._by_cell.get(cell.uri)
        if notebook is not None:
            places = [i for i, c in enumerate(notebook.cells) if c.uri == cell.uri]
            for place in places:
                self._put(notebook, place, 1, [cell])

    def close(self, uri: str) -> None:
        """Forget a notebook; its cells' documents are not touched."""
        notebook = self._notebooks.pop(uri, None)
        for cell in notebook.cells if notebook else ():
            self._by_cell.pop(cell.uri, None)

    def cells_of(self, uri: str) -> list[Cell]:
        """Give a notebook's cells in order; none if it is not open."""
        notebook = self._notebooks.get(uri)
        return list(notebook.cells) if notebook else []

    def key_of(self, uri: str) -> str:
        """Tell under which uri the service knows a document: its notebook's or its own.

        Cells of prose stand for themselves.
        """
        notebook = self._notebook_of_code(uri)
        return uri if notebook is None else notebook.uri

    def join(self, document: OpenDocument) -> tuple[Snapshot, int] | None:
        """Join the cells in a cell's language.

        Returns:
            The joined text and the offset in it where the cell begins; None if the
            document is not a cell of code.
        """
        notebook = self._notebook_of_code(document.uri)
        if notebook is None:
            return None
        parts: list[bytes] = []
        version, num_bytes, base_byte = notebook.revision, 0, 0
        for cell in notebook.cells:
            other = self._documents.get(cell.uri)
            if other is None or not cell.is_code or other.language != document.language:
                continue
            if parts:
                gap = _gap_after(parts[-1])
                parts.append(gap)
                num_bytes += len(gap)
            if other is document:
                base_byte = num_bytes
            parts.append(other.snapshot().data)
            num_bytes += len(parts[-1])
            version = max(version, other.revision)
        snapshot = Snapshot(
            uri=notebook.uri,
            version=version,
            language=document.language,
            data=b"".join(parts),
            eol=document.snapshot().eol,
        )
        return snapshot, base_byte

    def _notebook_of_code(self, uri: str) -> Notebook | None:
        notebook = self._by_cell.get(uri)
        if notebook is None:
            return None
        is_code = any(cell.uri == uri and cell.is_code for cell in notebook.cells)
        return notebook if is_code else None

    def _put(
        self, notebook: Notebook, start: int, num_removed: int, cells: Sequence[Cell]
    ) -> None:
        for cell in notebook.cells[start : start + num_removed]:
            self._by_cell.pop(cell.uri, None)
        notebook.cells[start : start + num_removed] = cells
        for cell in notebook.cells:
            self._by_cell[cell.uri] = notebook
        notebook.revision = self._documents.next_revision()


def _gap_after(data: bytes) -> bytes:
    """Separate cells by one empty line, whether or not one ends in a line end."""
    return b"\n" if data.endswith(b"\n") else b"\n\n"
