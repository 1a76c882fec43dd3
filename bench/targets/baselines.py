"""What others do, on the same runtime: plain prefix reuse on one sequence, greedy.

No blocks, no drafts, no idle work, so that a baseline differs from the service in its
layout and reuse alone. Also the slow twin of the engine: forty lines over `Runtime`.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, Any

from bench.targets.target import TargetDocuments
from codekv.completion.api import Completion, Item, Timing, TokenCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from bench.targets.layouts import Laid, PromptLayout
    from bench.traces.trace import Ask, Open, TypedEdit
    from codekv.model.runtime.interface import Runtime
    from codekv.storage.tensors import KVTensors
    from codekv.tokens.tokenizer import Tokenizer

CHUNK = 256
"""Tokens per step of a prefill: full speed, and as the service does it in a pause."""


class Greedy:
    """Continues prompts on one sequence, reusing the common prefix if told to."""

    def __init__(
        self, runtime: Runtime, tokenizer: Tokenizer, max_tokens: int, *, reuse: bool
    ) -> None:
        self._runtime = runtime
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        self._reuse = reuse
        self._kv: KVTensors = runtime.new_kv(1024)
        self._held: list[int] = []
        stop = tokenizer.fim.stop if tokenizer.fim else ()
        self._stop = {*runtime.spec.eos_ids, *stop, *tokenizer.special_ids}

    def forget(self) -> None:
        """Begin anew, as a new process would."""
        self._held.clear()

    def answer(self, laid: Laid) -> Completion:
        """Continue a prompt to the end of its line."""
        began = time.perf_counter()
        tokens = laid.tokens
        common = num_reused(self._held, tokens) if self._reuse else 0
        row = self._prefill(tokens, common)
        first = time.perf_counter()
        text, generated = self._decode(row, laid.need)
        ended = time.perf_counter()
        shown = text[len(laid.need) :].split(b"\n", 1)[0].decode(errors="ignore")
        items = (Item("", shown.rstrip(), 0, 0),) if shown.strip() else ()
        prefill, decode = (first - began) * 1e3, (ended - first) * 1e3
        return Completion(
            items,
            self._runtime.spec.name,
            Timing(prefill + decode, prefill, decode, prefill),
            TokenCounts(
                len(tokens),
                exact=common,
                computed=len(tokens) - common,
                generated=generated,
                steps=generated,
            ),
            reuse_stop="prefix" if common < len(tokens) - 1 else "",
        )

    def _prefill(self, tokens: Sequence[int], common: int) -> Tensor:
        self._kv.grow(len(tokens) + self._max_tokens + 1)
        row: Tensor | None = None
        for start in range(common, len(tokens), CHUNK):
            row = self._runtime.forward(self._kv, tokens[start : start + CHUNK], start)
        self._held = list(tokens)
        assert row is not None
        return row[-1]

    def _decode(self, row: Tensor, need: bytes) -> tuple[bytes, int]:
        text, count = b"", 0
        while count < self._max_tokens:
            token = self._pick(row, need[len(text) :])
            if token is None or token in self._stop:
                break
            text += self._tokenizer.token_bytes(token)
            count += 1
            if is_line(text[len(need) :]):
                break
            logits = self._runtime.forward(self._kv, [token], len(self._held))
            self._held.append(token)
            assert logits is not None
            row = logits[-1]
        return text, count

    def _pick(self, row: Tensor, need: bytes) -> int | None:
        """The likeliest token that agrees with `need`."""
        if not need:
            return int(row.argmax())
        for token in row.argsort(descending=True).tolist():
            piece = self._tokenizer.token_bytes(token)
            if piece and (piece.startswith(need) or need.startswith(piece)):
                return int(token)
        return None


def is_line(text: bytes) -> bool:
    """Whether a text holds a whole line, leading line ends apart."""
    return b"\n" in text.lstrip(b"\n") or (b"\n" in text and bool(text.strip()))


class BaselineTarget:
    """A baseline as a target; `load` gives layout and decoder, on any thread."""

    def __init__(self, load: Callable[[], tuple[PromptLayout, Greedy]]) -> None:
        self._load = load
        self._documents = TargetDocuments()
        self._loaded: tuple[PromptLayout, Greedy] | None = None

    async def start(self) -> None:
        """See `Target`."""
        self._loaded = await asyncio.to_thread(self._load)

    async def open(self, step: Open) -> None:
        """See `Target`."""
        self._documents.open(step)

    async def edit(self, step: TypedEdit) -> None:
        """See `Target`."""
        self._documents.edit(step)

    async def focus(self, uri: str) -> None:
        """See `Target`: one sequence knows no documents."""

    async def ask(self, step: Ask) -> Completion:
        """See `Target`."""
        assert self._loaded is not None, "start() comes first"
        layout, greedy = self._loaded
        snapshot, cursor = self._documents[step.uri], step.cursor_byte
        return await asyncio.to_thread(lambda: greedy.answer(layout(snapshot, cursor)))

    async def account(self, answer: Completion) -> Completion:
        """See `Target`."""
        return answer

    async def settle(self, seconds: float) -> None:
        """See `Target`: there is no idle work."""

    async def restart(self) -> None:
        """See `Target`."""
        assert self._loaded is not None, "start() comes first"
        self._loaded[1].forget()
        self._documents.clear()

    async def close(self) -> None:
        """See `Target`."""
        self._loaded = None

    @property
    def pid(self) -> int:
        """See `Target`."""
        return os.getpid()

    @property
    def metrics(self) -> dict[str, Any]:
        """See `Target`."""
        return {}


def num_reused(held: Sequence[int], tokens: Sequence[int]) -> int:
    """How many leading tokens of a prompt a sequence that holds `held` saves.

    One token is always computed: its logits are wanted.
    """
    count = 0
    for one, other in zip(held, tokens, strict=False):
        if one != other:
            break
        count += 1
    return min(count, len(tokens) - 1)
