"""`textDocument/inlineCompletion`: ghost text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from lsp.protocol import eager
from lsp.questions import ShownOffer, pose, resolve

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from lsp.decode import CompletionParams
    from lsp.questions import Question
    from lsp.server import Server

ACCEPTED = "codekv.accepted"


def register(server: Server) -> None:
    """Answer requests for ghost text."""

    # Without an options object the capability would not be announced.
    @server.feature(
        types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions()
    )
    @eager
    def inline(ask: CompletionParams) -> Awaitable[types.InlineCompletionList | None]:
        return _answer(server, pose(server, ask))


async def _answer(
    server: Server, question: Question | None
) -> types.InlineCompletionList | None:
    offers = [] if question is None else await resolve(server, question)
    if offers is None:
        return None
    return types.InlineCompletionList([_item(offer) for offer in offers])


def _item(offer: ShownOffer) -> types.InlineCompletionItem:
    return types.InlineCompletionItem(
        insert_text=offer.item.text,
        range=range_of(offer),
        command=accepted_command(offer),
    )


def range_of(offer: ShownOffer) -> types.Range:
    """Give the range that an item replaces."""
    start, end = offer.span
    return types.Range(types.Position(*start), types.Position(*end))


def accepted_command(offer: ShownOffer) -> types.Command:
    """Give the command that tells the server of an accepted item."""
    return types.Command("accepted", ACCEPTED, arguments=[offer.item.id])
