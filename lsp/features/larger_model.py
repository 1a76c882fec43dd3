"""Asks once whether the larger model may be fetched, and fetches it.

Only where it would run well (`codekv.model.library.choice` decides). The smaller model
answers until the larger one is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from codekv.errors import CodekvError
from codekv.model.library.catalog import LARGE
from lsp.daemon_thread import aside
from lsp.protocol import RefusedError

if TYPE_CHECKING:
    from codekv.model.library.store import StoredModel
    from lsp.server import Server

FETCH = "Fetch it"
DECLINE = "No, keep the small one"

ANSWER_SECONDS = 3600.0
"""A person may be away; the question then comes again at the next start."""


def register(server: Server) -> None:
    """Ask when the service says that there is something to ask."""
    asked = False

    def changed() -> None:
        nonlocal asked
        if asked or not server.client.has_questions:
            return
        if server.protocol.is_initialized and server.host.status().offer:
            asked = True
            server.spawn(_ask(server))

    server.host.subscribe(changed)
    server.at_end(lambda: server.host.unsubscribe(changed))


async def _ask(server: Server) -> None:
    size = f"{LARGE.num_bytes / 1e9:.1f} GB"
    text = f"codekv: {LARGE.name} would run well on this machine and writes better code"
    question = types.ShowMessageRequestParams(
        types.MessageType.Info,
        f"{text}. Fetch it ({size}, once)? The smaller model answers meanwhile.",
        [types.MessageActionItem(FETCH), types.MessageActionItem(DECLINE)],
    )
    try:
        answer = await server.protocol.ask(
            types.WINDOW_SHOW_MESSAGE_REQUEST, question, ANSWER_SECONDS
        )
    except RefusedError:
        return
    title = answer.get("title") if isinstance(answer, dict) else None
    title = title or getattr(answer, "title", None)
    if title not in (FETCH, DECLINE):
        return  # closed without an answer
    try:
        stored = await aside(lambda: _answered(agreed=title == FETCH))
    except CodekvError as error:
        _show(server, types.MessageType.Warning, str(error))
        return
    if stored is not None and server.host.service is not None:
        server.host.service.reload()
        server.host.notify()
        _show(server, types.MessageType.Info, f"{stored.name} is here and answers soon")


def _answered(*, agreed: bool) -> StoredModel | None:
    """Remember the answer, and fetch the model if it is yes; blocks for minutes."""
    from codekv.model.library.choice import note_consent
    from codekv.model.library.resolve import obtain

    note_consent(agreed=agreed)
    return obtain(LARGE.name) if agreed else None


def _show(server: Server, kind: types.MessageType, line: str) -> None:
    server.window_show_message(types.ShowMessageParams(kind, f"codekv: {line}"))
