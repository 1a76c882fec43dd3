"""How long the block store takes for blocks of 256 tokens of the default model.

`python -m bench.micro.store [out.json]` prints a table and, as its last line, JSON. Per
codec: `put` encodes a block, `ram` loads it from memory, `flush` writes it to a file,
`disk` loads it from a file the system still has in its page cache, checksum included.
Milliseconds per block: median, 95th percentile, and in brackets the median of the
thread's own processor time. `open` rebuilds the index over a folder of so many files.
On a busy machine only the times in brackets mean anything: what is computed here takes
a millisecond, and waiting for a core takes ten.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from bench.micro.output import give
from codekv.storage.blockstore import BlockMetadata, BlockStore, StoreBudget
from codekv.storage.codec import ClassCodec
from codekv.storage.malloc_tuning import keep_freed_memory
from codekv.storage.plain import PLAIN_NAMES, PlainCodec
from codekv.storage.presets import PRESETS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from codekv.cache.key import BlockRef
    from codekv.storage.encoded import Codec, Planes

SHAPES = ((2, 64, 64),) * 24
"""The default model: 24 layers with 2 kv heads of 64 for keys and values."""

NUM_TOKENS = 256
"""The product's largest block."""

NUM_BLOCKS = 30
"""A file of about 8,000 tokens."""

NUM_FILES = 2_000
"""What a disk tier of some gigabytes holds."""

BUDGET = 1 << 31
"""Bytes; so much that nothing is evicted while one measures."""


def main(arguments: Sequence[str] = ()) -> None:
    """Measure every codec and print."""
    keep_freed_memory()
    codecs: list[Codec] = [PlainCodec(name) for name in PLAIN_NAMES]
    codecs += [ClassCodec(preset) for preset in PRESETS.values()]
    planes = _planes()
    rows: list[dict[str, float | str]] = []
    sys.stdout.write(
        "codec     B/token       put       ram     flush      disk  (ms)\n"
    )
    for codec in codecs:
        with tempfile.TemporaryDirectory() as folder:
            row = _measure(codec, planes, Path(folder))
        rows.append({"codec": codec.name, **row})
        cells = " ".join(
            f"{row[f'{name}_ms']:5.1f}/{row[f'{name}_ms_p95']:5.1f}"
            f" ({row[f'{name}_cpu_ms']:4.1f}) "
            for name in ("put", "ram", "flush", "disk")
        )
        sys.stdout.write(f"{codec.name:8s} {row['bytes_per_token']:8.0f} {cells}\n")
    open_ms = _open()
    sys.stdout.write(f"index of {NUM_FILES} files rebuilt in {open_ms:.1f} ms\n")
    report = {
        "bench": "store",
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "tokens_per_block": NUM_TOKENS,
        "rows": rows,
        "open": {"files": NUM_FILES, "ms": open_ms},
    }
    give(report, arguments)


def _measure(codec: Codec, planes: Planes, folder: Path) -> dict[str, float]:
    store = _store(codec, folder)
    refs = [store.ref(None, [i] * NUM_TOKENS) for i in range(NUM_BLOCKS)]
    # Classes as code has them: half names, a sixth of each other kind.
    classes = bytes([2, 2, 2, 3, 1, 0] * NUM_TOKENS)[:NUM_TOKENS]
    facts = BlockMetadata(classes, cost_s=0.5)
    put = _times(lambda ref: store.put(ref, planes, facts), refs)
    ram = _times(lambda ref: _load(store, ref), refs)
    flush = _times(lambda _: store.flush(0), refs)
    again = _store(codec, folder)
    disk = _times(lambda ref: _load(again, ref), refs)
    counters = again.stats().counters
    if counters["loaded_disk"] != NUM_BLOCKS:
        raise RuntimeError(f"not every block came from disk: {counters}")
    stats = store.stats()
    result = {"bytes_per_token": stats.ram_bytes / stats.ram_tokens}
    for name, times in (("put", put), ("ram", ram), ("flush", flush), ("disk", disk)):
        walls, cpus = zip(*times, strict=True)
        result[f"{name}_ms"] = statistics.median(walls)
        result[f"{name}_ms_p95"] = statistics.quantiles(walls, n=20)[-1]
        result[f"{name}_cpu_ms"] = statistics.median(cpus)
    return result


def _open() -> float:
    """Time to rebuild the index of a folder with many small blocks."""
    codec = PlainCodec("int8")
    with tempfile.TemporaryDirectory() as folder:
        budget = StoreBudget(BUDGET, BUDGET, Path(folder))
        store = BlockStore(fingerprint="m", budget=budget, codec=codec)
        planes = [(torch.ones(1, 1, 2), torch.ones(1, 1, 2))]
        for i in range(NUM_FILES):
            store.put(store.ref(None, [i]), planes, BlockMetadata(b"\0", 0.1))
        store.flush(600_000)
        started = time.perf_counter()
        again = BlockStore(fingerprint="m", budget=budget, codec=codec)
        elapsed = (time.perf_counter() - started) * 1e3
        if again.stats().disk_blocks != NUM_FILES:
            raise RuntimeError("not every file was found")
    return elapsed


def _store(codec: Codec, folder: Path) -> BlockStore:
    return BlockStore(
        fingerprint="m",
        budget=StoreBudget(BUDGET, BUDGET, folder),
        codec=codec,
        kv_shapes=SHAPES,
    )


def _load(store: BlockStore, ref: BlockRef) -> None:
    hit = store.match([ref])[0]
    if hit is None or store.load(hit) is None:
        raise RuntimeError("a block that was stored is gone")


def _times(
    call: Callable[[BlockRef], object], refs: list[BlockRef]
) -> list[tuple[float, float]]:
    """Milliseconds by the clock and of this thread's processor time, per call."""
    times = []
    for ref in refs:
        started, cpu = time.perf_counter(), time.thread_time()
        call(ref)
        wall = time.perf_counter() - started
        times.append((wall * 1e3, (time.thread_time() - cpu) * 1e3))
    return times


def _planes() -> Planes:
    random = torch.Generator().manual_seed(1)
    return [
        (
            torch.randn(heads, NUM_TOKENS, key_dim, generator=random),
            torch.randn(heads, NUM_TOKENS, value_dim, generator=random),
        )
        for heads, key_dim, value_dim in SHAPES
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
