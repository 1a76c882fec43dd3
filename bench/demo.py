"""Types into a real file through a real server and shows what each keystroke costs.

A scripted editor: starts `codekv serve`, opens a sample file, types lines character
by character and shows the ghost text, its time and its computed tokens.
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.targets.client import LspClient
from bench.traces.corpus import SAMPLES
from bench.traces.trace import rhythm
from codekv.errors import CodekvError
from codekv.model.library.catalog import DEFAULT
from codekv.processes import module_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SAMPLE = SAMPLES / "depot" / "parcels.py"
LOADING_S = 300.0
READING_S = 4.0
SERVER = module_command("codekv", "serve")

SOURCES = {"typed_through": "as shown before"}
"""Where an answer came from that took no tokens, in words."""

PINNED = {"model": {"name": DEFAULT.name}}
"""The demonstration shows the same on every machine, whatever `auto` stands for."""

EVERY_KEYSTROKE = {"completion": {"typed_through": False, "speculate": False}}
"""Lets the model answer after every keystroke, so that each one's cost shows."""

LINES = (
    '        postcode = row["postcode"].strip().zfill(5)',
    "        parcel = self.get(parcel_id).with_event(event)",
    '            raise DepotError(f"weight {weight_g} g is not positive")',
)
"""Lines of the sample that are deleted and typed again where they exist."""


@dataclass(frozen=True, slots=True)
class Keystroke:
    """What one keystroke brought: tokens the model saw, and had to compute."""

    typed: str
    ghost: str
    ms: float
    context: int
    computed: int
    source: str

    @property
    def cost(self) -> str:
        """What it took, in words of fixed width."""
        if self.context:
            work = f"{self.computed:4d} of {self.context:5,} tokens"
        else:
            work = f"{SOURCES.get(self.source, 'nothing asked'):>20}"
        return f"{self.ms:5.0f} ms  {work}"


def main(argv: Sequence[str] | None = None, server: Sequence[str] = SERVER) -> int:
    """Run the demonstration; 0 if ghost text came.

    `--fast` leaves out the pauses between keystrokes, as does a pipe. With
    `--as-used` the server may answer without the model, as it does in an editor.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    console = Console(highlight=False)
    pause = console.is_terminal and "--fast" not in words
    options = PINNED if "--as-used" in words else PINNED | EVERY_KEYSTROKE
    try:
        strokes = asyncio.run(_play(console, server, options, pause=pause))
    except CodekvError as error:
        console.print(f"codekv: {error}", style="red")
        return 1
    except KeyboardInterrupt:
        return 130
    return _summary(console, strokes)


async def _play(
    console: Console,
    server: Sequence[str],
    options: Mapping[str, Any],
    *,
    pause: bool,
) -> list[Keystroke]:
    data = SAMPLE.read_text("utf-8")
    uri = SAMPLE.resolve().as_uri()
    rng = Random(1)
    strokes: list[Keystroke] = []
    console.print(f"[bold]codekv[/] types into {SAMPLE.name}, {len(data):,} bytes")
    started = time.perf_counter()
    async with LspClient(server, SAMPLE.parent, options=options) as client:
        with console.status("the server loads the model"):
            status = await client.ready(LOADING_S)
        ready = time.perf_counter() - started
        console.print(f"{status.get('model', '')} ready after {ready:.1f} s\n")
        await client.open(uri, "python", data)
        with console.status("a person reads, the server warms the file"):
            await client.settle(READING_S)
        text = data.encode()
        for line in _lines(data):
            start = text.find(line.encode())
            indent = len(line) - len(line.lstrip())
            at = start + indent
            await client.replace(uri, at, start + len(line.encode()), "")
            text = text[:at] + text[start + len(line.encode()) :]
            console.print(Text(_above(text, start), style="dim"))
            for character in line[indent : indent + 28]:
                if pause:
                    await asyncio.sleep(rhythm(rng))
                await client.replace(uri, at, at, character)
                text = text[:at] + character.encode() + text[at:]
                at += len(character.encode())
                stroke = await _ask(client, uri, text[start:at].decode(), at)
                strokes.append(stroke)
                _show(console, stroke)
            console.print()
    return strokes


async def _ask(client: LspClient, uri: str, typed: str, at: int) -> Keystroke:
    began = time.perf_counter()
    ghost = await client.complete(uri, at)
    ms = (time.perf_counter() - began) * 1000
    last: Any = (await client.status()).get("last") or {}
    counts = int(last.get("context", 0)), int(last.get("computed", 0))
    return Keystroke(typed, ghost, ms, *counts, str(last.get("source", "")))


def _lines(data: str) -> Iterable[str]:
    found = [line for line in LINES if f"\n{line}\n" in data]
    if found:
        return found
    raise CodekvError(f"{SAMPLE}: the demo's lines are not in the file; reinstall it")


def _above(text: bytes, start: int) -> str:
    """The two lines above the place."""
    return "\n".join(text[:start].decode().splitlines()[-2:])


def _show(console: Console, stroke: Keystroke) -> None:
    first, *more = stroke.ghost.split("\n")
    ghost = first + (f" ⏎+{len(more)}" if more else "")
    room = max(console.width - len(stroke.cost) - 2, 20)
    line = Text(stroke.typed, style="bold")
    line.append(ghost, style="dim italic")
    line.truncate(room, overflow="ellipsis", pad=True)
    tone = "green" if stroke.computed <= 4 else "yellow"
    line.append(f"  {stroke.cost}", style=tone)
    console.print(line, no_wrap=True, crop=False)


def _summary(console: Console, strokes: Sequence[Keystroke]) -> int:
    shown = [stroke for stroke in strokes if stroke.ghost]
    if not shown:
        console.print("no ghost text came; try: codekv doctor", style="red")
        return 1
    asked = [stroke for stroke in strokes if stroke.context]
    computed = [stroke.computed for stroke in asked]
    times = [stroke.ms for stroke in strokes]
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("keystrokes", f"{len(strokes)}, ghost text after {len(shown)}")
    table.add_row("time", f"median {median(times):.0f} ms, worst {max(times):.0f} ms")
    if asked:
        table.add_row("asked the model", f"{len(asked)} times; the rest was known")
        table.add_row(
            "computed", f"median {median(computed):.0f} tokens, most {max(computed)}"
        )
        context = median(stroke.context for stroke in asked)
        table.add_row("without reuse", f"{context:,.0f} tokens for each of them")
    console.print(table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
