"""Commands, and what the editor tells about offered items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codekv.completion.api import Feedback
from lsp.convert import index_of_units
from lsp.features.inline import ACCEPTED
from lsp.features.status import full_report

if TYPE_CHECKING:
    from lsp.decode import Offered
    from lsp.server import Server


def register(server: Server) -> None:
    """Take commands and feedback."""
    host = server.host

    @server.command(ACCEPTED)
    def accepted(*arguments: Any) -> None:
        _feed(server, arguments[0] if arguments else None, Feedback.ACCEPTED)

    @server.command("codekv.pause")
    def pause(*_arguments: Any) -> None:
        host.pause(paused=True)

    @server.command("codekv.resume")
    def resume(*_arguments: Any) -> None:
        host.pause(paused=False)

    @server.command("codekv.clearCache")
    def clear_cache(*_arguments: Any) -> None:
        if host.service is not None:
            host.service.clear_cache()
            host.notify()

    @server.command("codekv.statistics")
    def statistics(*_arguments: Any) -> dict[str, Any]:
        return full_report(server)

    @server.feature("textDocument/didShowCompletion")
    def shown(params: Offered) -> None:
        _feed(server, params.item_id, Feedback.SHOWN)

    @server.feature("textDocument/didPartiallyAcceptCompletion")
    def partly_accepted(params: Offered) -> None:
        text = params.text
        # Counted in UTF-16 from the start of the text, in every encoding.
        units = params.accepted_units
        end = len(text) if units is None else index_of_units(text, units, "utf-16")
        num_bytes = len(text[:end].encode("utf-8", "replace"))
        _feed(server, params.item_id, Feedback.PARTIALLY_ACCEPTED, num_bytes)


def _feed(server: Server, item_id: Any, kind: Feedback, num_bytes: int = 0) -> None:
    service = server.host.service
    if service is not None and isinstance(item_id, str):
        service.feedback(item_id, kind, num_bytes)
