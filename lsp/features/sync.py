"""Documents opened, changed, closed, saved and looked at."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from lsp.decode import decode_named

if TYPE_CHECKING:
    from lsp.decode import Changed, Named, Opened
    from lsp.server import Server

logger = logging.getLogger(__name__)


def register(server: Server) -> None:
    """Keep the documents in step with the editor."""

    def opened(params: Opened) -> None:
        server.documents.open(params.uri, params.language, params.version, params.text)
        tell_service(server, params.uri)

    def changed(params: Changed) -> None:
        server.debounce.changed(server.now())
        server.latest.drop(server.notebooks.key_of(params.uri))
        document = server.documents.change(params.uri, params.version, params.changes)
        if document is None:
            logger.warning("a change of a document that is not open")
            return
        tell_service(server, params.uri)

    def closed(params: Named) -> None:
        if params.uri is not None:
            server.latest.drop(params.uri)
            server.documents.close(params.uri)
            forget(server, params.uri)

    def undecodable(params: Any) -> None:
        uri = decode_named(params).uri
        if uri is not None:
            server.documents.lose(uri)
            server.latest.drop(server.notebooks.key_of(uri))

    def forget_all() -> None:
        for document in server.documents:
            forget(server, document.uri)

    server.at_end(forget_all)
    _register_focus(server)
    server.listen(types.TEXT_DOCUMENT_DID_OPEN, opened)
    server.listen(types.TEXT_DOCUMENT_DID_CHANGE, changed)
    server.listen(types.TEXT_DOCUMENT_DID_CLOSE, closed)
    server.listen_undecodable(types.TEXT_DOCUMENT_DID_CHANGE, undecodable)


def _register_focus(server: Server) -> None:
    @server.feature("textDocument/didFocus")
    def focused(params: Named) -> None:
        service = server.host.service
        if service is not None:
            uri = params.uri
            service.document_focused(uri and server.views.service_uri(uri))


def tell_service(server: Server, uri: str) -> None:
    """Tell the service the present text of a document, unless it must stay out."""
    service, view = server.host.service, server.views.of(uri)
    if service is None or view is None:
        return
    if server.guard.silence(view) is None:
        service.document_changed(view.snapshot)
    else:
        # It may have been harmless before this change.
        service.document_closed(view.snapshot.uri)


def forget(server: Server, uri: str) -> None:
    """Tell the service that a document or notebook is closed."""
    known_as = server.views.service_uri(uri)
    server.guard.forget(known_as)
    if server.host.service is not None:
        server.host.service.document_closed(known_as)
