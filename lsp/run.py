"""Runs the server over standard input and output, or for clients over TCP."""

from __future__ import annotations

import asyncio
import ipaddress
import itertools
import logging
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from codekv.config import Config
from codekv.errors import UsageError
from lsp.host import ServiceHolder
from lsp.log import configure_logging
from lsp.server import Server, SessionOptions
from lsp.transport import (
    PipeWriter,
    SocketWriter,
    private_streams,
    read_pipe,
    read_socket,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from lsp.host import ServiceFactory

logger = logging.getLogger(__name__)

# A client over a slow network greets within seconds.
GREETING_SECONDS = 30.0


def run_stdio(load: Callable[[], ServiceFactory]) -> int:
    """Serve the client at the other end of standard input and output.

    Args:
        load: Imports the service; called off the loop after the client is answered.

    Returns:
        The exit code that the protocol asks for.
    """
    leave_workspace()
    configure_logging(Config())
    source, target = private_streams()
    writer = PipeWriter(target)

    async def main() -> int:
        loop = asyncio.get_running_loop()
        over: asyncio.Future[int] = loop.create_future()
        host = ServiceHolder(load)
        server = Server(host, SessionOptions(over.set_result, host.close))
        server.protocol.set_writer(writer)
        read_pipe(source, loop, server)
        code = await over
        has_ended = await host.close()
        writer.close()
        if not has_ended:
            # The loop's own end would wait for threads that do not come back.
            os._exit(code)
        return code

    return asyncio.run(main())


def run_tcp(load: Callable[[], ServiceFactory], address: str, token: str | None) -> int:
    """Serve any number of clients over TCP until interrupted.

    Raises:
        UsageError: The address is no address, or reachable from other machines
            while there is no token.
    """
    host_name, port = safe_address(address, token)
    leave_workspace()
    configure_logging(Config())
    try:
        asyncio.run(_serve_tcp(ServiceHolder(load), host_name, port, token))
    except KeyboardInterrupt:
        return 0
    return 0


def leave_workspace() -> None:
    """Make the user's home the working folder.

    Editors start the server in the folder that is being edited. From here on, no
    relative name can mean a file of that folder, and the folder can be moved, deleted
    or unmounted while the server runs.
    """
    with suppress(OSError, RuntimeError):
        os.chdir(Path.home())


def safe_address(address: str, token: str | None) -> tuple[str, int]:
    """Split an address that only this machine can reach, or any if there is a token.

    Raises:
        UsageError: It is no address, or others could ask without a token.
    """
    name, port = parse_address(address)
    if token is None and not is_loopback(name):
        raise UsageError(
            f"{name} can be reached from other machines; set server.tcp_token"
            " or listen on 127.0.0.1"
        )
    return name, port


def parse_address(address: str) -> tuple[str, int]:
    """Split `HOST:PORT` or `[HOST]:PORT`.

    Raises:
        UsageError: It is not of that form.
    """
    name, colon, port = address.rpartition(":")
    name = name.removeprefix("[").removesuffix("]")
    if not colon or not name or not port.isdigit() or int(port) > 65535:  # noqa: PLR2004
        raise UsageError(f"{address}: expected HOST:PORT, such as 127.0.0.1:2087")
    return name, int(port)


def is_loopback(name: str) -> bool:
    """Whether only this machine can reach the address."""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


async def _serve_tcp(
    host: ServiceHolder, name: str, port: int, token: str | None
) -> None:
    numbers = itertools.count(1)

    async def connected(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        over: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        options = SessionOptions(over.set_result, _keep_service, token, next(numbers))
        server = Server(host, options)
        socket = SocketWriter(writer)
        server.protocol.set_writer(socket)
        reading = asyncio.ensure_future(read_socket(reader, server))
        loop = asyncio.get_running_loop()
        loop.call_later(GREETING_SECONDS, _put_out_strangers, server)
        await over
        reading.cancel()
        socket.close()

    try:
        listener = await asyncio.start_server(connected, name, port)
    except OSError as error:
        raise UsageError(f"cannot listen on {name}:{port}: {error.strerror}") from error
    async with listener:
        bound = listener.sockets[0].getsockname()
        sys.stderr.write(f"codekv: listening on {bound[0]}:{bound[1]}\n")
        sys.stderr.flush()
        try:
            await listener.serve_forever()
        finally:
            await host.close()


def _put_out_strangers(server: Server) -> None:
    """End a conversation in which nobody has said who they are."""
    if not server.is_admitted:
        server.end(1)


async def _keep_service() -> None:
    """Other clients may still want it."""
