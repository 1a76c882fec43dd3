"""How messages of the language server protocol are laid on a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import IO

END_OF_HEADERS = b"\r\n\r\n"


def frame(body: bytes) -> bytes:
    """Put the header before a message's bytes."""
    return b"Content-Length: %d" % len(body) + END_OF_HEADERS + body


def length_in(headers: bytes) -> int:
    """Read a message's length from its headers.

    Raises:
        ValueError: They do not tell one.
    """
    for line in headers.splitlines():
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    raise ValueError("no Content-Length")


def read(stream: IO[bytes]) -> bytes:
    """Read one message's bytes; none at the stream's end."""
    headers = b""
    while line := stream.readline():
        headers += line
        if not line.strip():
            return stream.read(length_in(headers))
    return b""
