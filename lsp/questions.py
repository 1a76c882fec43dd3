"""From a completion request to checked items, for both of LSP's completion methods.

Freezes the document when the request comes, lets the newest question of a document
win, keeps the user's own waiting time if one is set, asks the service, and checks the
answer against the document as it is then. Decides nothing about the text of a
completion.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.completion.api import AnswerSource, Completion, Request, Selected, Trigger
from codekv.errors import CancelledWorkError, CodekvError, DocumentError
from lsp.documents import TextSpan

if TYPE_CHECKING:
    from codekv.completion.api import Item
    from lsp.decode import CompletionParams
    from lsp.latest import RequestSlot
    from lsp.server import Server
    from lsp.views import View

logger = logging.getLogger(__name__)

# Seconds before a status line says that something is computed; less would flicker.
SHOW_WORKING_S = 0.1
_NOTHING = Completion(source=AnswerSource.NONE)


@dataclass(frozen=True, slots=True)
class Question:
    """A request with its document as it was when the request came."""

    uri: str
    view: View
    request: Request
    turn: RequestSlot
    wait: float


@dataclass(frozen=True, slots=True)
class ShownOffer:
    """An item in the editor's positions."""

    item: Item
    span: TextSpan


def pose(
    server: Server, ask: CompletionParams, trigger: Trigger | None = None
) -> Question | None:
    """Freeze the document and become its newest question.

    Returns:
        None if there is nothing to ask about: the document is not open, its text is
        not certain, or it must stay out.
    """
    key = server.notebooks.key_of(ask.uri)
    turn = server.latest.take(key)
    view = server.views.of(ask.uri)
    server.silence = None if view is None else server.guard.silence(view)
    if view is None or server.silence is not None:
        server.latest.release(key, turn)
        server.host.notify()
        return None
    config = server.config_for(ask.uri).completion
    usual = server.settings.for_folder().completion
    now = server.now()
    if trigger is None:
        trigger = server.client.trigger_of(ask, server.debounce.since_change(now))
    fixed = None if config.debounce_ms == "auto" else config.debounce_ms / 1000
    wait = server.debounce.wait(now, fixed)
    is_invoked = trigger is Trigger.INVOKED
    # A wait of the user's own, and the end of a burst, come before any work.
    is_strict = fixed is not None or server.debounce.is_strict
    request = Request(
        snapshot=view.snapshot,
        cursor_byte=view.byte_of(ask.place),
        trigger=trigger,
        max_items=config.candidates if is_invoked else 1,
        selected=_selected(view, ask),
        max_tokens=None if config == usual else config.max_tokens,
        patience_s=0.0 if is_invoked or is_strict else wait,
    )
    strict = wait if is_strict and not is_invoked else 0.0
    return Question(ask.uri, view, request, turn, strict)


async def resolve(server: Server, question: Question) -> list[ShownOffer] | None:
    """Get the items for a question.

    Returns:
        None if something newer has come or the service failed, so that the editor
        keeps what it shows; an empty list if there is nothing to offer.
    """
    turn, view = question.turn, question.view
    try:
        completion = await turn.run(_ask_service(server, question))
    except CancelledWorkError:
        return None
    except DocumentError as error:
        logger.info("no completion: %s", error)
        return []
    except CodekvError as error:
        logger.warning("no completion: %s", error)
        return None
    except Exception:
        logger.exception("the service failed")
        return None
    finally:
        server.latest.release(server.notebooks.key_of(question.uri), turn)
        server.host.notify()
    if completion is None or not _is_fresh(server, question):
        return None
    offers = (_offer(view, question.request, item) for item in completion.items)
    return [offer for offer in offers if offer is not None]


async def _ask_service(server: Server, question: Question) -> Completion:
    service = server.host.service
    if service is None:
        return _NOTHING
    if question.wait:
        # What is known already is told at once, or shown text would flicker.
        known = service.peek(question.request)
        if known is not None:
            return known
        await asyncio.sleep(question.wait)
    soon = asyncio.get_running_loop().call_later(SHOW_WORKING_S, server.host.notify)
    try:
        with server.host.waiting():
            completion = await service.complete(question.request)
    finally:
        soon.cancel()
    if completion.source is AnswerSource.MODEL:
        timing = completion.timing
        server.debounce.answered((timing.prefill + timing.decode) / 1000)
    return completion


def _is_fresh(server: Server, question: Question) -> bool:
    """Whether the document still has the text that was asked about."""
    view = server.views.of(question.uri)
    return view is not None and view.revision == question.view.revision


def _selected(view: View, ask: CompletionParams) -> Selected | None:
    entry = ask.selected
    if entry is None:
        return None
    start, end = (view.byte_of(place) for place in entry.span)
    return Selected(start, max(start, end), entry.text)


def _offer(view: View, request: Request, item: Item) -> ShownOffer | None:
    """Put an item into the editor's positions; None if it breaks its contract.

    An item that does would delete or misplace text of the user's.
    """
    data, cursor = request.snapshot.data, request.cursor_byte
    start, end = item.start_byte, item.end_byte
    if not view.base_byte <= start <= cursor <= end <= view.end_byte:
        fault = "its range does not hold the cursor"
    elif b"\n" in data[start:end]:
        fault = "its range leaves the line"
    elif request.selected is not None and not _extends(item, request.selected):
        fault = "it does not extend the popup's entry"
    elif request.selected is None and not _keeps(item, data[start:cursor]):
        fault = "it does not begin with what stands before the cursor"
    else:
        return ShownOffer(item, TextSpan(view.place_of(start), view.place_of(end)))
    logger.warning("item %s dropped: %s", item.id, fault)
    return None


def _keeps(item: Item, typed: bytes) -> bool:
    return item.text.startswith(typed.decode("utf-8", "replace"))


def _extends(item: Item, selected: Selected) -> bool:
    span = (item.start_byte, item.end_byte)
    is_same = span == (selected.start_byte, selected.end_byte)
    return is_same and item.text.startswith(selected.text)
