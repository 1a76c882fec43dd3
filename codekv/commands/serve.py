"""`codekv serve`: the language server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from codekv import config
from lsp.run import run_stdio, run_tcp

if TYPE_CHECKING:
    from lsp.host import ServiceFactory


@click.command()
@click.option(
    "--tcp",
    "address",
    metavar="HOST:PORT",
    help="Serve over TCP; other machines may connect only with server.tcp_token.",
)
@click.option("--stdio", is_flag=True, hidden=True, help="The default; for editors.")
def serve(address: str | None, stdio: bool) -> int:
    """Serve an editor over standard input and output, or several over TCP."""
    if address is None:
        return run_stdio(load_service)
    if stdio:
        raise click.UsageError("--stdio and --tcp exclude each other")
    files, problems = config.load()
    for problem in problems:
        click.echo(f"codekv: {problem}", err=True)
    return run_tcp(load_service, address, files.server.tcp_token)


def load_service() -> ServiceFactory:
    """Import the service; takes a while, so it happens after the first answer."""
    from codekv.completion.service import Service

    return Service
