"""Raw notebook notifications to values; the counterpart of `lsp.decode`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lsp.decode import (
    Changed,
    Opened,
    change_of,
    list_of,
    number_of,
    opened_of,
    table_of,
    uri_of,
)
from lsp.notebooks import Cell

if TYPE_CHECKING:
    from collections.abc import Iterable

# `NotebookCellKind.Code` of the protocol.
_CODE = 2


@dataclass(frozen=True, slots=True)
class NotebookOpened:
    """A notebook, its cells in order, and their texts."""

    uri: str
    cells: tuple[Cell, ...]
    texts: tuple[Opened, ...]


@dataclass(frozen=True, slots=True)
class Splice:
    """Cells that take the place of others, and the documents this opens and closes."""

    start: int
    num_removed: int
    cells: tuple[Cell, ...]
    opened: tuple[Opened, ...]
    closed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotebookChanged:
    """What has changed in a notebook; applied in the order of the attributes."""

    uri: str
    splice: Splice | None
    kinds: tuple[Cell, ...]
    edits: tuple[Changed, ...]


@dataclass(frozen=True, slots=True)
class NotebookClosed:
    """A notebook and its cells."""

    uri: str
    cells: tuple[str, ...]


def decode_notebook_opened(value: Any) -> NotebookOpened:
    """Decode `notebookDocument/didOpen`."""
    params = table_of(value)
    notebook = table_of(params.get("notebookDocument"))
    return NotebookOpened(
        uri=uri_of(notebook.get("uri")),
        cells=_cells(notebook.get("cells")),
        texts=_texts(params.get("cellTextDocuments")),
    )


def decode_notebook_changed(value: Any) -> NotebookChanged:
    """Decode `notebookDocument/didChange`."""
    params = table_of(value)
    change = table_of(params.get("change"))
    cells = change.get("cells")
    cells = {} if cells is None else table_of(cells)
    structure = cells.get("structure")
    return NotebookChanged(
        uri=uri_of(table_of(params.get("notebookDocument")).get("uri")),
        splice=None if structure is None else _splice(table_of(structure)),
        kinds=_cells(cells.get("data")),
        edits=tuple(_edit(each) for each in list_of(cells.get("textContent"))),
    )


def decode_notebook_closed(value: Any) -> NotebookClosed:
    """Decode `notebookDocument/didClose`."""
    params = table_of(value)
    notebook = table_of(params.get("notebookDocument"))
    return NotebookClosed(
        uri_of(notebook.get("uri")), _uris(params.get("cellTextDocuments"))
    )


def _cells(value: Any) -> tuple[Cell, ...]:
    tables: Iterable[dict[str, Any]] = map(table_of, list_of(value))
    return tuple(
        Cell(uri_of(each.get("document")), each.get("kind") == _CODE) for each in tables
    )


def _texts(value: Any) -> tuple[Opened, ...]:
    return tuple(opened_of(each) for each in list_of(value))


def _uris(value: Any) -> tuple[str, ...]:
    return tuple(uri_of(table_of(each).get("uri")) for each in list_of(value))


def _splice(structure: dict[str, Any]) -> Splice:
    array = table_of(structure.get("array"))
    return Splice(
        start=number_of(array.get("start")),
        num_removed=number_of(array.get("deleteCount")),
        cells=_cells(array.get("cells")),
        opened=_texts(structure.get("didOpen")),
        closed=_uris(structure.get("didClose")),
    )


def _edit(value: Any) -> Changed:
    table = table_of(value)
    document = table_of(table.get("document"))
    version = document.get("version")
    return Changed(
        uri=uri_of(document.get("uri")),
        version=version if isinstance(version, int) else 0,
        changes=tuple(change_of(each) for each in list_of(table.get("changes"))),
    )
