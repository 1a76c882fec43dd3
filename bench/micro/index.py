"""How long the prefix index takes as the number of stored functions grows.

`python -m bench.micro.index [out.json]` prints a table and, as its last line, JSON.
A request is a file of 12 functions of 120 tokens: naming them (hashing), matching
them, and storing 12 new ones. Times are medians per block, in microseconds, with
the fastest quarter beside them, because a busy machine adds to every one.
"""

from __future__ import annotations

import platform
import random
import statistics
import sys
import time
from typing import TYPE_CHECKING

from bench.micro.output import give
from codekv.cache.key import BlockRef, chain_of
from codekv.cache.manager import CacheManager, NewBlock
from codekv.cache.policy import policy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SIZES = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
"""Functions stored: from one file to a large repository, even on a logarithmic axis."""

NUM_BLOCKS, NUM_TOKENS = 12, 120
"""A prompt of about 1,400 tokens, in blocks of an ordinary function's size."""

REPEATS = 200
"""Operations take microseconds; so many of them take milliseconds."""


def main(arguments: Sequence[str] = ()) -> None:
    """Measure every size and print."""
    rng = random.Random(1)
    manager = CacheManager(1 << 60, policy("cost"))
    rows: list[dict[str, float]] = []
    sys.stdout.write("functions   name  match  content  insert   (us per block)\n")
    texts: list[list[BlockRef]] = []
    for size in SIZES:
        while len(manager) < size:
            texts.append(_text(rng))
            _store(manager, texts[-1])
        row = {"functions": len(manager), **_measure(manager, texts, rng)}
        rows.append(row)
        names = ("name_us", "match_us", "content_us", "insert_us")
        cells = " ".join(f"{row[name]:7.2f}" for name in names)
        sys.stdout.write(f"{len(manager):9d} {cells}\n")
    report = {
        "bench": "index",
        "python": platform.python_version(),
        "blocks_per_request": NUM_BLOCKS,
        "tokens_per_block": NUM_TOKENS,
        "rows": rows,
    }
    give(report, arguments)


def _measure(
    manager: CacheManager, texts: list[list[BlockRef]], rng: random.Random
) -> dict[str, float]:
    tokens = _tokens(rng)
    known = [rng.choice(texts) for _ in range(REPEATS)]
    # The same functions after another first line: found by content only.
    moved = [[_moved(ref) for ref in refs] for refs in known]
    fresh = [_text(rng) for _ in range(REPEATS)]
    result: dict[str, float] = {}
    _note(result, "name", [lambda: chain_of("f", tokens)] * REPEATS)
    _note(result, "match", [_matcher(manager, refs) for refs in known])
    _note(result, "content", [_matcher(manager, refs) for refs in moved])
    _note(result, "insert", [_storer(manager, refs) for refs in fresh])
    for refs in fresh:
        for ref in refs:
            manager.discard(ref.chain)
    return result


def _note(
    result: dict[str, float], name: str, calls: list[Callable[[], object]]
) -> None:
    times = []
    for call in calls:
        started = time.perf_counter()
        call()
        times.append((time.perf_counter() - started) * 1e6 / NUM_BLOCKS)
    result[f"{name}_us"] = statistics.median(times)
    result[f"{name}_us_fast"] = statistics.quantiles(times, n=4)[0]


def _matcher(manager: CacheManager, refs: list[BlockRef]) -> Callable[[], object]:
    return lambda: manager.match(refs)


def _storer(manager: CacheManager, refs: list[BlockRef]) -> Callable[[], object]:
    return lambda: _store(manager, refs)


def _store(manager: CacheManager, refs: list[BlockRef]) -> None:
    for ref in refs:
        manager.insert(
            NewBlock(
                chain=ref.chain,
                content=ref.content,
                parent=ref.parent,
                tokens=ref.tokens,
                num_tokens=ref.num_tokens,
                num_bytes=NUM_TOKENS * 6528,
                cost_s=0.2,
            ),
            0.0,
        )


def _tokens(rng: random.Random) -> list[list[int]]:
    return [
        [rng.randrange(150_000) for _ in range(NUM_TOKENS)] for _ in range(NUM_BLOCKS)
    ]


def _text(rng: random.Random) -> list[BlockRef]:
    return chain_of("f", _tokens(rng))


def _moved(ref: BlockRef) -> BlockRef:
    chain = type(ref.chain)(bytes(16))
    return BlockRef(chain, ref.content, ref.parent, ref.tokens)


if __name__ == "__main__":
    main(sys.argv[1:])
