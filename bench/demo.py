"""Types into a real file through a real server and shows what each keystroke brings.

A scripted editor: starts `codekv serve`, opens a sample file, types lines at a person's
pace and shows the ghost text after each key, its time and the context it stands on. A
key does not wait for an answer: one that comes too late is overtaken. At the end stands
what a user would have felt.
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.targets.client import LspClient
from bench.traces.corpus import SAMPLES
from bench.traces.trace import rhythm
from codekv.errors import CodekvError
from codekv.model.library.catalog import DEFAULT
from codekv.percentiles import percentile
from codekv.processes import module_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SAMPLE = SAMPLES / "depot" / "parcels.py"
# A slow laptop that fetches the model first.
LOADING_S = 300.0
READING_S = 1.0
"""Between opening the file and the first key: enough to find the line."""

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
    """What one keystroke brought: tokens the model saw, and had to compute.

    `saved` are the keys that taking the offer would have spared, if it is right.
    """

    typed: str
    ghost: str
    ms: float
    context: int
    computed: int
    source: str
    is_overtaken: bool = False
    saved: int = 0

    @property
    def cost(self) -> str:
        """What it took, in words of fixed width."""
        if self.is_overtaken:
            return f"{'typed on before an answer':>28}"
        if self.context:
            work = f"{self.computed:4d} of {self.context:5,} tokens"
        else:
            work = f"{SOURCES.get(self.source, 'nothing asked'):>20}"
        return f"{self.ms:5.0f} ms  {work}"


def main(argv: Sequence[str] | None = None, server: Sequence[str] = SERVER) -> int:
    """Run the demonstration; 0 if ghost text came.

    `--fast` waits for each answer instead of a person's pauses. With
    `--as-used` the server may answer without the model, as it does in an editor.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    console = Console(highlight=False)
    pause = "--fast" not in words
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
        keys = _Keys(client, uri, data.encode(), pause=pause)
        for line in _lines(data):
            start = await keys.begin(line)
            console.print(Text(_above(keys.text, start), style="dim"))
            for number in range(len(line.strip())):
                stroke = await keys.press(line.strip()[number:])
                strokes.append(stroke)
                _show(console, stroke)
            console.print()
    return strokes


class _Keys:
    """A person's keys in one document; each asks, and the next does not wait."""

    def __init__(
        self, client: LspClient, uri: str, text: bytes, *, pause: bool
    ) -> None:
        self._client = client
        self._uri = uri
        self._pause = pause
        self._rng = Random(1)
        self._start = self._at = 0
        self.text = text

    async def begin(self, line: str) -> int:
        """Delete a line but for its indentation; where it begins."""
        self._start = self.text.find(line.encode())
        self._at = self._start + len(line) - len(line.lstrip())
        end = self._start + len(line.encode())
        await self._client.replace(self._uri, self._at, end, "")
        self.text = self.text[: self._at] + self.text[end:]
        return self._start

    async def press(self, rest: str) -> Keystroke:
        """Press the first key of what is left of the line, and ask until the next."""
        at, key = self._at, rest[0].encode()
        await self._client.replace(self._uri, at, at, rest[0])
        self.text = self.text[:at] + key + self.text[at:]
        self._at += len(key)
        typed = self.text[self._start : self._at].decode()
        began = time.perf_counter()
        asked = asyncio.ensure_future(self._client.complete(self._uri, self._at))
        gap = rhythm(self._rng) if self._pause else LOADING_S
        await asyncio.wait({asked}, timeout=gap)
        ms = (time.perf_counter() - began) * 1000
        if not asked.done():
            asked.cancel()
            return Keystroke(typed, "", ms, 0, 0, "", is_overtaken=True)
        ghost = asked.result()
        last: Any = (await self._client.status()).get("last") or {}
        counts = int(last.get("context", 0)), int(last.get("computed", 0))
        # One key takes the offer, so that is what it costs.
        saved = len(ghost) - 1 if ghost and rest[1:].startswith(ghost) else 0
        source = str(last.get("source", ""))
        if self._pause:
            await asyncio.sleep(max(began + gap - time.perf_counter(), 0.0))
        return Keystroke(typed, ghost, ms, *counts, source, saved=saved)


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
    answered = [stroke for stroke in strokes if not stroke.is_overtaken]
    asked = [stroke for stroke in answered if stroke.context]
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row(
        "keystrokes",
        f"{len(strokes)}, ghost text after {len(shown)}, "
        f"{len(strokes) - len(answered)} typed on before an answer",
    )
    times = [stroke.ms for stroke in answered]
    table.add_row(
        "time",
        f"median {percentile(times, 0.5):.0f} ms, "
        f"19 of 20 within {percentile(times, 0.95):.0f} ms",
    )
    if asked:
        contexts = [stroke.context for stroke in asked]
        computed = [stroke.computed for stroke in asked]
        table.add_row(
            "context",
            f"{contexts[0]:,} tokens at first, {max(contexts):,} at most, "
            f"median {percentile(contexts, 0.5):,.0f}",
        )
        table.add_row(
            "computed",
            f"median {percentile(computed, 0.5):.0f} tokens, most {max(computed)}",
        )
    table.add_row("keystrokes saved", f"{_most_saved(strokes)} of {len(strokes)}")
    console.print(table)
    return 0


def _most_saved(strokes: Sequence[Keystroke]) -> int:
    """Keys spared by a user who takes every right offer as soon as it is shown."""
    saved = skip = 0
    for stroke in strokes:
        if skip:
            skip -= 1
        elif stroke.saved:
            saved += stroke.saved
            # The offer's own characters are there now, and need no key.
            skip = stroke.saved + 1
    return saved


if __name__ == "__main__":
    raise SystemExit(main())
