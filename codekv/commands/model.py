"""`codekv model list | pull | add | check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from codekv import config_files
from codekv.commands.console import out, pull_progress
from codekv.model.library import store
from codekv.model.library.catalog import CATALOG, DEFAULT, LARGE, find_entry
from codekv.model.library.choice import AUTO, choose_here, note_consent

if TYPE_CHECKING:
    from codekv.model.library.store import StoredModel


@click.group()
def model() -> None:
    """See, fetch, add and check models."""


@model.command("list")
def list_models() -> None:
    """Show the models that are here and those that can be pulled."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("name", "state", "size", "about"):
        table.add_column(heading, no_wrap=heading != "about")
    here = {stored.name: stored for stored in store.list_models()}
    for entry in CATALOG:
        stored = here.pop(entry.name, None)
        mark = " (default)" if entry is DEFAULT else ""
        about = f"{entry.about}; {entry.license}"
        if stored:
            table.add_row(entry.name + mark, "ready", _size(stored.num_bytes), about)
        else:
            size = f"{_size(entry.num_bytes)} to fetch"
            table.add_row(entry.name + mark, "not here", size, about)
    for stored in here.values():
        about = f"{stored.family}, from {stored.source}"
        table.add_row(stored.name, "ready", _size(stored.num_bytes), about)
    out.print(table, soft_wrap=False)
    configured = config_files.load(Path.cwd())[0].model.name
    if configured == AUTO:
        choice = choose_here()
        out.print(f"auto is {choice.name}: {choice.why}", markup=False)


@model.command()
@click.argument("name", default=DEFAULT.name)
@click.option("--again", is_flag=True, help="Fetch and convert even if it is here.")
def pull(name: str, again: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Fetch a model by catalog name or Hugging Face id, and convert it."""
    from codekv.model.library.resolve import obtain

    if find_entry(name) is LARGE:
        note_consent(agreed=True)  # asking for it is agreeing
    with pull_progress() as progress:
        stored = obtain(name, progress, again=again)
    _tell(stored)


@model.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--name", help="What to call it; derived from the path if left out.")
def add(path: Path, name: str | None) -> None:
    """Convert a local GGUF file or model folder."""
    from codekv.model.library.resolve import add as add_model

    with pull_progress() as progress:
        stored = add_model(path, name, progress)
    _tell(stored)


@model.command()
@click.argument("name", default=DEFAULT.name)
def check(name: str) -> None:
    """Verify a model's files and compare it with the plain transformers forward."""
    entry = find_entry(name)
    stored = store.verify_model(entry.name if entry else name)
    from codekv.model.library.check import check_model

    report = check_model(stored.folder)
    for line in report.lines():
        out.print(line, markup=False)
    if not report.is_good:
        raise click.exceptions.Exit(1)


def _tell(stored: StoredModel) -> None:
    line = f"{stored.name} is ready: {_size(stored.num_bytes)} at {stored.folder}"
    out.print(line, markup=False)


def _size(num_bytes: int) -> str:
    return (
        f"{num_bytes / 1e9:.1f} GB" if num_bytes >= 1e9 else f"{num_bytes // 10**6} MB"
    )
