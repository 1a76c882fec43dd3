"""Complete code from a Python program: the public interface, without any editor.

`Completer` keeps a model loaded; `complete` is for one question. What else the package
holds may change with every version.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Self

from codekv.completion.api import Completion, Request, Trigger
from codekv.config import Config
from codekv.errors import UsageError
from codekv.text.snapshot import Snapshot
from codekv.units import ByteOffset
from grammars.registry import language_id

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from codekv.completion.service import Service


class Completer:
    """A loaded model that answers questions about texts.

    Use it as an async context manager. Texts that are asked about under one `name` are
    versions of one document: what they have in common is computed once.

    Args:
        config: All options; the files of the user and the project are not read.
        workspace: The project whose `.codekvignore` holds, if any.
    """

    def __init__(
        self, config: Config | None = None, workspace: Path | None = None
    ) -> None:
        self._config = config or Config()
        self._workspace = workspace
        self._service: Service | None = None
        self._versions = itertools.count(1)

    async def __aenter__(self) -> Self:
        from codekv.completion.service import Service

        self._service = Service(self._config, self._workspace)
        try:
            await self._service.ready()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Give back the model's memory; a second call does nothing."""
        service, self._service = self._service, None
        if service is not None:
            await service.close()

    async def complete(
        self,
        text: str,
        cursor: int | None = None,
        *,
        language: str = "",
        name: str = "untitled",
        max_items: int = 1,
    ) -> Completion:
        """Ask what comes at `cursor`, an index into `text`; None means its end.

        Args:
            text: The whole document.
            cursor: Counted in characters.
            language: As editors spell it; if empty, told by the name.
            name: The document's path or any other name; decides about exclusion.
            max_items: At most this many different answers.

        Returns:
            The answer. Without items, `reason` tells why there are none.

        Raises:
            UsageError: The cursor lies outside the text, or the completer is closed.
            ModelError: The model cannot be used any more.
        """
        if self._service is None:
            raise UsageError("the completer is not open; use it with `async with`")
        at = len(text) if cursor is None else cursor
        if not 0 <= at <= len(text):
            raise UsageError(
                f"cursor {at} lies outside a text of {len(text)} characters"
            )
        version = next(self._versions)
        language = language or language_id(name)
        snapshot = Snapshot.from_text(name, version, language, text)
        before = Snapshot.from_text(name, version, language, text[:at])
        offset = ByteOffset(len(before.data))
        request = Request(snapshot, offset, Trigger.INVOKED, max_items=max_items)
        return await self._service.complete(request)


def complete(
    text: str,
    cursor: int | None = None,
    *,
    language: str = "",
    config: Config | None = None,
) -> Completion:
    """Load the model, ask one question, give the model back; takes seconds.

    Args:
        text: The whole document.
        cursor: Counted in characters; None means the end.
        language: As editors spell it; if empty, guessed from the text.
        config: The options; None means the defaults.

    Raises:
        CodekvError: See `Completer`.
    """

    async def ask() -> Completion:
        async with Completer(config) as completer:
            return await completer.complete(text, cursor, language=language)

    return asyncio.run(ask())
