"""`codekv eval`: how good the text is, on public data and in real files."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codekv.commands.console import out
from codekv.commands.evaluation import Evaluation, common, configured, number, show
from codekv.commands.replay import replay
from codekv.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.traces.corpus import SourceFile
    from bench.traces.cursors import Cursor
    from bench.traces.fetch import Use

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


def _in_files(command: Callable[..., None]) -> Callable[..., None]:
    """What evaluations in real files have besides."""
    path = click.Path(path_type=Path, exists=True)
    for option in (
        click.option(
            "--seed", default=1, show_default=True, help="Chooses the places."
        ),
        click.option("--sources", is_flag=True, help="Fetch and use pinned packages."),
        click.option("--language", help="Fetch and use pinned sources of a language."),
        click.option(
            "--tuning", is_flag=True, help="With --language: those rules were made by."
        ),
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
@common
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
    config = configured(given, _STILL | more)
    about = {"prompt": given["prompt"], "data": _stem(given["data"])}
    run = Evaluation(
        "infilling",
        len(rows),
        lambda service: outcomes(service, rows, mode),
        lambda found: summary(found, mode) | about,
    )
    report = run.report(config, given)
    names = ("mode", "exact_match", "edit_similarity", "pass_at_1", "does_not_parse")
    show(report, names, given)


@evaluate.command("next-line")
@click.option("--limit", default=300, show_default=True, help="Ask for N lines.")
@_in_files
@common
def next_line(**given: Any) -> None:
    """Ask for whole lines of the source files in PATH and compare.

    Each line is taken out of its file, white space and all, and asked for.
    """
    from bench.quality.next_line import judged, summary

    cursors = _cursors(given, ("next-line",))
    more = {"completion.multiline": "never", "kvcache.reuse": "exact"}
    config = configured(given, _STILL | more)
    answers = partial(judged, cursors=cursors)
    run = Evaluation("next-line", len(cursors), answers, summary)
    report = run.report(config, given)
    names = ("exact_match", "edit_similarity", "indentation", "parses", "empty")
    show(report, names, given)


@evaluate.command("faults")
@click.option("--limit", default=1000, show_default=True, help="Ask at N places.")
@_in_files
@common
def faults(**given: Any) -> None:
    """Ask at all kinds of places in PATH and count what must never happen.

    Text said twice, wrong indentation, brackets or quotes without a partner.
    """
    from bench.quality.next_line import fault_summary, judged
    from bench.traces.cursors import KINDS

    cursors = _cursors(given, tuple(KINDS))
    answers = partial(judged, cursors=cursors)
    run = Evaluation("faults", len(cursors), answers, fault_summary)
    report = run.report(configured(given, _STILL | {"kvcache.reuse": "exact"}), given)
    show(report, ("offered", "changed", "parses"), given)
    for title in ("faults", "filters"):
        out.print(title)
        for name, value in report[title].items():
            out.print(f"  {name:18} {number(value)}")
    for row in report["faulty"]:
        line = f"{row['kind']} {row['place']} {' '.join(row['faults'])}"
        out.print(line, markup=False)


def _stem(path: Path) -> str:
    """A dataset by its file's name."""
    return path.name.partition(".")[0]


def _cursors(given: dict[str, Any], kinds: Sequence[str]) -> list[Cursor]:
    """Places in the files of PATH; the service knows the files where they lie."""
    from random import Random

    from bench.traces import corpus
    from bench.traces.cursors import cursors

    files = _language_files(given) if given["language"] else _files(given)
    # Questions about one file share the beginnings of their prompts.
    num_files = max(LEAST_FILES, given["limit"] // ROWS_PER_FILE)
    chosen = corpus.sample(files, num_files, Random(given["seed"]))
    found = cursors(chosen, kinds, given["limit"], given["seed"])
    return sorted(found, key=lambda each: (each.uri, each.cursor_byte))


def _language_files(given: dict[str, Any]) -> tuple[SourceFile, ...]:
    """Files of the pinned sources of one language."""
    from bench.traces import corpus
    from bench.traces.fetch import fetch_language, languages_dir

    use: Use = "tune" if given["tuning"] else "test"
    language = given["language"]
    given["root"] = languages_dir()
    return tuple(
        replace(file, uri=(folder / file.name).as_uri())
        for folder in fetch_language(language, use)
        for file in corpus.load(folder, (language,))
    )


def _files(given: dict[str, Any]) -> tuple[SourceFile, ...]:
    """Files of PATH, or of the packages that traces are made of."""
    from bench.traces import corpus

    if given["sources"]:
        from bench.traces.fetch import fetch_all, sources_dir

        fetch_all()
        given["path"] = sources_dir()
    if given["path"] is None:
        raise UsageError(
            "no PATH given; name a folder of source code, --language or --sources"
        )
    root = Path(given["path"]).resolve()
    given["root"] = root if root.is_dir() else root.parent
    return tuple(
        replace(file, uri=(given["root"] / file.name).as_uri())
        for file in corpus.load(root)
    )


evaluate.add_command(replay)
