"""How long the walk of one typed character is: modules and calls that answer it.

Counts what of the product runs between a change of the document and its answer, on the
loop's thread and on the engine's, with `sys.setprofile`. The real model answers through
the service, as it does for an editor; idle work is off, so that only the answer counts.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from codekv.completion.api import Request
from codekv.completion.service import Service
from codekv.config import Config, apply
from codekv.text.snapshot import Snapshot

if TYPE_CHECKING:
    from types import FrameType

ROOT = Path(__file__).parents[2]

SOURCE = '''class Shop:
    """A shop."""

    def price(self, item):
        return self.items[item]

    def total(self, cart):
        prices = [self.price(item) for item in cart]
        return '''

TYPED = "sum("


class Walk:
    """What was entered, by module, and every return to a module left before."""

    def __init__(self, root: Path) -> None:
        self._folders = tuple(str(root / name) for name in ("codekv", "lsp"))
        self.calls: Counter[str] = Counter()
        self.stays: list[str] = []

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Take one event of the profiler."""
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(self._folders):
            return
        self.calls[name] += 1
        if self.stays[-1:] != [name]:
            self.stays.append(name)


async def measure(walk: Walk) -> int:
    """Type a few characters and profile the last one; how many tokens it decoded."""
    settings = {
        "completion": {"typed_through": False, "multiline": "never"},
        "kvcache": {"idle_work": False, "disk": False},
    }
    service = Service(apply(Config(), settings, "walk")[0])
    await service.ready()
    completion = None
    for end in range(1, len(TYPED) + 1):
        text = SOURCE + TYPED[:end] + "\n"
        snapshot = Snapshot.from_text("file:///walk.py", end, "python", text)
        request = Request(snapshot, len(SOURCE) + end)
        if end == len(TYPED):
            await service.inspect(lambda _: sys.setprofile(walk.note))
            sys.setprofile(walk.note)
        service.document_changed(snapshot)
        completion = await service.complete(request)
    sys.setprofile(None)
    await service.inspect(lambda _: sys.setprofile(None))
    await service.close()
    assert completion is not None
    return completion.tokens.generated


@click.command()
@click.option("--modules", is_flag=True, help="Name each module and its calls.")
def main(modules: bool) -> None:  # noqa: FBT001 - click's shape
    """Count the modules and calls that answer one typed character."""
    walk = Walk(ROOT)
    generated = asyncio.run(measure(walk))
    click.echo(f"{len(walk.calls)} modules, {sum(walk.calls.values())} calls,")
    click.echo(f"{len(walk.stays)} changes of module, {generated} tokens decoded")
    if modules:
        for name, count in walk.calls.most_common():
            click.echo(f"{count:6} {Path(name).relative_to(ROOT)}")


if __name__ == "__main__":
    main()
