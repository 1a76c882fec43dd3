"""The listening socket and the server's life."""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import TYPE_CHECKING

import uvicorn

from codekv.endpoint.app import Endpoint
from codekv.errors import UsageError

if TYPE_CHECKING:
    from codekv.completion.api import CompletionService
    from codekv.config import Config

CLOSE_SECONDS = 2.0
"""Open answers get this long at the end; a decoding step takes far less."""


def run_http(service: CompletionService, config: Config, host: str, port: int) -> int:
    """Serve HTTP clients until interrupted.

    Raises:
        UsageError: The address cannot be listened on.
    """
    listener = _listen(host, port)
    bound = listener.getsockname()
    shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
    sys.stderr.write(f"codekv: listening on http://{shown}:{bound[1]}\n")
    sys.stderr.flush()
    endpoint = Endpoint(service, config.completion.max_tokens, config.server.tcp_token)
    settings = uvicorn.Config(
        endpoint.app(),
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=int(CLOSE_SECONDS),
    )
    try:
        asyncio.run(_serve(service, uvicorn.Server(settings), listener))
    except KeyboardInterrupt:
        return 0
    finally:
        listener.close()
    return 0


async def _serve(
    service: CompletionService, server: uvicorn.Server, listener: socket.socket
) -> None:
    service.start()
    try:
        await server.serve(sockets=[listener])
    finally:
        await service.close()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        reason = error.strerror or error
        raise UsageError(f"cannot listen on {host}:{port}: {reason}") from error
    return listener
