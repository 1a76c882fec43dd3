"""A whole service over the tiny model: everything real but the weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from codekv.completion.document import CodeDocuments
from codekv.completion.load import store_for
from codekv.completion.pipeline import Pipeline
from codekv.engine.engine import Engine
from codekv.engine.speed import Speed
from codekv.model.library.resolve import ResolvedModel
from codekv.storage.blockstore import BlockStore, StoreBudget
from codekv.storage.plain import PlainCodec
from codekv.structure.parser import Parser
from codekv.testing.model import ByteTokenizer, TinyRuntime

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codekv.config import Config
    from codekv.cooperative import Cooperative


TINY = ResolvedModel(Path(), "tiny")
"""What the loader says of this model."""


class Letters(ByteTokenizer):
    """A vocabulary of single bytes, as the engine asks for it."""

    def starting_with(self, need: bytes) -> Sequence[int]:
        """The one token that begins what is needed."""
        return self.allowed(need)


def tiny_pipeline(
    config: Config, precision: str = "fp32", store: BlockStore | None = None
) -> Pipeline:
    """Put a pipeline together, with a block store in memory unless one is given."""
    runtime, tokenizer = TinyRuntime(), Letters()
    store = store or BlockStore(
        fingerprint="tiny",
        budget=StoreBudget(64 << 20),
        codec=PlainCodec(precision),
        kv_shapes=runtime.spec.kv_shapes,
    )
    engine = Engine(runtime, tokenizer, tokenizer.token_bytes, store, config.kvcache)
    # A test's machine may be busy; no prompt shrinks for that.
    engine.speed = Speed(0.001, 0.001)
    documents = CodeDocuments(tokenizer, Parser(), config.kvcache.chunk_size)
    return Pipeline(engine, tokenizer, documents, config)


def load_tiny_as_configured(
    config: Config, _workspace: Path | None = None
) -> Cooperative[tuple[Pipeline, ResolvedModel]]:
    """The same with the block store that the configuration asks for, disk included."""
    yield
    store = store_for(TinyRuntime().spec, config)
    return tiny_pipeline(config, store=store), TINY


def load_tiny(
    config: Config, _workspace: Path | None = None
) -> Cooperative[tuple[Pipeline, ResolvedModel]]:
    """Takes the place of `codekv.completion.load.load_pipeline`."""
    yield
    return tiny_pipeline(config), TINY
