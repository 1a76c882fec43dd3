"""What all evaluations share: options, a run that keeps what it has, its report."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from codekv.commands.console import err, out
from codekv.files import write_whole

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from bench.quality.plain import PlainAnswers
    from codekv.completion.service import Service
    from codekv.config import Config

SAVE_EVERY = 25
"""Rows between two writes of the report."""


def common(command: Callable[..., None]) -> Callable[..., None]:
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


class Evaluation:
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

        def made() -> dict[str, Any]:
            report = self._summary(found)
            about = {
                "schema": 1,
                "bench": self._name,
                "model": config.model.name,
                "settings": list(given["settings"]),
                "language": given.get("language") or "",
                "use": "tune" if given.get("tuning") else "test",
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
                    _keep(made(), given["json_file"])
        except asyncio.CancelledError:
            # Interrupted: what is known is worth keeping.
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
        finally:
            await service.close()
        if given["json_file"]:
            _keep(made(), given["json_file"])
        return made()


def _keep(report: dict[str, Any], path: Path) -> None:
    """Write a report as far as it is known."""
    write_whole(path, json.dumps(report, indent=1))


def _service(config: Config, given: dict[str, Any]) -> Service | PlainAnswers:
    if given.get("prompt") == "plain":
        from bench.quality.plain import PlainAnswers

        return PlainAnswers(config)
    from codekv.completion.service import Service

    return Service(config, given.get("root"))


def configured(given: dict[str, Any], values: dict[str, str]) -> Config:
    """The user's configuration with what an evaluation and its options change."""
    from codekv.commands.settings import with_settings
    from codekv.config_files import load

    config, _ = load(Path.cwd())
    values = dict(values)
    if given["model"]:
        values["model.name"] = given["model"]
    pairs = tuple(f"{key}={value}" for key, value in values.items())
    return with_settings(config, (*pairs, *given["settings"]))


def show(
    report: dict[str, Any],
    names: Sequence[str],
    given: dict[str, Any],
    count: str = "rows",
) -> None:
    """Print figures of a report, after the number of what was evaluated."""
    for name in (count, *names):
        out.print(f"{name:16} {number(report[name])}")
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


def number(value: Any) -> str:
    """A figure as people read it."""
    return f"{value:.3f}" if isinstance(value, float) else str(value)
