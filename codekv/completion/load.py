"""Put a pipeline together from a configuration; on the engine's thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codekv.completion.pipeline import Pipeline
    from codekv.config import Config
    from codekv.engine.worker import Steps
    from codekv.storage.blockstore import BlockStore


def load_pipeline(config: Config) -> Steps[Pipeline]:
    """Find, map and check the model; yields between the parts.

    Raises:
        ModelError: The model is not there or cannot be used.
    """
    from codekv.model.store import resolve_model

    resolved = resolve_model(config.model, pull=False)
    yield
    from codekv.tokens.tokenizer import load_tokenizer
    from codekv.tokens.vocab import Vocabulary

    tokenizer = load_tokenizer(resolved.folder, config.model.fim)
    vocab = Vocabulary(tokenizer)
    yield
    from codekv.model.loader import load_runtime

    runtime = load_runtime(resolved.folder, config.model)
    yield
    from codekv.completion.document import Documents
    from codekv.completion.pipeline import Pipeline
    from codekv.engine.engine import Engine
    from codekv.structure.parser import Parser

    kvcache = config.kvcache
    engine = Engine(
        runtime,
        vocab,
        open_store(runtime.spec.fingerprint, config),
        live=kvcache.live_documents,
        move=kvcache.reuse == "moved",
        repair_tokens=kvcache.repair_tokens,
    )
    documents = Documents(tokenizer, Parser(), kvcache.chunk_size)
    return Pipeline(engine, tokenizer, documents, config)


def open_store(fingerprint: str, config: Config) -> BlockStore:
    """Open the block store that a configuration asks for."""
    from codekv.storage.blockstore import BlockStore, StoreBudget
    from codekv.storage.plain import plain_codec

    kvcache = config.kvcache
    budget = StoreBudget(kvcache.memory_mb << 20)
    return BlockStore(fingerprint=fingerprint, budget=budget, codec=plain_codec("fp16"))
