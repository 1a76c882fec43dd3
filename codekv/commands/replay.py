"""`codekv eval replay`: what a person would have gained while typing real changes."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import click

from codekv.commands.console import out
from codekv.commands.evaluation import Evaluation, common, configured, number, show
from codekv.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.traces.changes import AuthoredChange

LOOKED_AT = 20
"""Commits looked at for each change that is wanted: many touch no source file."""

_AS_USED = {"kvcache.disk": "false"}
"""The product as it is, but what is typed here is not stored beside the user's work."""


_FIGURES = ("strokes", "keys", "saved", "saved_net", "questions", "shown") + (
    "would_be_accepted",
    "retained",
    "undone",
    "delta_chrf",
)


@click.command("replay")
@click.argument(
    "paths", nargs=-1, type=click.Path(path_type=Path, exists=True, file_okay=False)
)
@click.option("--limit", default=30, show_default=True, help="Replay N changes.")
@click.option("--seed", default=1, show_default=True, help="Chooses the places.")
@click.option("--releases", is_flag=True, help="PATHS are two releases, older first.")
@click.option(
    "--reading-cost", type=float, help="Keystrokes that reading a new offer costs."
)
@common
def replay(**given: Any) -> None:
    """Type the commits of git repositories again and count what offers save.

    Types at most 40 places of each change key by key, and takes an offer exactly if
    the author's text begins with it. A proxy: order and deleted tries are lost.
    """
    from bench.quality.replay import READING_COST, replayed, summary

    changes = _chosen(given)
    cost = READING_COST if given["reading_cost"] is None else given["reading_cost"]
    root = Path.cwd() / "replay"
    run = Evaluation(
        "replay",
        len(changes),
        lambda service: replayed(service, root, changes, given["seed"]),
        lambda found: summary(found, cost),
    )
    report = run.report(configured(given, _AS_USED), given)
    show(report, _FIGURES, given, count="changes")
    for name, value in report["latency_ms"].items():
        out.print(f"latency {name:8} {number(value)} ms")
    for name, row in report["languages"].items():
        out.print(
            f"{name:16} {row['questions']} questions, {row['shown']} shown, "
            f"{row['would_be_accepted']:.3f} would be accepted"
        )


def _chosen(given: dict[str, Any]) -> list[AuthoredChange]:
    """Changes of all repositories in turns, seeded, at most `--limit`.

    Raises:
        UsageError: Nothing was named, or nothing in it can be replayed.
    """
    groups = [list(group) for group in _groups(given)]
    rng = Random(given["seed"])
    for group in groups:
        rng.shuffle(group)
    turns = (
        group[n]
        for n in range(max(map(len, groups), default=0))
        for group in groups
        if n < len(group)
    )
    changes = list(islice(turns, given["limit"]))
    if not changes:
        raise UsageError("no change of a source file found; name a git repository")
    return changes


def _groups(given: dict[str, Any]) -> Iterator[Iterator[AuthoredChange]]:
    """The changes of each repository or pair of releases."""
    from bench.traces.changes import between_releases
    from bench.traces.commits import commits

    paths: Sequence[Path] = given["paths"]
    if given["releases"]:
        if len(paths) != 2:  # noqa: PLR2004 - a pair
            raise UsageError("--releases takes two folders, the older release first")
        older, newer = (path.resolve() for path in paths)
        yield between_releases(older, newer, newer.name)
        return
    for path in paths:
        yield commits(path.resolve(), given["limit"] * LOOKED_AT)
