"""The beginning and the end of a conversation."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from lsprotocol import types

from lsp.client import ClientProfile
from lsp.debounce import Debounce
from lsp.features import completion
from lsp.features.configuration import apply_settings, pull, reload_files, watch
from lsp.features.sync import tell_service
from lsp.settings import initial_values

if TYPE_CHECKING:
    from lsp.convert import Encoding
    from lsp.server import Server

# "initialized" follows at once from every client that sends it at all.
GREETING_SECONDS = 2.0


def register(server: Server) -> None:
    """Begin when the client begins, end when it ends."""
    greeted = asyncio.Event()

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        client = ClientProfile.of(params)
        server.client = client
        server.debounce = Debounce(client.wait)
        encoding = server.workspace.position_encoding
        # A member of the enumeration if the client names no encoding, else plain text.
        name = types.PositionEncodingKind(encoding).value
        server.documents.encoding = cast("Encoding", name)
        server.settings.initial = initial_values(params.initialization_options)
        if not client.has_inline_completion:
            completion.register(server)
        server.spawn(_begin(server, greeted))

    @server.feature(types.INITIALIZED)
    def initialized(_params: types.InitializedParams) -> None:
        greeted.set()

    @server.feature(types.SHUTDOWN)
    async def shutdown(_params: Any) -> None:
        server.latest.drop_all()
        await server.options.at_shutdown()


async def _begin(server: Server, greeted: asyncio.Event) -> None:
    """Read the settings from everywhere and start the service."""
    workspace = server.client.workspace
    settings = server.settings
    await reload_files(server)
    try:
        # A client that never says "initialized" cannot be asked, but is served.
        await asyncio.wait_for(greeted.wait(), GREETING_SECONDS)
    except TimeoutError:
        pass
    else:
        await pull(server)
        server.spawn(watch(server))
    apply_settings(server)
    await server.host.start(settings.for_folder(), workspace)
    server.host.configure(settings.for_folder())
    for document in server.documents:
        tell_service(server, document.uri)
    server.host.notify()
