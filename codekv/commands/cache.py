"""`codekv cache stats | verify | clear`."""

from __future__ import annotations

import json

import click
from rich.table import Table

from codekv.commands.console import err, out
from codekv.config import cache_dir
from codekv.storage import administration as survey


@click.group()
def cache() -> None:
    """See, check and remove the blocks that are stored on disk."""


@cache.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def stats(as_json: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Show what is stored, per model."""
    root = cache_dir() / "blocks"
    reports = survey.survey(root)
    if as_json:
        models = [
            {
                "folder": str(report.folder),
                "fingerprint": report.fingerprint,
                "codec": report.codec,
                "blocks": report.num_blocks,
                "tokens": report.num_tokens,
                "bytes": report.num_bytes,
                "oldest": report.oldest_at,
                "newest": report.newest_at,
            }
            for report in reports
        ]
        out.print(json.dumps({"folder": str(root), "models": models}), markup=False)
        return
    if not reports:
        out.print(f"nothing is stored in {root}", markup=False)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("folder", "codec", "blocks", "tokens", "size", "bytes/token"):
        table.add_column(heading, no_wrap=True)
    for report in reports:
        per_token = report.num_bytes / report.num_tokens if report.num_tokens else 0
        table.add_row(
            report.folder.name,
            report.codec or "unknown",
            f"{report.num_blocks:,}",
            f"{report.num_tokens:,}",
            f"{report.num_bytes / 1e6:,.1f} MB",
            f"{per_token:,.0f}",
        )
    out.print(table, soft_wrap=False)


@cache.command()
def verify() -> None:
    """Read every block; remove the broken ones and say which they were."""
    result = survey.verify(cache_dir() / "blocks")
    for path, message in result.broken:
        err.print(f"removed {path}: {message}", markup=False)
    out.print(f"{result.num_good} sound, {len(result.broken)} broken and removed")
    if result.broken:
        raise click.exceptions.Exit(1)


@cache.command()
def clear() -> None:
    """Remove every stored block of every model."""
    num_files, num_bytes = survey.clear(cache_dir() / "blocks")
    out.print(f"removed {num_files} blocks, {num_bytes / 1e6:,.1f} MB")
