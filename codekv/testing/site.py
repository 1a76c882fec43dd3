"""A web server on this machine that serves given bytes and fails as told."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType


@dataclass
class Site:
    """Use as a context; `url` is its address inside.

    Attributes:
        files: Content by path.
        kinds: Content type by path, where it matters.
        status: Answer this code instead, by path.
        cut_after: End the connection after so many bytes of the body, by path; each
            cut happens once.
        without_range: Paths that always send the whole file.
        asked: Every request as (path, Range header).
    """

    files: dict[str, bytes] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    status: dict[str, int] = field(default_factory=dict)
    cut_after: dict[str, list[int]] = field(default_factory=dict)
    without_range: set[str] = field(default_factory=set)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def __enter__(self) -> Site:
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.answer(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def num_asked(self, path: str) -> int:
        """How often a path was asked for."""
        return sum(asked == path for asked, _ in self.asked)

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        path, wanted = request.path, request.headers.get("Range", "")
        self.asked.append((path, wanted))
        code = self.status.get(path, 200 if path in self.files else 404)
        body = self.files.get(path, b"") if code == 200 else b""
        length = len(body)
        if wanted and code == 200 and path not in self.without_range:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            body = body[int(first) : int(last) + 1 if last else None]
            code, length = 206, len(body)
        request.send_response(code)
        request.send_header("Content-Length", str(length))
        request.send_header("Content-Type", self.kinds.get(path, "application/zip"))
        request.end_headers()
        cuts = self.cut_after.get(path, [])
        # A probe for one byte is no download and uses up no cut.
        if cuts and not wanted.endswith("-0"):
            body = body[: cuts.pop(0)]
        try:
            request.wfile.write(body)
        except OSError:  # the client had enough
            request.close_connection = True
