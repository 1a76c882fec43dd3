"""`codekv eval`: how good the text is, on public data."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codekv.commands.console import err, out

if TYPE_CHECKING:
    from bench.infilling import Mode, Row
    from codekv.config import Config


@click.group("eval")
def evaluate() -> None:
    """Measure the quality of completions."""


@evaluate.command("infilling")
@click.argument("data", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--limit", type=click.IntRange(min=1), help="Only the first N rows.")
@click.option("--skip", type=click.IntRange(min=0), default=0, help="Leave out N rows.")
@click.option(
    "--mode",
    type=click.Choice(["cached", "fresh"]),
    default="cached",
    show_default=True,
    help="cached types the text in bursts; fresh asks once.",
)
@click.option("--model", help="Another model than the configured one.")
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="An option."
)
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False))
def infilling(**given: Any) -> None:
    """Fill the holes of a HumanEval-Infilling file and run its tests.

    Runs generated programs, in a process with limits and without a network.
    """
    from bench.infilling import read_rows

    limit, skip = given["limit"], given["skip"]
    rows = read_rows(given["data"], limit and limit + skip)[skip:]
    config = _config(given["model"], given["settings"], rows)
    report = asyncio.run(_run(config, rows, given["mode"]))
    if given["json_file"]:
        given["json_file"].write_text(json.dumps(report, indent=1), "utf-8")
    for name in ("rows", "mode", "exact_match", "edit_similarity", "pass_at_1"):
        value = report[name]
        out.print(
            f"{name:16} {value if not isinstance(value, float) else f'{value:.3f}'}"
        )
    out.print(f"{'does_not_parse':16} {report['does_not_parse']:.3f}")


def _config(model: str | None, settings: tuple[str, ...], rows: list[Row]) -> Config:
    from codekv.commands.settings import with_settings
    from codekv.config import load

    config, _ = load(Path.cwd())
    # The data says how much is missing; the server's own rule would guess.
    lines = "never" if all(row.is_line for row in rows) else "always"
    given = {
        "completion.multiline": lines,
        "completion.latency_budget_ms": "60000",
        "completion.speculate": "false",
        "kvcache.disk": "false",
        "kvcache.idle_work": "false",
    }
    if model:
        given["model.name"] = model
    pairs = tuple(f"{key}={value}" for key, value in given.items())
    return with_settings(config, (*pairs, *settings))


async def _run(config: Config, rows: list[Row], mode: Mode) -> dict[str, Any]:
    from rich.progress import track

    from bench.infilling import evaluate as outcomes
    from bench.infilling import summary
    from codekv.completion.service import Service

    service = Service(config)
    found = []
    try:
        await service.ready()
        answers = outcomes(service, rows, mode)
        for _ in track(
            rows, console=err, description=mode, disable=not err.is_terminal
        ):
            found.append(await anext(answers))
    finally:
        await service.close()
    report = summary(found, mode)
    report["model"] = config.model.name
    return report
