"""A small LSP client over stdio: enough of an editor to measure a real server.

Keeps the documents' text itself and sends incremental changes, as editors do. One
event loop, one server process.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from codekv.errors import CodekvError
from codekv.testing.wire import END_OF_HEADERS, frame, length_in
from codekv.text.position import ColumnEncoding, LineIndex

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

MAX_MESSAGE = 64 * 1024 * 1024
"""Bytes: no file that is opened here comes near it."""

_POLL_S = 0.03
"""A tenth of what a person notices."""


class ServerGoneError(CodekvError):
    """The server process ended or closed its output while an answer was due."""


class LspClient:
    """Talks to one server process; use it as an async context manager."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: Path,
        env: Mapping[str, str] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Prepare to run `command`; `options` become `initializationOptions`."""
        self._command = list(command)
        self._cwd = cwd
        self._env = {**os.environ, **(env or {})}
        self._options = dict(options or {})
        self._texts: dict[str, bytes] = {}
        self._versions: dict[str, int] = {}
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._next_id = 0
        self._encoding: ColumnEncoding = "utf-16"
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by _end

    @property
    def pid(self) -> int:
        """The server's process id."""
        assert self._process is not None
        return self._process.pid

    async def __aenter__(self) -> LspClient:
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._errors,
            cwd=self._cwd,
            env=self._env,
            limit=MAX_MESSAGE,
        )
        self._reader = asyncio.create_task(self._read())
        try:
            await self._initialize()
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        try:
            await asyncio.wait_for(self.request("shutdown", None), 10)
            await self.notify("exit", None)
            await asyncio.wait_for(self._process.wait(), 10)
        except (TimeoutError, CodekvError):
            pass
        await self._end()

    async def _end(self) -> None:
        """Leave no process, pipe or task behind."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        if process.returncode is None:
            process.kill()
        process.stdin.close()
        with suppress(ConnectionError):
            await process.stdin.wait_closed()
        await process.wait()
        # The reader ends at the end of the output, and the pipe is closed with it.
        if self._reader is not None:
            await self._reader
        self._errors.close()

    async def _initialize(self) -> None:
        result = await self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": self._cwd.resolve().as_uri(),
                "workspaceFolders": [
                    {"uri": self._cwd.resolve().as_uri(), "name": self._cwd.name}
                ],
                "initializationOptions": self._options,
                "capabilities": {
                    "general": {"positionEncodings": ["utf-8", "utf-16"]},
                    "textDocument": {
                        "inlineCompletion": {"dynamicRegistration": False},
                        "synchronization": {"didSave": False},
                    },
                    "window": {"workDoneProgress": True},
                },
            },
        )
        chosen = result["capabilities"].get("positionEncoding", "utf-16")
        self._encoding = "utf-8" if chosen == "utf-8" else "utf-16"
        await self.notify("initialized", {})

    async def request(self, method: str, params: Any) -> Any:
        """Send a request and wait for its result.

        Raises:
            ServerGoneError: The server ended before it answered.
            CodekvError: The server answered with an error.
        """
        self._next_id += 1
        number = self._next_id
        future = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        await self._send({"id": number, "method": method, "params": params})
        try:
            return await future
        except asyncio.CancelledError:
            # As editors do once nobody waits for the answer any more.
            self._write({"method": "$/cancelRequest", "params": {"id": number}})
            raise
        finally:
            self._waiting.pop(number, None)

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        await self._send({"method": method, "params": params})

    async def open(self, uri: str, language: str, text: str) -> None:
        """Open a document, or replace the text of an open one."""
        if uri in self._texts:
            await self.close_document(uri)
        self._texts[uri], self._versions[uri] = text.encode(), 1
        item = {"uri": uri, "languageId": language, "version": 1, "text": text}
        await self.notify("textDocument/didOpen", {"textDocument": item})

    async def close_document(self, uri: str) -> None:
        """Close a document."""
        del self._texts[uri]
        params = {"textDocument": {"uri": uri}}
        await self.notify("textDocument/didClose", params)

    async def replace(self, uri: str, start: int, end: int, text: str) -> None:
        """Replace bytes [start, end) of an open document."""
        data = self._texts[uri]
        index = LineIndex(data)
        change = {"range": self._range(index, start, end), "text": text}
        self._texts[uri] = data[:start] + text.encode() + data[end:]
        self._versions[uri] += 1
        document = {"uri": uri, "version": self._versions[uri]}
        params = {"textDocument": document, "contentChanges": [change]}
        await self.notify("textDocument/didChange", params)

    async def complete(self, uri: str, cursor_byte: int) -> str:
        """Ask for ghost text: what the first item adds behind the cursor."""
        index = LineIndex(self._texts[uri])
        params = {
            "textDocument": {"uri": uri},
            "position": self._position(index, cursor_byte),
            "context": {"triggerKind": 2},
        }
        result = await self.request("textDocument/inlineCompletion", params)
        items = result.get("items", []) if isinstance(result, dict) else result or []
        if not items:
            return ""
        text = items[0]["insertText"]
        text = text if isinstance(text, str) else text["value"]
        span = items[0].get("range")
        if span is None:
            return str(text)
        start = index.offset(
            span["start"]["line"], span["start"]["character"], self._encoding
        )
        typed = self._texts[uri][start:cursor_byte].decode(errors="replace")
        return str(text).removeprefix(typed)

    async def status(self) -> dict[str, Any]:
        """The server's own account of itself."""
        result = await self.request("codekv/status", {})
        return result if isinstance(result, dict) else {}

    async def ready(self, timeout_s: float) -> dict[str, Any]:
        """Wait until the model can answer.

        Raises:
            CodekvError: It cannot, or not in time.
        """
        deadline = asyncio.get_running_loop().time() + timeout_s
        while asyncio.get_running_loop().time() < deadline:
            status = await self.status()
            state = status.get("state")
            if state == "error":
                raise CodekvError(f"the server says: {status.get('message')}")
            if state in {"ready", "working"}:
                return status
            await asyncio.sleep(_POLL_S)
        raise CodekvError(f"the server was not ready within {timeout_s:.0f} s")

    async def settle(self, seconds: float, quiet: float = 0.15) -> None:
        """Return when the server has been idle for a while, or after `seconds`."""
        deadline = time.monotonic() + seconds
        idle_since = time.monotonic()
        while (now := time.monotonic()) < deadline:
            status = await self.status()
            if status.get("state") == "working" or not status.get("settled", True):
                idle_since = now
            elif now - idle_since >= quiet:
                return
            await asyncio.sleep(_POLL_S)

    def _range(self, index: LineIndex, start: int, end: int) -> dict[str, Any]:
        return {
            "start": self._position(index, start),
            "end": self._position(index, end),
        }

    def _position(self, index: LineIndex, offset: int) -> dict[str, int]:
        line, character = index.position(offset, self._encoding)
        return {"line": line, "character": character}

    async def _send(self, message: dict[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._write(message)
        try:
            await self._process.stdin.drain()
        except ConnectionError as error:
            raise ServerGoneError("the server closed its input") from error

    def _write(self, message: dict[str, Any]) -> None:
        """Put a message into the pipe's buffer."""
        assert self._process is not None
        assert self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(frame(body))

    async def _read(self) -> None:
        assert self._process is not None
        stream = self._process.stdout
        assert stream is not None
        try:
            while True:
                headers = await stream.readuntil(END_OF_HEADERS)
                body = await stream.readexactly(length_in(headers))
                await self._take(json.loads(body))
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            gone = ServerGoneError(f"the server ended: {self._last_words()}")
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(gone)

    async def _take(self, message: dict[str, Any]) -> None:
        if "method" in message:
            if "id" in message:
                await self._send({"id": message["id"], "result": self._reply(message)})
            return
        future = self._waiting.get(message.get("id", -1))
        if future is None or future.done():
            return
        if "error" in message:
            future.set_exception(CodekvError(f"server: {message['error']['message']}"))
        else:
            future.set_result(message.get("result"))

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "no message")

    def _reply(self, message: dict[str, Any]) -> Any:
        if message["method"] == "workspace/configuration":
            return [None for _ in message["params"].get("items", [])]
        return None
