"""Two reports side by side: medians, ratio, and whether the spreads overlap."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table

from codekv.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console


@dataclass(frozen=True, slots=True)
class Pair:
    """One trace in two reports; `clear` means the middle halves do not overlap."""

    name: str
    before: float
    after: float
    computed: tuple[float, float]
    clear: bool
    same_requests: bool

    @property
    def ratio(self) -> float:
        """After over before; below one is quicker."""
        return self.after / self.before if self.before else float("inf")


def load(path: Path) -> dict[str, Any]:
    """Read the report of a run.

    Raises:
        UsageError: It is not one, or of a schema this program does not know.
    """
    report = read(path)
    if "traces" not in report:
        raise UsageError(f"{path}: not the report of a run (it has no traces)")
    return report


def read(path: Path) -> dict[str, Any]:
    """Read the report of a run or of a part.

    Raises:
        UsageError: It is not one, or of a schema this program does not know.
    """
    try:
        report = json.loads(path.read_text("utf-8"))
        schema = report["schema"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: not a benchmark report ({error})") from error
    if schema != 1:
        raise UsageError(f"{path}: schema {schema}, this program knows 1")
    return dict(report)


def pairs(before: dict[str, Any], after: dict[str, Any]) -> list[Pair]:
    """Match traces by name."""
    old = {row["name"]: row for row in before["traces"]}
    found = []
    for row in after["traces"]:
        if row["name"] not in old:
            continue
        one, two = old[row["name"]]["latency_ms"], row["latency_ms"]
        name = row["name"]
        found.append(
            Pair(
                name,
                one["p50"],
                two["p50"],
                (
                    old[name]["tokens_computed"]["p50"],
                    row["tokens_computed"]["p50"],
                ),
                two["q3"] < one["q1"] or two["q1"] > one["q3"],
                before["digests"].get(name) == after["digests"].get(name),
            )
        )
    return found


def show(console: Console, before: Path, after: Path) -> None:
    """Print the comparison of two report files."""
    one, two = load(before), load(after)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("trace")
    for name in ("before p50 ms", "after p50 ms", "ratio", "computed", "reading"):
        table.add_column(name, justify="right")
    for pair in pairs(one, two):
        table.add_row(
            pair.name,
            f"{pair.before:.0f}",
            f"{pair.after:.0f}",
            f"{pair.ratio:.2f}",
            f"{pair.computed[0]:.0f} → {pair.computed[1]:.0f}",
            reading(pair),
        )
    console.print(table)
    for key in ("cpu", "threads"):
        if one["host"][key] != two["host"][key]:
            console.print(
                f"different machines: {one['host'][key]} and {two['host'][key]}",
                style="yellow",
            )


def reading(pair: Pair) -> str:
    """What a pair says in a word or two."""
    if not pair.same_requests:
        return "different requests"
    if not pair.clear:
        return "within spread"
    return "quicker" if pair.ratio < 1 else "slower"
