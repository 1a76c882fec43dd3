"""What several different answers cost beside one.

`python -m bench.micro.candidates [out.json [MODEL]]` asks by hand at places in the
sample files, behind a context that is held already: once for one answer, once for
three. One answer may guess its own next tokens and check several in a step, as it does
in an editor; candidates do not, so one answer is asked for without guesses as well.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from typing import TYPE_CHECKING, Any

from bench.micro.output import give
from bench.traces import corpus
from bench.traces.cursors import cursors
from codekv.completion.api import Request, Trigger
from codekv.completion.service import Service
from codekv.config import Config, apply
from codekv.percentiles import percentile
from codekv.text.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.traces.cursors import Cursor
    from codekv.completion.api import Completion

NUM_PLACES = 24
"""Enough for a median."""

NUM_CANDIDATES = 3
"""What editors show when one asks by hand."""

KINDS = ("indented-line", "half-line")
STILL = {
    "completion": {
        "latency_budget_ms": 60000,
        "multiline": "never",
        "typed_through": False,
        "speculate": False,
    },
    "kvcache": {"disk": False, "idle_work": False},
}


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    config, problems = apply(Config(), STILL, "candidates")
    assert not problems, problems
    if len(arguments) > 1:
        config, _ = apply(config, {"model": {"name": arguments[1]}}, "candidates")
    give(asyncio.run(_measure(config)), arguments[:1])


async def _measure(config: Config) -> dict[str, Any]:
    service = Service(config)
    try:
        await service.ready()
        places = cursors(corpus.load(corpus.SAMPLES), KINDS, NUM_PLACES, seed=1)
        found = [await _both(service, config, place) for place in places]
    finally:
        await service.close()
    pairs = [pair for pair in found if pair is not None]
    ratios = [several / one for one, _, several, _ in pairs]
    return {
        "bench": "candidates",
        "model": config.model.name,
        "places": len(pairs),
        "texts": statistics.mean(count for *_, count in pairs),
        "one_ms": statistics.median(one for one, *_ in pairs),
        "one_by_one_ms": statistics.median(one for _, one, *_ in pairs),
        "several_ms": statistics.median(several for *_, several, _ in pairs),
        "ratio": statistics.median(ratios),
        "ratio_by_one": statistics.median(
            several / one for _, one, several, _ in pairs
        ),
        "ratio_p90": percentile(ratios, 0.9) or 0.0,
    }


async def _both(
    service: Service, config: Config, place: Cursor
) -> tuple[float, float, float, int] | None:
    """Milliseconds of one answer, one without guesses, and several, and how many."""
    snapshot = Snapshot(place.uri, 1, place.language, place.data)
    service.document_changed(snapshot)

    async def ask(count: int) -> Completion:
        request = Request(snapshot, place.cursor_byte, Trigger.INVOKED, count)
        return await service.complete(request)

    first = await ask(NUM_CANDIDATES)
    if not first.items:
        return None
    # Candidates first: one answer would be remembered, and guessed from afterwards.
    several = (await ask(NUM_CANDIDATES)).timing.total
    one = (await ask(1)).timing.total
    service.reconfigure(apply(config, {"completion": {"drafting": False}}, "bench")[0])
    plain = (await ask(1)).timing.total
    service.reconfigure(config)
    return one, plain, several, len(first.items)


if __name__ == "__main__":
    main(sys.argv[1:])
