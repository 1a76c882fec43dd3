"""What the server is doing: progress while loading, a status for status bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from codekv.completion.api import State, Status
from lsp.models import known_models
from lsp.protocol import RefusedError

if TYPE_CHECKING:
    from codekv.completion.privacy.exclusion import ExclusionReason
    from lsp.server import Server

TOKEN = "codekv-loading"  # noqa: S105 - names a progress bar
# As for questions about settings, and a window may be busy with starting.
CREATE_SECONDS = 5.0


def register(server: Server) -> None:
    """Tell the editor what the server is doing."""
    reporter = _Reporter(server)
    server.host.subscribe(reporter.changed)
    server.at_end(lambda: server.host.unsubscribe(reporter.changed))

    @server.feature("codekv/status")
    def status(_params: Any) -> dict[str, Any]:
        return full_report(server)


def short_report(
    status: Status, silence: ExclusionReason | None = None
) -> dict[str, Any]:
    """Give what a status bar shows.

    Args:
        status: The service's state.
        silence: Why the present document gets no completions, if so.
    """
    message = status.message
    if silence is not None and not message:
        message = f"no completions in this file: {silence.value}"
    report: dict[str, Any] = {
        "state": status.state.value,
        "message": message,
        "model": status.model,
    }
    if status.last is not None:
        tokens, timing = status.last.tokens, status.last.timing
        report["last"] = {
            "total_ms": round(timing.total, 3),
            "ttft_ms": round(timing.ttft, 3),
            "context": tokens.context,
            "exact": tokens.exact,
            "restored": tokens.restored,
            "moved": tokens.moved,
            "computed": tokens.computed,
            "generated": tokens.generated,
            "source": status.last.source.value,
            "reason": status.last.reason,
        }
    return report


def full_report(server: Server) -> dict[str, Any]:
    """Give everything there is to tell."""
    status = server.host.status()
    return {
        **short_report(status, server.silence),
        "metrics": status.metrics,
        "advice": list(status.advice),
        "settled": status.settled,
        "why": status.why,
        "models": known_models(),
    }


class _Reporter:
    """Sends a client what has changed since it was last told."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._told: dict[str, Any] | None = None
        self._has_bar = False
        self._told_message = ""

    def changed(self) -> None:
        """Look at the state and tell the client if it is a new one."""
        if not self._server.protocol.is_initialized:
            return
        status = self._server.host.status()
        report = short_report(status, self._server.silence)
        if report != self._told:
            self._told = report
            self._server.protocol.notify("codekv/didChangeStatus", report)
        self._tell_user(status)
        if status.state is State.LOADING and not self._has_bar:
            self._has_bar = True
            self._server.spawn(self._show_progress())

    def _tell_user(self, status: Status) -> None:
        """Say once what only the user can mend: no model, or not the one wanted."""
        if status.message and status.message != self._told_message:
            text = f"codekv: {status.message}"
            self._server.window_show_message(
                types.ShowMessageParams(types.MessageType.Warning, text)
            )
        self._told_message = status.message

    async def _show_progress(self) -> None:
        server = self._server
        try:
            if server.client.has_progress:
                await server.protocol.ask(
                    types.WINDOW_WORK_DONE_PROGRESS_CREATE,
                    types.WorkDoneProgressCreateParams(TOKEN),
                    CREATE_SECONDS,
                )
                self._progress(types.WorkDoneProgressBegin("codekv: loading the model"))
                await server.host.settled()
                self._progress(types.WorkDoneProgressEnd())
            else:
                await server.host.settled()
        except RefusedError:
            await server.host.settled()
        finally:
            self._has_bar = False

    def _progress(self, value: Any) -> None:
        self._server.protocol.notify(types.PROGRESS, types.ProgressParams(TOKEN, value))
