"""A process that puts, loads and flushes blocks in one folder until it is told to stop.

`python -m codekv.testing.hammer FOLDER SEED STEPS` prints `ready` after its first
block is on disk, and at the end one line of JSON: how often a loaded block held the
wrong values, and the store's counters. Tests kill it, or run several at once.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

from codekv.testing.blocks import is_same, make_store, planes_for, put_all

NUM_TEXTS = 60
"""So many different blocks that processes meet and evict each other's."""


def main(folder: str, seed: str, steps: str) -> None:
    """Run; see the module."""
    rng = random.Random(int(seed))
    store = make_store(Path(folder), ram_tokens=300, disk_bytes=200_000)
    num_wrong = 0
    for step in range(int(steps)):
        text = rng.randrange(NUM_TEXTS)
        ref = store.ref(None, [text] * (10 + text))
        hit = store.match([ref])[0]
        planes = store.load(hit) if hit else None
        if planes is None:
            put_all(store, [ref])
        elif not is_same(planes, planes_for(ref)):
            num_wrong += 1
        store.flush(5)
        if step == 0:
            sys.stdout.write("ready\n")
            sys.stdout.flush()
    store.check()
    report = {"wrong": num_wrong, **store.stats().counters}
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
