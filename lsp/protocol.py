"""JSON-RPC in and out: every request gets exactly one answer, whatever it holds.

Between pygls' dispatch and the transport. Replaces what pygls does with messages it
cannot decode (nothing), with handlers that must see the document as it was when the
message came, and with document texts, which `lsp.documents` owns. Knows no feature.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from typing import TYPE_CHECKING, Any, TypeVar

from lsprotocol import types
from pygls.protocol import JsonRPCRequestMessage, LanguageServerProtocol, lsp_method
from pygls.protocol.json_rpc import JsonRPCNotification

from lsp.decode import minimal_initialize
from lsp.decoders import DECODERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from lsp.server import Server

logger = logging.getLogger(__name__)

_Codes = types.ErrorCodes
Handler = TypeVar("Handler", bound="Callable[..., Any]")


def eager(handler: Handler) -> Handler:
    """Mark a handler that does its first part when the message comes.

    It is no coroutine function but returns an awaitable, which runs as a task.
    """
    handler.is_eager = True  # type: ignore[attr-defined]
    return handler


class RefusedError(Exception):
    """The client answered a request of ours with an error, or not at all."""


class Protocol(LanguageServerProtocol):
    """One client's conversation."""

    _server: Server

    def __init__(self, server: Server, converter: Any) -> None:
        super().__init__(server, converter)
        self.is_initialized = False
        self._questions: dict[str, asyncio.Future[Any]] = {}
        self._question_ids = itertools.count(1)

    @property
    def has_shut_down(self) -> bool:
        """Whether the client has asked for the end."""
        return self._shutdown

    # What comes in

    def receive(self, body: bytes) -> None:
        """Handle one message; never raises on account of what it holds."""
        try:
            data = json.loads(body)
        except (ValueError, RecursionError):
            self._refuse(None, _Codes.ParseError, "not JSON")
            return
        if not isinstance(data, dict):
            self._refuse(None, _Codes.InvalidRequest, "not a JSON-RPC object")
        elif "method" in data:
            self._receive_call(data, data["method"])
        else:
            self._receive_answer(data)

    def _receive_call(self, data: dict[str, Any], method: Any) -> None:
        msg_id = data.get("id")
        if "id" in data and (
            isinstance(msg_id, bool) or not isinstance(msg_id, (str, int))
        ):
            self._refuse(msg_id, _Codes.InvalidRequest, "an id is text or a number")
        elif not isinstance(method, str):
            self._refuse(msg_id, _Codes.InvalidRequest, "a method is text")
        elif "id" in data and self._is_notification(method):
            self._refuse(msg_id, _Codes.InvalidRequest, f"{method} takes no id")
        elif self._is_in_order(msg_id, method):
            self._dispatch(data, method)

    def _is_notification(self, method: str) -> bool:
        kind = self.get_message_type(method)
        return kind is not None and not hasattr(kind, "id") and method not in DECODERS

    def _is_in_order(self, msg_id: Any, method: str) -> bool:
        """Refuse what comes before initialize, twice, or after shutdown."""
        code = _Codes.InvalidRequest
        if method == types.EXIT:
            return True
        if self.has_shut_down:
            text = "the server is shutting down"
        elif method == types.INITIALIZE and self.is_initialized:
            text = "already initialized"
        elif method != types.INITIALIZE and not self.is_initialized:
            code, text = _Codes.ServerNotInitialized, "not initialized"
        else:
            return True
        self._refuse(msg_id, code, text)
        return False

    def _dispatch(self, data: dict[str, Any], method: str) -> None:
        try:
            message = self.structure_message(data)
        except Exception as error:  # noqa: BLE001 - data of any shape comes here
            logger.warning("cannot decode %s: %s", method, type(error).__name__)
            text = f"{method}: parameters cannot be understood"
            self._refuse(data.get("id"), _Codes.InvalidParams, text)
            self._server.on_undecodable(method, data.get("params"))
            return
        if method == types.INITIALIZE:
            refusal = self._server.refusal_of(message.params)
            if refusal is not None:
                self._refuse(data.get("id"), _Codes.InvalidRequest, refusal)
                self._server.end(1)
                return
            self.is_initialized = True
        try:
            self.handle_message(message)
        except Exception as error:
            logger.exception("cannot handle %s", method)
            self._refuse(data.get("id"), _Codes.InternalError, type(error).__name__)

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Turn JSON into a message: by our own decoder, else by pygls' type, else raw.

        Raises:
            Exception: Whatever a decoder or the converter makes of a wrong shape.
        """
        method = data["method"]
        data = {**data, "jsonrpc": self.VERSION}
        kind = self.get_message_type(method)
        if method not in DECODERS and kind is not None:
            try:
                return self._converter.structure(data, kind)
            except Exception:
                if method != types.INITIALIZE:
                    raise
            logger.warning("initialize is malformed; most of it is ignored")
            return self._converter.structure(minimal_initialize(data), kind)
        decode = DECODERS.get(method, lambda params: params)
        params = decode(data.get("params"))
        if "id" in data:
            return JsonRPCRequestMessage(data["id"], method, self.VERSION, params)
        return JsonRPCNotification(method, self.VERSION, params)

    def _execute_handler(
        self,
        msg_id: Any,
        handler: Any,
        callback: Any,
        args: Any = None,
        kwargs: Any = None,
    ) -> None:
        """Run `eager` handlers up to their first wait before anything else happens.

        pygls starts coroutines a loop turn later, when the next edit may have been
        applied; a question has to freeze its document first.
        """
        if not getattr(handler, "is_eager", False):
            super()._execute_handler(msg_id, handler, callback, args, kwargs)
            return
        future = asyncio.ensure_future(handler(*args))
        self._request_futures[msg_id] = future
        future.add_done_callback(callback)

    def _handle_cancel_notification(self, msg_id: Any) -> None:
        future = self._request_futures.pop(msg_id, None)
        if future is not None:
            future.cancel()

    # What goes out

    def _refuse(self, msg_id: Any, code: types.ErrorCodes, text: str) -> None:
        """Answer with an error; a notification gets none, unreadable messages do."""
        is_unreadable = code in {_Codes.ParseError, _Codes.InvalidRequest}
        if msg_id is None and not is_unreadable:
            return
        plain = msg_id if isinstance(msg_id, (str, int, float)) else None
        error = {"code": code.value, "message": text}
        self._send_data({"jsonrpc": self.VERSION, "id": plain, "error": error})

    async def ask(self, method: str, params: Any, limit: float) -> Any:
        """Send a request to the client and wait for its raw result.

        Raises:
            RefusedError: An error came, or nothing within `limit` seconds.
        """
        msg_id = f"codekv-{next(self._question_ids)}"
        future = asyncio.get_running_loop().create_future()
        self._questions[msg_id] = future
        plain = self._converter.unstructure(params)
        call = {"jsonrpc": self.VERSION, "id": msg_id, "method": method}
        self._send_data({**call, "params": plain})
        try:
            return await asyncio.wait_for(future, limit)
        except TimeoutError as error:
            raise RefusedError(f"{method}: no answer in {limit} s") from error
        finally:
            del self._questions[msg_id]

    def _receive_answer(self, data: dict[str, Any]) -> None:
        msg_id = data.get("id")
        future = self._questions.get(msg_id) if isinstance(msg_id, str) else None
        if future is None or future.done():
            logger.debug("an answer that nobody waits for")
        elif data.get("error") is not None:
            future.set_exception(RefusedError("the client answered with an error"))
        else:
            future.set_result(data.get("result"))

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_args: Any) -> None:  # type: ignore[override]
        """End this conversation; the process may have others."""
        self._server.on_disconnect()

    # What pygls would do with its own workspace

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: Any) -> None:
        """Hand over to our own documents."""
        self._server.on_notification(types.TEXT_DOCUMENT_DID_OPEN, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: Any) -> None:
        """Hand over to our own documents."""
        self._server.on_notification(types.TEXT_DOCUMENT_DID_CHANGE, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: Any) -> None:
        """Hand over to our own documents."""
        self._server.on_notification(types.TEXT_DOCUMENT_DID_CLOSE, params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(self, params: Any) -> None:
        """Hand over to our own notebooks."""
        self._server.on_notification(types.NOTEBOOK_DOCUMENT_DID_OPEN, params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(self, params: Any) -> None:
        """Hand over to our own notebooks."""
        self._server.on_notification(types.NOTEBOOK_DOCUMENT_DID_CHANGE, params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(self, params: Any) -> None:
        """Hand over to our own notebooks."""
        self._server.on_notification(types.NOTEBOOK_DOCUMENT_DID_CLOSE, params)
