"""`textDocument/completion`: for editors that have no inline completion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from codekv.completion.api import Trigger
from lsp.features.inline import accepted_command, range_of
from lsp.protocol import eager
from lsp.questions import ShownOffer, pose, resolve

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from lsp.decode import CompletionParams
    from lsp.questions import Question
    from lsp.server import Server

TRIGGERS = (" ", ".", "(", "[", "{", ",", "=", ":")
# A completion menu is about so wide; what is longer would be cut by the editor.
LABEL_LENGTH = 60


def register(server: Server) -> None:
    """Answer requests for list entries."""
    options = types.CompletionOptions(trigger_characters=TRIGGERS)

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, options)
    @eager
    def completion(ask: CompletionParams) -> Awaitable[types.CompletionList]:
        # This request has no kind for "a person asked": its Invoked means typing too.
        return _answer(server, pose(server, ask, Trigger.AUTOMATIC))


async def _answer(server: Server, question: Question | None) -> types.CompletionList:
    offers = None if question is None else await resolve(server, question)
    # Incomplete, so that the editor asks again instead of using an old range.
    items = [] if question is None else [_item(question, o) for o in offers or ()]
    return types.CompletionList(is_incomplete=True, items=items)


def _item(question: Question, offer: ShownOffer) -> types.CompletionItem:
    typed = question.request.snapshot.data[
        offer.item.start_byte : question.request.cursor_byte
    ]
    text = offer.item.text
    return types.CompletionItem(
        label=_label(text, typed.decode("utf-8", "replace")),
        kind=types.CompletionItemKind.Text,
        detail="codekv",
        documentation=types.MarkupContent(types.MarkupKind.PlainText, text),
        filter_text=text,
        insert_text_format=types.InsertTextFormat.PlainText,
        insert_text_mode=types.InsertTextMode.AsIs,
        text_edit=types.TextEdit(range_of(offer), text),
        command=accepted_command(offer),
    )


def _label(text: str, typed: str) -> str:
    """Show what would be new, in one short line."""
    lines = text[len(typed) :].strip().splitlines() or [text.strip()]
    label = lines[0]
    is_cut = len(lines) > 1 or len(label) > LABEL_LENGTH
    return label[:LABEL_LENGTH] + ("…" if is_cut else "")
