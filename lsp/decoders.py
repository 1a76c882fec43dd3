"""Which decoder takes a method's parameters; the rest is left to pygls' types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from lsp import decode, decode_notebook

if TYPE_CHECKING:
    from collections.abc import Callable

DECODERS: dict[str, Callable[[Any], Any]] = {
    types.TEXT_DOCUMENT_INLINE_COMPLETION: decode.decode_ask,
    types.TEXT_DOCUMENT_COMPLETION: decode.decode_ask,
    types.TEXT_DOCUMENT_DID_OPEN: decode.decode_opened,
    types.TEXT_DOCUMENT_DID_CHANGE: decode.decode_changed,
    types.TEXT_DOCUMENT_DID_CLOSE: decode.decode_named,
    types.TEXT_DOCUMENT_DID_SAVE: decode.decode_named,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: decode.decode_settings,
    "textDocument/didFocus": decode.decode_named,
    "textDocument/didShowCompletion": decode.decode_offered,
    "textDocument/didPartiallyAcceptCompletion": decode.decode_offered,
    types.NOTEBOOK_DOCUMENT_DID_OPEN: decode_notebook.decode_notebook_opened,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: decode_notebook.decode_notebook_changed,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: decode_notebook.decode_notebook_closed,
}
