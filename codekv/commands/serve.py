"""`codekv serve`: the language server, and the HTTP endpoint for other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from codekv import config_files
from lsp.run import leave_workspace, run_stdio, run_tcp, safe_address

if TYPE_CHECKING:
    from codekv.config import Config
    from lsp.host import ServiceFactory


@click.command()
@click.option(
    "--tcp",
    "address",
    metavar="HOST:PORT",
    help="Serve LSP over TCP; other machines may connect only with server.tcp_token.",
)
@click.option(
    "--http",
    "http_address",
    metavar="HOST:PORT",
    help="Serve tools without LSP: /v1/completions and llama-server's /infill.",
)
@click.option("--stdio", is_flag=True, hidden=True, help="The default; for editors.")
def serve(address: str | None, http_address: str | None, stdio: bool) -> int:
    """Serve an editor over standard input and output, or several over a socket."""
    if sum((address is not None, http_address is not None, stdio)) > 1:
        raise click.UsageError("--stdio, --tcp and --http exclude each other")
    if address is None and http_address is None:
        return run_stdio(load_service)
    files, problems = config_files.load()
    for problem in problems:
        click.echo(f"codekv: {problem}", err=True)
    if address is not None:
        return run_tcp(load_service, address, files.server.tcp_token)
    assert http_address is not None
    return _serve_http(files, http_address)


def _serve_http(files: Config, address: str) -> int:
    from codekv.endpoint.run import run_http

    host, port = safe_address(address, files.server.tcp_token)
    leave_workspace()
    return run_http(load_service()(files, None), files, host, port)


def load_service() -> ServiceFactory:
    """Import the service; takes a while, so it happens after the first answer."""
    from codekv.completion.service import Service

    return Service
