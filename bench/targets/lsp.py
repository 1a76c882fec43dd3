"""The server as a target: the same traces through a real process over stdio."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from bench.targets.client import LspClient
from codekv.completion.api import AnswerSource, Completion, Item, Timing, TokenCounts
from codekv.config import cache_dir
from codekv.errors import CodekvError
from codekv.processes import module_command, safe_environment

if TYPE_CHECKING:
    from pathlib import Path

    from bench.traces.trace import Ask, Open, TypedEdit
    from codekv.config import Config

COMMAND = module_command("codekv", "serve")
LOADING_S = 300.0
"""The first start converts the model, which takes a minute or more."""


class LspTarget:
    """A server process of our own; `ask` includes the protocol's cost."""

    def __init__(
        self, config: Config, root: Path, command: tuple[str, ...] = COMMAND
    ) -> None:
        self._options = config.model_dump(mode="json", exclude_unset=True)
        self._root = root
        self._command = command
        self._client: LspClient | None = None
        self._metrics: dict[str, Any] = {}

    @property
    def client(self) -> LspClient:
        """The connection to the running server."""
        assert self._client is not None, "start() comes first"
        return self._client

    async def start(self) -> None:
        """Start a server and wait for its model."""
        environment = safe_environment(CODEKV_CACHE_DIR=str(cache_dir()))
        client = LspClient(self._command, self._root, environment, self._options)
        self._client = await client.__aenter__()
        await client.ready(LOADING_S)

    async def open(self, step: Open) -> None:
        """See `Target`."""
        await self.client.open(step.uri, step.language, step.text)

    async def edit(self, step: TypedEdit) -> None:
        """See `Target`."""
        await self.client.replace(step.uri, step.start_byte, step.end_byte, step.text)

    async def focus(self, uri: str) -> None:
        """See `Target`: the protocol has no word for it; the next question tells."""

    async def ask(self, step: Ask) -> Completion:
        """See `Target`."""
        text = await self.client.complete(step.uri, step.cursor_byte)
        return Completion((Item("", text, 0, 0),) if text else ())

    async def account(self, answer: Completion) -> Completion:
        """See `Target`: the server's status tells."""
        return completion_from(answer, (await self.client.status()).get("last"))

    async def settle(self, seconds: float) -> None:
        """See `Target`."""
        await self.client.settle(seconds)

    async def restart(self) -> None:
        """See `Target`."""
        await self.close()
        await self.start()

    async def close(self) -> None:
        """See `Target`."""
        if self._client is not None:
            self._metrics = await self._last_metrics()
            await self._client.__aexit__(None, None, None)
            self._client = None

    @property
    def pid(self) -> int:
        """See `Target`."""
        return self._client.pid if self._client is not None else os.getpid()

    @property
    def metrics(self) -> dict[str, Any]:
        """See `Target`."""
        return self._metrics

    async def _last_metrics(self) -> dict[str, Any]:
        """A server that is gone has nothing to tell any more."""
        try:
            return dict((await self.client.status()).get("metrics") or {})
        except CodekvError:
            return {}


def completion_from(answer: Completion, last: Any) -> Completion:
    """Add the costs that a server's status tells of its last completion."""
    told = last if isinstance(last, dict) else {}
    total, ttft = float(told.get("total_ms", 0.0)), float(told.get("ttft_ms", 0.0))
    known = TokenCounts.__dataclass_fields__
    return Completion(
        answer.items,
        timing=Timing(total, ttft, max(total - ttft, 0.0), ttft),
        tokens=TokenCounts(**{k: int(told[k]) for k in known if k in told}),
        source=AnswerSource(told.get("source", "model")),
        reason=str(told.get("reason", "")),
    )
