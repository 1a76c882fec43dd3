"""`codekv complete`: one completion, for people and for scripts."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codekv.commands.console import err, out
from codekv.errors import DocumentError, UsageError

if TYPE_CHECKING:
    from codekv.completion.api import Completion
    from codekv.config import Config
    from codekv.text.snapshot import Snapshot


@click.command("complete")
@click.argument("place", metavar="FILE:LINE:COLUMN")
@click.option("--json", "as_json", is_flag=True, help="Everything that is known.")
@click.option("--items", default=1, show_default=True, help="Up to N candidates.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="An option."
)
def complete(place: str, as_json: bool, items: int, settings: tuple[str, ...]) -> None:
    """Complete FILE at LINE and COLUMN (both from 1, columns in characters)."""
    from codekv.commands.settings import with_settings
    from codekv.config_files import load

    path, line, column = _parse(place)
    snapshot = read_snapshot(path)
    config, problems = load(path.resolve().parent)
    for problem in problems:
        err.print(str(problem), markup=False)
    config = with_settings(config, (*_SETTINGS, *settings))
    offset = _offset(snapshot, line, column)
    completion = asyncio.run(_ask(config, snapshot, offset, items))
    if as_json:
        out.print_json(json.dumps(as_values(completion, snapshot)))
    elif completion.items:
        click.echo(completion.text)
    else:
        err.print(f"nothing to offer ({completion.reason})", markup=False)


_SETTINGS = (
    # One question: the full context is worth waiting for, and no pause follows.
    "completion.latency_budget_ms=60000",
    "kvcache.idle_work=false",
)


def read_snapshot(path: Path) -> Snapshot:
    """Read a source file.

    Raises:
        UsageError: There is no such file, or it cannot be read.
        DocumentError: It is not text.
    """
    from codekv.text.snapshot import Snapshot
    from grammars.registry import language_id

    try:
        raw = path.read_bytes()
    except OSError as error:
        message = f"{path}: cannot be read ({error.strerror}); check the path"
        raise UsageError(message) from error
    return Snapshot.from_bytes(path.as_posix(), 0, language_id(path.name), raw)


def as_values(completion: Completion, snapshot: Snapshot) -> dict[str, Any]:
    """The documented JSON of a completion; positions as one sees them, from 1."""
    from codekv.text.position import LineIndex

    index = LineIndex(snapshot.data)

    def place(offset: int) -> dict[str, int]:
        line, column = index.position(offset, "utf-32")
        return {"line": line + 1, "column": column + 1}

    return {
        "text": completion.text,
        "items": [
            {
                "text": item.text,
                "range": {"start": place(item.start_byte), "end": place(item.end_byte)},
                "score": item.score,
            }
            for item in completion.items
        ],
        "model": completion.model,
        "timing_ms": asdict(completion.timing),
        "tokens": asdict(completion.tokens),
        "source": completion.source.value,
        "reason": completion.reason,
        "filters": list(completion.filters),
    }


def _parse(place: str) -> tuple[Path, int, int]:
    parts = place.rsplit(":", 2)
    if len(parts) != 3 or not all(part.isdigit() for part in parts[1:]):
        raise UsageError(f"{place}: write the place as FILE:LINE:COLUMN, from 1")
    line, column = int(parts[1]), int(parts[2])
    if line < 1 or column < 1:
        raise UsageError(f"{place}: lines and columns count from 1")
    return Path(parts[0]), line, column


def _offset(snapshot: Snapshot, line: int, column: int) -> int:
    from codekv.text.position import LineIndex

    lines = snapshot.data.split(b"\n")
    if line > len(lines):
        message = f"{snapshot.uri}: has {len(lines)} lines; line {line} is past the end"
        raise DocumentError(message)
    width = len(lines[line - 1].decode("utf-8")) + 1
    if column > width:
        message = (
            f"{snapshot.uri}:{line}: has {width} columns; {column} is past the end"
        )
        raise DocumentError(message)
    return LineIndex(snapshot.data).offset(line - 1, column - 1, "utf-32")


async def _ask(
    config: Config, snapshot: Snapshot, offset: int, items: int
) -> Completion:
    from codekv.completion.api import Request, Trigger
    from codekv.completion.service import Service

    service = Service(config)
    try:
        await service.ready()
        message = service.status().message
        if message:
            err.print(message, markup=False)
        request = Request(snapshot, offset, Trigger.INVOKED, max_items=items)
        return await service.complete(request)
    finally:
        await service.close()
