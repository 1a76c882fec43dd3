"""Notebooks opened, changed and closed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from lsp.addresses import canonical_uri
from lsp.features.sync import forget, tell_service

if TYPE_CHECKING:
    from lsp.decode_notebook import (
        NotebookChanged,
        NotebookClosed,
        NotebookOpened,
        Splice,
    )
    from lsp.server import Server

logger = logging.getLogger(__name__)


def register(server: Server) -> None:
    """Keep the notebooks in step with the editor."""
    documents, notebooks = server.documents, server.notebooks

    def opened(params: NotebookOpened) -> None:
        for text in params.texts:
            documents.open(text.uri, text.language, text.version, text.text)
        notebooks.open(params.uri, params.cells)
        _tell(server, params.uri)

    def changed(params: NotebookChanged) -> None:
        server.debounce.changed(server.now())
        server.latest.drop(params.uri)
        _change(server, params)
        _tell(server, params.uri)

    def closed(params: NotebookClosed) -> None:
        server.latest.drop(params.uri)
        cells = {*params.cells, *(c.uri for c in notebooks.cells_of(params.uri))}
        notebooks.close(params.uri)
        for uri in cells:
            server.latest.drop(uri)
            documents.close(uri)
        forget(server, params.uri)

    def undecodable(params: Any) -> None:
        """Distrust a whole notebook: nobody knows which cell the change was in."""
        notebook = params.get("notebookDocument") if isinstance(params, dict) else None
        uri = notebook.get("uri") if isinstance(notebook, dict) else None
        if not isinstance(uri, str):
            return
        for cell in notebooks.cells_of(canonical_uri(uri)):
            documents.lose(cell.uri)
            server.latest.drop(notebooks.key_of(cell.uri))

    server.listen(types.NOTEBOOK_DOCUMENT_DID_OPEN, opened)
    server.listen(types.NOTEBOOK_DOCUMENT_DID_CHANGE, changed)
    server.listen(types.NOTEBOOK_DOCUMENT_DID_CLOSE, closed)
    server.listen_undecodable(types.NOTEBOOK_DOCUMENT_DID_CHANGE, undecodable)


def _change(server: Server, params: NotebookChanged) -> None:
    if params.splice is not None:
        _splice(server, params.uri, params.splice)
    for cell in params.kinds:
        server.notebooks.set_kind(cell)
    for edit in params.edits:
        server.latest.drop(edit.uri)
        document = server.documents.change(edit.uri, edit.version, edit.changes)
        if document is None:
            logger.warning("a change of a cell that is not open")


def _splice(server: Server, uri: str, splice: Splice) -> None:
    for text in splice.opened:
        server.documents.open(text.uri, text.language, text.version, text.text)
    if server.notebooks.splice(uri, splice.start, splice.num_removed, splice.cells):
        for closed in splice.closed:
            server.documents.close(closed)
    else:
        logger.warning("a change of a notebook that is not open")


def _tell(server: Server, uri: str) -> None:
    """Tell the service the joined text, once per language in the notebook."""
    told: set[str] = set()
    for cell in server.notebooks.cells_of(uri):
        document = server.documents.get(cell.uri)
        if cell.is_code and document is not None and document.language not in told:
            told.add(document.language)
            tell_service(server, cell.uri)
