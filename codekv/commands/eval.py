"""`codekv eval`: how good the text is, on public data and in real files."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codekv.commands.console import err, out
from codekv.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from bench.quality.plain import PlainAnswers
    from bench.traces.cursors import Cursor
    from codekv.completion.service import Service
    from codekv.config import Config

SAVE_EVERY = 25
"""Rows between two writes of the report."""

LEAST_FILES, ROWS_PER_FILE = 12, 20
"""How many files the places of an evaluation lie in."""

_STILL = {
    # What is judged is the text, not the hurry, and no answer may help the next.
    "completion.latency_budget_ms": "60000",
    "completion.speculate": "false",
    "completion.typed_through": "false",
    "kvcache.disk": "false",
    "kvcache.idle_work": "false",
}


@click.group("eval")
def evaluate() -> None:
    """Measure the quality of completions."""


def _common(command: Callable[..., None]) -> Callable[..., None]:
    """The options that all evaluations have."""
    json_path = click.Path(path_type=Path, dir_okay=False)
    for option in (
        click.option("--json", "json_file", type=json_path, help="Write a report."),
        click.option(
            "--set", "settings", multiple=True, metavar="KEY=VALUE", help="An option."
        ),
        click.option("--model", help="Another model than the configured one."),
        click.option(
            "--calibrate", is_flag=True, help="Show what min_confidence would keep."
        ),
    ):
        command = option(command)
    return command


def _in_files(command: Callable[..., None]) -> Callable[..., None]:
    """What evaluations in real files have besides."""
    path = click.Path(path_type=Path, exists=True)
    for option in (
        click.option(
            "--seed", default=1, show_default=True, help="Chooses the places."
        ),
        click.option("--sources", is_flag=True, help="Fetch and use pinned packages."),
        click.argument("path", required=False, type=path),
    ):
        command = option(command)
    return command


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
@click.option(
    "--prompt",
    type=click.Choice(["own", "plain"]),
    default="own",
    show_default=True,
    help="plain is what plugins send, cut at the cursor, untrimmed.",
)
@_common
def infilling(**given: Any) -> None:
    """Fill the holes of a HumanEval-Infilling file and run its tests.

    Runs generated programs, in a process with limits and without a network.
    """
    from bench.quality.infilling import evaluate as outcomes
    from bench.quality.infilling import read_rows, summary

    limit, skip = given["limit"], given["skip"]
    rows = read_rows(given["data"], limit and limit + skip)[skip:]
    # The data says how much is missing; the server's own rule would guess.
    lines = "never" if all(row.is_line for row in rows) else "always"
    mode = given["mode"]
    more = {"completion.multiline": lines}
    if mode == "fresh":
        # Nothing may come from what an earlier row left behind.
        more["kvcache.reuse"] = "exact"
    config = _config(given, more)
    about = {"prompt": given["prompt"], "data": _stem(given["data"])}
    run = _Run(
        "infilling",
        len(rows),
        lambda service: outcomes(service, rows, mode),
        lambda found: summary(found, mode) | about,
    )
    report = run.report(config, given)
    names = ("mode", "exact_match", "edit_similarity", "pass_at_1", "does_not_parse")
    _show(report, names, given)


@evaluate.command("next-line")
@click.option("--limit", default=300, show_default=True, help="Ask for N lines.")
@_in_files
@_common
def next_line(**given: Any) -> None:
    """Ask for whole lines of the source files in PATH and compare.

    Each line is taken out of its file, white space and all, and asked for.
    """
    from bench.quality.next_line import judged, summary

    cursors = _cursors(given, ("next-line",))
    more = {"completion.multiline": "never", "kvcache.reuse": "exact"}
    config = _config(given, more)
    answers = partial(judged, cursors=cursors)
    run = _Run("next-line", len(cursors), answers, summary)
    report = run.report(config, given)
    names = ("exact_match", "edit_similarity", "indentation", "parses", "empty")
    _show(report, names, given)


@evaluate.command("faults")
@click.option("--limit", default=1000, show_default=True, help="Ask at N places.")
@_in_files
@_common
def faults(**given: Any) -> None:
    """Ask at all kinds of places in PATH and count what must never happen.

    Text said twice, wrong indentation, brackets or quotes without a partner.
    """
    from bench.quality.next_line import fault_summary, judged
    from bench.traces.cursors import KINDS

    cursors = _cursors(given, tuple(KINDS))
    answers = partial(judged, cursors=cursors)
    run = _Run("faults", len(cursors), answers, fault_summary)
    report = run.report(_config(given, {"kvcache.reuse": "exact"}), given)
    _show(report, ("offered", "changed", "parses"), given)
    for title in ("faults", "filters"):
        out.print(title)
        for name, value in report[title].items():
            out.print(f"  {name:18} {_number(value)}")
    for row in report["faulty"]:
        line = f"{row['kind']} {row['place']} {' '.join(row['faults'])}"
        out.print(line, markup=False)


def _stem(path: Path) -> str:
    """A dataset by its file's name."""
    return path.name.partition(".")[0]


class _Run:
    """One evaluation, with a report as far as it came."""

    def __init__(
        self,
        name: str,
        total: int,
        outcomes: Callable[[Any], AsyncIterator[Any]],
        summary: Callable[[Sequence[Any]], dict[str, Any]],
    ) -> None:
        self._name = name
        self._total = total
        self._outcomes = outcomes
        self._summary = summary

    def report(self, config: Config, given: dict[str, Any]) -> dict[str, Any]:
        """Evaluate; written every few rows, and at an interrupt with what there is."""
        return asyncio.run(self._run(config, given))

    async def _run(self, config: Config, given: dict[str, Any]) -> dict[str, Any]:
        from rich.progress import track

        from bench.quality.next_line import write

        def made() -> dict[str, Any]:
            report = self._summary(found)
            about = {
                "schema": 1,
                "bench": self._name,
                "model": config.model.name,
                "settings": list(given["settings"]),
                "partial": len(found) < self._total,
            }
            return report | about

        found: list[Any] = []
        service = _service(config, given)
        steps = range(1, self._total + 1)
        try:
            await service.ready()
            await service.idle()
            answers = self._outcomes(service)
            for step in track(steps, console=err, disable=not err.is_terminal):
                found.append(await anext(answers))
                if given["json_file"] and step % SAVE_EVERY == 0:
                    write(made(), given["json_file"])
        except asyncio.CancelledError:
            # Interrupted: what is known is worth keeping.
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
        finally:
            await service.close()
        if given["json_file"]:
            write(made(), given["json_file"])
        return made()


def _service(config: Config, given: dict[str, Any]) -> Service | PlainAnswers:
    if given.get("prompt") == "plain":
        from bench.quality.plain import PlainAnswers

        return PlainAnswers(config)
    from codekv.completion.service import Service

    return Service(config, given.get("root"))


def _cursors(given: dict[str, Any], kinds: Sequence[str]) -> list[Cursor]:
    """Places in the files of PATH; the service knows the files where they lie."""
    from dataclasses import replace
    from random import Random

    from bench.traces import corpus
    from bench.traces.cursors import cursors

    if given["sources"]:
        from bench.traces.fetch import fetch_all, sources_dir

        fetch_all()
        given["path"] = sources_dir()
    if given["path"] is None:
        raise UsageError("no PATH given; name a folder of source code, or --sources")
    root = Path(given["path"]).resolve()
    given["root"] = root if root.is_dir() else root.parent
    files = [
        replace(file, uri=(given["root"] / file.name).as_uri())
        for file in corpus.load(root)
    ]
    # Questions about one file share the beginnings of their prompts.
    num_files = max(LEAST_FILES, given["limit"] // ROWS_PER_FILE)
    chosen = corpus.sample(tuple(files), num_files, Random(given["seed"]))
    found = cursors(chosen, kinds, given["limit"], given["seed"])
    return sorted(found, key=lambda each: (each.uri, each.cursor_byte))


def _config(given: dict[str, Any], more: dict[str, str]) -> Config:
    from codekv.commands.settings import with_settings
    from codekv.config_files import load

    config, _ = load(Path.cwd())
    values = _STILL | more
    if given["model"]:
        values["model.name"] = given["model"]
    pairs = tuple(f"{key}={value}" for key, value in values.items())
    return with_settings(config, (*pairs, *given["settings"]))


def _show(report: dict[str, Any], names: Sequence[str], given: dict[str, Any]) -> None:
    for name in ("rows", *names):
        out.print(f"{name:16} {_number(report[name])}")
    if report["partial"]:
        err.print("interrupted: these are the rows that were done")
    if not given["calibrate"] or "calibration" not in report:
        return
    out.print("\nmin_confidence  kept  exact  exact among the withheld")
    for row in report["calibration"]:
        out.print(
            f"{row['threshold']:14.2f} {row['kept']:5.3f}  {row['exact_match']:5.3f}"
            f"  {row['exact_match_withheld']:5.3f}"
        )


def _number(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
