"""`codekv bench`: measure this machine, this model, this repository."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codekv.errors import CodekvError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from bench.run import Options
    from bench.traces.trace import Trace
    from codekv.config import Config


PLAIN_WIDTH = 150
"""Columns of the table where there is no terminal to ask."""


@click.command("bench")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--trace", "names", multiple=True, help="A trace by name; repeatable.")
@click.option("--files", default=12, show_default=True, help="Edit at most N files.")
@click.option("--episodes", type=int, help="Places per trace; defaults by trace.")
@click.option(
    "--requests",
    type=click.IntRange(min=1),
    metavar="N",
    help="As many places per trace as it takes for N requests.",
)
@click.option("--seed", default=1, show_default=True, help="Same seed, same requests.")
@click.option(
    "--pace",
    type=click.Choice(["human", "max", "live"]),
    default="max",
    show_default=True,
    help="human waits between an answer and the next key; live presses keys on time.",
)
@click.option("--quick", is_flag=True, help="A look in about three minutes.")
@click.option(
    "--lsp/--no-lsp",
    default=None,
    help="Through a real server process over stdio; the default of live traces.",
)
@click.option("--as-used", is_flag=True, help="With every shortcut a user has.")
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    metavar="NAME",
    help="Only fresh, common-prefix or plugin-layout; repeatable.",
)
@click.option("--no-baselines", is_flag=True, help="Measure codekv alone.")
@click.option(
    "--fresh-asks",
    type=int,
    metavar="N",
    help="Compare the texts of N answers per trace with fresh runs.",
)
@click.option(
    "--divergence",
    type=click.IntRange(min=0),
    metavar="N",
    default=0,
    help="Compare the logits of N answers per trace with fresh runs, at the end.",
)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="An option."
)
@click.option("--against", metavar="URL", help="Also a running completion server.")
@click.option("--budget", type=int, help="Another completion.latency_budget_ms.")
@click.option("--model", help="Another model than the configured one.")
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--html", "html_file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--restart", is_flag=True, help="Do not take up an interrupted run.")
@click.option("--sources", is_flag=True, help="Fetch and edit the pinned packages.")
@click.option(
    "--compare",
    nargs=2,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Compare two JSON reports instead of measuring.",
)
def bench(**given: Any) -> None:
    """Replay typed traces over the source files in PATH and report what they cost."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    if given["compare"]:
        from bench.reports.compare import show

        show(console, *given["compare"])
        return
    if given["lsp"] is None:
        from bench.traces.generators import LIVE_TRACES

        names = given["names"]
        given["lsp"] = bool(names) and LIVE_TRACES.issuperset(names)
    root = _root(given)
    config = _config(given, root)
    report = asyncio.run(_measure(_options(given, root), config, given, console))
    _write(report, given["json_file"], given["html_file"])
    if report["error"]:
        raise CodekvError(report["error"])
    if report["partial"]:
        sys.exit(130)


def _root(given: dict[str, Any]) -> Path:
    if given["sources"]:
        from bench.traces.fetch import fetch_all, sources_dir

        fetch_all()
        return sources_dir()
    if given["path"] is None:
        raise UsageError("no PATH given; name a folder of source code, or --sources")
    return Path(given["path"])


def _config(given: dict[str, Any], root: Path) -> Config:
    from codekv.commands.settings import with_settings
    from codekv.config import apply
    from codekv.config_files import load

    config, problems = load(root if root.is_dir() else root.parent)
    wanted: dict[str, Any] = {}
    if given["model"]:
        wanted["model"] = {"name": given["model"]}
    if given["budget"] is not None:
        wanted["completion"] = {"latency_budget_ms": given["budget"]}
    config, more = apply(config, wanted, "command line")
    problems += more
    for problem in problems:
        click.echo(f"codekv: {problem}", err=True)
    return with_settings(config, given["settings"])


def _options(given: dict[str, Any], root: Path) -> Options:
    from bench.run import Options

    quick = bool(given["quick"])
    return Options(
        root=root,
        names=tuple(given["names"]),
        files=given["files"],
        episodes=given["episodes"],
        requests=given["requests"],
        divergence=given["divergence"],
        seed=given["seed"],
        pace=given["pace"],
        quick=quick,
        baseline_asks=4 if quick else 5,
        fresh_asks=given["fresh_asks"] or (4 if quick else 6),
    )


async def _measure(
    options: Options, config: Config, given: dict[str, Any], console: Any
) -> dict[str, Any]:
    from bench import host
    from bench.entrants import (
        BASELINES,
        Shared,
        divergence_entrant,
        line_up,
        lsp_entrant,
        measured,
    )
    from bench.reports.progress import RichProgress
    from bench.reports.report import report
    from bench.reports.table import show
    from bench.run import absent, execute, private_store, remove, run_id, scratch
    from bench.targets.counting import count_all
    from bench.traces.sample import Journal

    used = measured(config, as_used=given["as_used"])
    names = () if given["no_baselines"] else given["baselines"] or BASELINES
    if unknown := sorted(set(names) - set(BASELINES)):
        raise UsageError(f"no baseline {unknown[0]!r}; known: {', '.join(BASELINES)}")
    built = _traces(options, console)
    run = run_id(options, [used.model_dump(mode="json"), given["lsp"]], built)
    if given["restart"]:
        remove(run)
    shared = Shared(used)
    main = lsp_entrant(used, options.root.absolute()) if given["lsp"] else None
    entrants = line_up(used, shared, names, main)
    if options.divergence:
        entrants.append(divergence_entrant(used))
    if given["against"]:
        from bench.targets.against import http_entrant

        entrants.append(http_entrant(given["against"], used))
    journal = Journal(scratch(run) / "journal.jsonl", run)
    facts = host.facts()
    with RichProgress(console) as progress, private_store(run):
        result = await execute(options, built, entrants, journal, progress)
    # Counting takes a while; who interrupts a run wants it to end.
    if names and not result.partial:
        console.print("counting what baselines compute", style="dim")
        result.counted = count_all(built, shared.counters(names))
    about = {
        "host": facts,
        "model": shared.describe(),
        "speed": shared.speed,
        "seed": options.seed,
        "pace": options.pace,
        "command": shlex.join(["codekv", *sys.argv[1:]]),
        "config": used.model_dump(mode="json"),
    }
    made = report(result, about) | {"absent": list(absent(options, built))}
    show(console, made)
    if not result.partial:
        remove(run)
    return made


def _traces(options: Options, console: Console) -> tuple[Trace, ...]:
    from bench.run import absent, plan

    built = plan(options)
    for line in absent(options, built):
        console.print(line, style="yellow", markup=False)
    return built


def _write(report: dict[str, Any], json_file: Path | None, html: Path | None) -> None:
    if json_file is not None:
        text = json.dumps(report, indent=1, ensure_ascii=False)
        json_file.write_text(text + "\n", "utf-8")
    if html is not None:
        from bench.reports.html import render

        html.write_text(render(report), "utf-8")
