"""One client's server: what it knows of the client, its documents and its service.

Wires the features together; decides nothing about completions.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import FeatureRequestError
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter
from pygls.uris import to_fs_path

from codekv import __version__
from lsp.client import ClientProfile
from lsp.debounce import Debounce
from lsp.documents import DocumentStore
from lsp.features import FEATURES
from lsp.guard import Guard
from lsp.latest import Latest
from lsp.notebooks import NotebookStore
from lsp.protocol import Protocol
from lsp.settings import EditorSettings, token_of
from lsp.views import Views

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from codekv.completion.privacy.exclusion import ExclusionReason
    from codekv.config import Config
    from lsp.host import ServiceHolder

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """On what conditions a client is served.

    Attributes:
        leave: Called once, with an exit code, when the conversation is over.
        at_shutdown: Awaited before a shutdown request is answered.
        token: What the client must present in `initializationOptions.token`, or None.
        number: Tells the clients of one process apart.
        clock: Seconds, for intervals.
    """

    leave: Callable[[int], None]
    at_shutdown: Callable[[], Awaitable[object]]
    token: str | None = None
    number: int = 1
    clock: Callable[[], float] = time.monotonic


class Server(LanguageServer):
    """Serves one client.

    Attributes:
        client: What the client has said about itself; replaced by initialize.
        silence: Why the document asked about last gets no completions, if so.
    """

    protocol: Protocol

    def __init__(self, host: ServiceHolder, options: SessionOptions) -> None:
        self.host = host
        self.options = options
        self.client = ClientProfile()
        self.documents = DocumentStore()
        self.notebooks = NotebookStore(self.documents)
        self.views = Views(self.documents, self.notebooks, options.number)
        self.settings = EditorSettings()
        self.guard = Guard(self._rules_of)
        self.silence: ExclusionReason | None = None
        self.latest = Latest()
        self.debounce = Debounce()
        self._listeners: dict[str, Callable[[Any], None]] = {}
        self._undecodable_listeners: dict[str, Callable[[Any], None]] = {}
        self._at_end: list[Callable[[], None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_over = False
        super().__init__(
            "codekv",
            __version__,
            types.TextDocumentSyncKind.Incremental,
            types.NotebookDocumentSyncOptions(
                [types.NotebookDocumentFilterWithNotebook(notebook="*")]
            ),
            protocol_cls=Protocol,
            converter_factory=default_converter,
        )
        for register in FEATURES:
            register(self)

    # For the features

    def listen(self, method: str, listener: Callable[[Any], None]) -> None:
        """Call `listener` for a notification that pygls handles itself."""
        self._listeners[method] = listener

    def listen_undecodable(self, method: str, listener: Callable[[Any], None]) -> None:
        """Call `listener` with raw parameters that could not be decoded."""
        self._undecodable_listeners[method] = listener

    def at_end(self, action: Callable[[], None]) -> None:
        """Do something when the conversation is over."""
        self._at_end.append(action)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside the conversation; ends with it."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._collect)

    def now(self) -> float:
        """Tell the time in seconds."""
        return self.options.clock()

    def config_for(self, uri: str) -> Config:
        """Give the configuration that holds for a document."""
        return self.settings.for_folder(self.client.folder_of(uri))

    def _rules_of(self, uri: str) -> tuple[Config, Path | None]:
        folder = to_fs_path(self.client.folder_of(uri))
        return self.config_for(uri), Path(folder) if folder else None

    # For the protocol

    def on_notification(self, method: str, params: Any) -> None:
        """Pass a notification to the feature that listens to it."""
        listener = self._listeners.get(method)
        if listener is not None:
            listener(params)

    def on_undecodable(self, method: str, params: Any) -> None:
        """Pass on that a message could not be decoded."""
        listener = self._undecodable_listeners.get(method)
        if listener is not None:
            listener(params)

    def refusal_of(self, params: types.InitializeParams) -> str | None:
        """Tell why a client is not served, or None if it is."""
        wanted = self.options.token
        if wanted is None:
            return None
        given = token_of(params.initialization_options) or ""
        if hmac.compare_digest(given.encode(), wanted.encode()):
            return None
        return "the token in initializationOptions.token is missing or wrong"

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log an internal error; a person who types cannot mend it by a popup."""
        if source is not FeatureRequestError:
            logger.error("outside a request: %s", type(error).__name__)

    # For the transport

    def receive(self, body: bytes) -> None:
        """Take one message."""
        if not self._is_over:
            self.protocol.receive(body)

    @property
    def is_admitted(self) -> bool:
        """Whether the client has introduced itself properly."""
        return self.protocol.is_initialized

    def on_disconnect(self) -> None:
        """End the conversation: the client is gone."""
        self.end(0 if self.protocol.has_shut_down else 1)

    def end(self, exit_code: int) -> None:
        """End the conversation; work for it stops."""
        if self._is_over:
            return
        self._is_over = True
        self.latest.drop_all()
        for action in self._at_end:
            action()
        for task in list(self._tasks):
            task.cancel()
        self.options.leave(exit_code)

    def _collect(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("work beside the conversation failed", exc_info=error)
