"""The plain prompt cut at the cursor, on the same weights: what plugins send today.

Greedy like the service, with the same engine, but without an anchor, without healing
and without any trimming: a line ends at its line end, a span where the model ends it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bench.targets.baselines import is_line
from bench.targets.layouts import Plugin
from codekv.completion.api import Completion, Item, Request, Timing
from codekv.completion.load import load_pipeline
from codekv.cooperative import finish
from codekv.engine.decoding.candidate import DecodeOptions
from codekv.engine.engine import Task
from codekv.tokens.tokenizer import load_tokenizer

if TYPE_CHECKING:
    from codekv.completion.pipeline import Pipeline
    from codekv.config import Config
    from codekv.text.snapshot import Snapshot


class PlainAnswers:
    """Answers with the plain prompt; `bench.quality.next_line.Answering`."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._loaded: tuple[Pipeline, Plugin] | None = None
        self._stop_ids: frozenset[int] = frozenset()

    async def ready(self) -> None:
        """Load the model.

        Raises:
            ModelError: It cannot be loaded.
        """
        self._loaded = await asyncio.to_thread(self._load)

    async def idle(self) -> None:
        """There is no idle work."""

    async def close(self) -> None:
        """Free the model."""
        self._loaded = None

    def document_changed(self, snapshot: Snapshot) -> None:
        """Nothing: the request has the text."""

    def document_closed(self, uri: str) -> None:
        """Nothing is kept."""

    async def complete(self, request: Request) -> Completion:
        """Answer one request."""
        return await asyncio.to_thread(self._answer, request)

    def _load(self) -> tuple[Pipeline, Plugin]:
        from codekv.model.library.resolve import resolve_model

        pipeline, _ = finish(load_pipeline(self._config))
        folder = resolve_model(self._config.model, pull=False).folder
        tokenizer = load_tokenizer(folder, self._config.model.fim)
        stop = tokenizer.fim.stop if tokenizer.fim else ()
        self._stop_ids = frozenset((*pipeline.engine.runtime.spec.eos_ids, *stop))
        return pipeline, Plugin(tokenizer, self._config)

    def _answer(self, request: Request) -> Completion:
        assert self._loaded is not None, "ready() comes first"
        pipeline, layout = self._loaded
        is_span = self._config.completion.multiline == "always"
        laid = layout(request.snapshot, request.cursor_byte)
        options = DecodeOptions(
            max_tokens=self._config.completion.max_tokens,
            stop_ids=self._stop_ids,
        )
        task = Task(
            laid.tokens, (), options, lambda text: not is_span and is_line(text)
        )
        outcome = finish(pipeline.engine.answer(task))
        text = outcome.candidate.data.decode(errors="ignore")
        if not is_span:
            text = text.split("\n", 1)[0].rstrip()
        at, score = request.cursor_byte, outcome.candidate.score
        return Completion(
            items=(Item("", text, at, at, score),) if text.strip() else (),
            model=pipeline.engine.runtime.spec.name,
            timing=Timing(total=outcome.prefill_ms + outcome.decode_ms),
        )
