"""Bytes in and out: message framing, standard input and output, TCP.

One reader thread and one writer thread for the standard streams, so that a slow
editor never stops the event loop; plain asyncio for TCP. Knows no protocol beyond
the header that says how long a message is.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from typing import TYPE_CHECKING, BinaryIO, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator
    from io import BufferedReader

# What a pipe of Linux holds.
READ_SIZE = 1 << 16
# More than a burst of keys with its cancellations, and little memory.
READ_AHEAD = 64
# Several times the largest file that any editor opens, escaped as JSON.
MAX_MESSAGE = 1 << 28
# VS Code's capabilities take 12 KB; whoever connects may be anybody.
MAX_GREETING = 1 << 20
# Status messages are 1 KB: a client with so much unread has stopped reading.
MAX_UNSENT = 1 << 26
# Two header lines are all that the protocol knows.
MAX_HEADER = 1 << 14
# Enough for every length that is taken, and for telling that one is too long.
MAX_DIGITS = 12
# Writing what is queued takes milliseconds unless the reader is gone.
FLUSH_SECONDS = 0.5


class FramingError(ValueError):
    """The stream holds something that cannot be told apart into messages."""


class Framer:
    """Cuts a stream into message bodies; holds at most one unfinished message.

    Attributes:
        limit: The longest message that is taken; may be raised at any time.
    """

    def __init__(self, limit: int = MAX_MESSAGE) -> None:
        self.limit = limit
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take bytes and give the bodies that are complete.

        Raises:
            FramingError: A header has no usable length; the stream is lost.
        """
        self._data += data
        while True:
            end = self._data.find(b"\r\n\r\n")
            if end < 0:
                if len(self._data) > MAX_HEADER:
                    raise FramingError("a header without an end")
                return
            start = end + 4
            length = _content_length(bytes(self._data[:end]))
            if length > self.limit:
                raise FramingError("a message that is too long")
            if len(self._data) < start + length:
                return
            body = bytes(self._data[start : start + length])
            del self._data[: start + length]
            yield body


def _content_length(header: bytes) -> int:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            text = value.strip()
            if text.isdigit() and len(text) <= MAX_DIGITS:
                return int(text)
    raise FramingError("a header without a usable Content-Length")


class Receiver(Protocol):
    """Whoever handles one client's messages; called on the event loop only."""

    def receive(self, body: bytes) -> None:
        """Take one message."""

    def on_disconnect(self) -> None:
        """Note that nothing more will come."""

    @property
    def is_admitted(self) -> bool:
        """Whether the client may go on."""


class PipeWriter:
    """Writes to a pipe from a thread of its own, in order."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=self._run, name="codekv-writer", daemon=True
        )
        self._thread.start()

    def write(self, data: bytes) -> None:
        """Queue bytes; never blocks."""
        self._queue.put(data)

    def close(self) -> None:
        """Write what is queued, for a limited time: the reader may be gone."""
        self._queue.put(None)
        self._thread.join(FLUSH_SECONDS)

    def _run(self) -> None:
        while (data := self._queue.get()) is not None:
            try:
                self._stream.write(data)
                self._stream.flush()
            except (OSError, ValueError):
                return


class SocketWriter:
    """Writes to a connection; one that does not read is given up."""

    def __init__(self, stream: asyncio.StreamWriter) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        """Queue bytes; never blocks."""
        if self._stream.transport.get_write_buffer_size() > MAX_UNSENT:
            self._stream.transport.abort()
        elif not self._stream.is_closing():
            self._stream.write(data)

    def close(self) -> None:
        """Write what is queued, then close."""
        self._stream.close()


def private_streams() -> tuple[BufferedReader, BinaryIO]:
    """Take the standard streams away from everything else in the process.

    A stray print of some library would break the conversation, so from here on
    standard output leads to standard error.

    Returns:
        Streams for reading from and writing to the editor.
    """
    source = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    target = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    sys.stdout.flush()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return source, target


def read_pipe(
    stream: BufferedReader, loop: asyncio.AbstractEventLoop, receiver: Receiver
) -> None:
    """Start the thread that reads messages and hands them to the loop.

    It reads a little ahead, so that cancellations are seen early, but not without
    limit: an editor that sends faster than we listen has to wait.
    """
    ahead = threading.Semaphore(READ_AHEAD)

    def take(body: bytes) -> None:
        ahead.release()
        receiver.receive(body)

    def run() -> None:
        framer = Framer()
        try:
            while data := stream.read1(READ_SIZE):
                for body in framer.feed(data):
                    ahead.acquire()
                    loop.call_soon_threadsafe(take, body)
        except (OSError, ValueError):
            pass
        try:
            loop.call_soon_threadsafe(receiver.on_disconnect)
        except RuntimeError:
            return  # the loop has ended already

    threading.Thread(target=run, name="codekv-reader", daemon=True).start()


async def read_socket(reader: asyncio.StreamReader, receiver: Receiver) -> None:
    """Read messages from a connection until it ends.

    Until the first one is accepted, only short ones are: anyone may connect.
    """
    framer = Framer(MAX_GREETING)
    try:
        while data := await reader.read(READ_SIZE):
            for body in framer.feed(data):
                receiver.receive(body)
                if receiver.is_admitted:
                    framer.limit = MAX_MESSAGE
    except (OSError, FramingError):
        pass
    receiver.on_disconnect()
