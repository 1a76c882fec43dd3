"""`codekv kv report`: what compression costs on this model, class by class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from codekv.commands.console import err, out
from codekv.errors import UsageError
from codekv.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.lab.laboratory import Laboratory

_PARTS = ("presets", "cursors", "classes", "controls", "disk")
_COLUMNS = {
    "presets": (
        "name",
        "bits_per_element",
        "bytes_per_token",
        "kl_mean",
        "kl_p99",
        "same_top",
        "first_divergence",
        "same_text",
        "same_line",
    ),
    "classes": ("name", "bits_per_element", "kl_mean", "kl_p99", "same_top"),
    "controls": ("name", "bits_per_element", "kl_mean", "kl_p99", "same_top"),
    "disk": ("name", "entropy", "difference", "share_of_memory", "expand_tok_s"),
}


@click.group()
def kv() -> None:
    """Look at how keys and values are stored."""


@kv.command()
@click.option("--model", default=None, help="Another model than the configured one.")
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), help="SVG.")
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice(_PARTS),
    help="Only this part, added to what --json holds already; repeatable.",
)
@click.option("--quick", is_flag=True, help="Two texts: a look, not a measurement.")
@click.option("--no-table", is_flag=True, help="Do not keep the calibrated table.")
def report(**given: Any) -> None:
    """Measure divergence per preset, class and control, and calibrate `auto`.

    Runs the model in float32 over files of pinned packages, which are fetched where
    they are missing; the whole takes tens of minutes on two cores. The calibrated
    table is kept beside the model.
    """
    from bench.lab.report import measure_part, merge, model_facts

    lab, folder = _open(given["model"], quick=given["quick"])
    facts = model_facts(lab)
    json_file: Path | None = given["json_file"]
    found = _earlier(json_file, facts) if given["parts"] else facts
    for part in given["parts"] or _PARTS:
        found = merge(found, measure_part(lab, part))
        if json_file is not None:
            # After every part: an interrupted run keeps what it has.
            write_whole(json_file, json.dumps(found, indent=1) + "\n")
    _show(found)
    if given["picture"] is not None:
        from bench.lab.picture import draw

        text = draw(f"{found['model']}: bits against divergence", found["presets"])
        given["picture"].write_text(text, "utf-8")
    if not given["no_table"] and not given["quick"]:
        _keep_table(found, folder)


def _open(name: str | None, *, quick: bool) -> tuple[Laboratory, Path]:
    from bench.lab.corpus import samples
    from bench.lab.laboratory import Laboratory, Size
    from codekv.config import ModelConfig
    from codekv.config_files import load
    from codekv.model.library.resolve import resolve_model
    from codekv.model.runtime.loader import load_runtime
    from codekv.tokens.tokenizer import load_tokenizer

    config = load()[0].model
    chosen = ModelConfig(
        name=name or config.name, compute="fp32", device="cpu", threads=config.threads
    )
    resolved = resolve_model(chosen, pull=False)
    size = Size(num_texts=2, num_cursors=20) if quick else Size()
    runtime = load_runtime(resolved.folder, chosen)
    tokenizer = load_tokenizer(resolved.folder)
    lab = Laboratory(runtime, tokenizer, samples(), size, _tell)
    return lab, resolved.folder


def _tell(line: str) -> None:
    err.print(line, markup=False)


def _earlier(path: Path | None, facts: dict[str, Any]) -> dict[str, Any]:
    """An earlier report of the same measurement, or nothing but the facts."""
    if path is None or not path.is_file():
        return facts
    try:
        found = json.loads(path.read_text("utf-8"))
        is_same = all(found.get(key) == value for key, value in facts.items())
    except (OSError, ValueError, AttributeError) as error:
        raise UsageError(f"{path} is not a report; choose another file") from error
    if not is_same:
        raise UsageError(
            f"{path} holds a report of another model or size; choose another file"
        )
    return dict(found)


def _show(found: dict[str, Any]) -> None:
    for part, columns in _COLUMNS.items():
        rows = found.get(part)
        if not rows:
            continue
        table = Table(title=part, box=None, header_style="bold", title_justify="left")
        for index, column in enumerate(columns):
            table.add_column(column, justify="left" if index == 0 else "right")
        for row in rows:
            table.add_row(*_cells(row, columns))
        out.print(table, soft_wrap=False)
    if "table" in found:
        table_found = found["table"]
        policy = table_found["policy"]
        out.print(
            f"auto: keys {policy['key_bits']}, values {policy['value_bits']} bits for "
            f"other, name, indent, comment; divergence {table_found['kl_mean']:.4f} at "
            f"{table_found['bits_per_element']:.2f} bits",
            markup=False,
        )


def _cells(row: dict[str, Any], columns: Sequence[str]) -> list[str]:
    cells = []
    for column in columns:
        value = row.get(column, "")
        if isinstance(value, float):
            value = f"{value:.5f}" if abs(value) < 1 else f"{value:.2f}"
        cells.append(str(value))
    return cells


def _keep_table(found: dict[str, Any], folder: Path) -> None:
    from bench.lab.report import table_of
    from codekv.model.runtime.loader import fingerprint
    from codekv.storage.classtable import save_table

    table = table_of(found, fingerprint(folder, "table"))
    if table is not None:
        out.print(f"kept as {save_table(folder, table)}", markup=False)
