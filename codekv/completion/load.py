"""Put a pipeline together from a configuration; on the engine's thread."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from codekv.completion.pipeline import Pipeline
    from codekv.config import Config
    from codekv.cooperative import Cooperative
    from codekv.model.library.resolve import ResolvedModel
    from codekv.model.runtime.interface import ModelSpec, Runtime
    from codekv.storage.blockstore import BlockStore
    from codekv.storage.classtable import ClassTable


log = logging.getLogger(__name__)

_STEPS_TIMED = 8
"""A third of a second at the longest step that is accepted."""


def load_pipeline(
    config: Config, workspace: Path | None = None
) -> Cooperative[tuple[Pipeline, ResolvedModel]]:
    """Find, map and check the model; yields between the parts.

    Args:
        config: What to load.
        workspace: The folder from which on prompts name files, and whose other files
            they may tell of.

    Returns:
        The pipeline, and which model it is and why.

    Raises:
        ModelError: The model is not there or cannot be used.
    """
    from codekv.model.library.resolve import resolve_model
    from codekv.storage.malloc_tuning import keep_freed_memory

    keep_freed_memory()
    resolved = resolve_model(config.model, pull=False)
    yield
    from codekv.tokens.tokenizer import load_tokenizer
    from codekv.tokens.vocab import Vocabulary

    tokenizer = load_tokenizer(resolved.folder, config.model.fim)
    vocab = Vocabulary(tokenizer)
    yield
    from codekv.model.runtime.loader import load_runtime

    named = config.model.model_copy(update={"name": resolved.name})
    runtime = load_runtime(resolved.folder, named)
    yield
    if resolved.choice is not None:
        from codekv.model.library.choice import note_step

        if note_step(resolved.name, (yield from _quickest_step_ms(runtime))):
            # The measured step decides from now on, so this ends with the other model.
            del runtime
            return (yield from load_pipeline(config, workspace))
    from codekv.completion.document import CodeDocuments
    from codekv.completion.pipeline import Pipeline
    from codekv.engine.engine import Engine
    from codekv.engine.speed import measured
    from codekv.structure.parser import Parser

    kvcache = config.kvcache
    store = open_store(runtime.spec, config, resolved.folder)
    engine = Engine(runtime, vocab, tokenizer.token_bytes, store, kvcache)
    engine.speed = yield from measured(runtime)
    documents = CodeDocuments(tokenizer, Parser(), kvcache.chunk_size)
    pipeline = Pipeline(engine, tokenizer, documents, config)
    if workspace is not None:
        from codekv.completion.prompt.other_files import OtherFiles
        from codekv.completion.prompt.workspace import WorkspaceIndex

        pipeline.work_in(workspace)
        index = WorkspaceIndex(workspace, config.privacy)
        pipeline.watch(OtherFiles(index, tokenizer))
    return pipeline, resolved


def _quickest_step_ms(runtime: Runtime) -> Cooperative[float]:
    """Time a step of one token; others may be at work during some, so the best counts.

    The first ones also get kernels and memory ready.
    """
    kv = runtime.new_kv(_STEPS_TIMED)
    times = []
    for index in range(_STEPS_TIMED):
        started = time.perf_counter()
        runtime.forward(kv, [1], index, "last")
        times.append((time.perf_counter() - started) * 1e3)
        yield
    return min(times)


def open_store(spec: ModelSpec, config: Config, folder: Path) -> BlockStore:
    """Open the block store that a configuration asks for.

    Args:
        spec: The running model.
        config: Sizes, places and precision.
        folder: The model's, where its calibrated class table lies.
    """
    from codekv.model.runtime.loader import fingerprint
    from codekv.storage.classtable import load_table

    return store_for(spec, config, load_table(folder, fingerprint(folder, "table")))


def store_for(
    spec: ModelSpec, config: Config, table: ClassTable | None = None
) -> BlockStore:
    """Open the block store for a model and its calibrated class table, if any."""
    from codekv.config import cache_dir
    from codekv.storage.blockstore import BlockStore, StoreBudget
    from codekv.storage.classtable import codec_for, shipped_heads
    from codekv.storage.eviction_settings import Upkeep

    kvcache = config.kvcache
    if kvcache.disk and not kvcache.idle_work:
        log.warning(
            "kvcache.idle_work is false: blocks are stored in pauses only, so nothing "
            "is stored and a restart is cold"
        )
    budget = StoreBudget(
        kvcache.memory_mb << 20,
        kvcache.disk_mb << 20,
        cache_dir() / "blocks" if kvcache.disk else None,
        kvcache.disk_coding,
    )
    return BlockStore(
        fingerprint=spec.fingerprint,
        budget=budget,
        codec=codec_for(kvcache.precision, table, shipped_heads(spec.name)),
        upkeep=Upkeep.from_config(kvcache),
        kv_shapes=spec.kv_shapes,
    )


def needs_reload(old: Config, new: Config) -> bool:
    """Whether a change concerns what was set up when the model was loaded."""
    fixed = {
        "reuse",
        "repair_tokens",
        "repair_tail",
        "repair_names",
        "max_drift",
        "max_length",
        "idle_work",
        "warm_tokens",
    }
    before = old.kvcache.model_dump(exclude=fixed)
    return old.model != new.model or before != new.kvcache.model_dump(exclude=fixed)
