"""The prompts that baselines send: ours as it is, and that of today's plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from codekv.completion.api import Request
from codekv.completion.document import CodeDocuments
from codekv.completion.prompt.tasks import TaskMaker
from codekv.completion.prompt.window import Limits
from codekv.structure.parser import Parser

if TYPE_CHECKING:
    from codekv.config import Config
    from codekv.text.snapshot import Snapshot
    from codekv.tokens.tokenizer import Tokenizer

LINES_ABOVE = 256
"""As llama.vim has it (`n_prefix`)."""

LINES_BELOW = 64
"""As llama.vim has it (`n_suffix`)."""

LINE_ROOM = 64
"""Tokens kept for the line being typed: the lines above must not slide with it."""


class Laid(NamedTuple):
    """Prompt tokens, and bytes that the answer must begin with."""

    tokens: tuple[int, ...]
    need: bytes


class PromptLayout(Protocol):
    """Turns a cursor in a document into a prompt."""

    def __call__(self, snapshot: Snapshot, cursor_byte: int) -> Laid:
        """Lay out the prompt."""


def limits_of(config: Config) -> Limits:
    """The token window that every layout keeps to."""
    completion = config.completion
    return Limits(
        config.kvcache.max_length, completion.suffix_tokens, completion.max_tokens
    )


class Anchored:
    """The prompt of the completion service itself."""

    def __init__(self, tokenizer: Tokenizer, config: Config) -> None:
        self._maker = TaskMaker(tokenizer, config, frozenset())
        self._documents = CodeDocuments(tokenizer, Parser(), config.kvcache.chunk_size)

    def __call__(self, snapshot: Snapshot, cursor_byte: int) -> Laid:
        """See `PromptLayout`."""
        document = self._documents.update(snapshot)
        request = Request(snapshot, cursor_byte)
        plan = self._maker.plan(request, document)
        made = self._maker.make(request, document, plan, self._maker.limits())
        return Laid(made.prompt.tokens, made.prompt.need)


class Plugin:
    """The request of llama.vim: whole lines above, the line, lines below.

        [PRE] 256 lines above + line up to the cursor [SUF] rest + 64 lines [MID]

    As its server does, the three parts are tokenised on their own, the lines above
    are cut from the front and the suffix from the end. The caps are those of our own
    prompt, so that both layouts see about the same tokens; the server's own cap on
    the suffix would be larger.
    """

    def __init__(self, tokenizer: Tokenizer, config: Config) -> None:
        self._tokenizer = tokenizer
        self._limits = limits_of(config)

    def __call__(self, snapshot: Snapshot, cursor_byte: int) -> Laid:
        """See `PromptLayout`."""
        above, line, below = surroundings(snapshot.data, cursor_byte)
        encode, limits, fim = self._tokenizer.encode, self._limits, self._tokenizer.fim
        prompt = encode(line).ids
        room = limits.prefix - min(LINE_ROOM, limits.prefix // 2)
        prefix = encode(above).ids
        prefix = prefix[max(len(prefix) - room, 0) :] + prompt
        bos = () if self._tokenizer.bos_id is None else (self._tokenizer.bos_id,)
        if fim is None:
            return Laid((bos + prefix) or encode(b"\n").ids, b"")
        suffix = encode(below).ids[: limits.suffix]
        return Laid((fim.prefix, *prefix, fim.suffix, *suffix, fim.middle), b"")


def surroundings(data: bytes, cursor_byte: int) -> tuple[bytes, bytes, bytes]:
    """Cut out the lines above, the line up to the cursor, and what is below."""
    head = data[:cursor_byte].split(b"\n")
    above = b"".join(line + b"\n" for line in head[:-1][-LINES_ABOVE:])
    below = b"\n".join(data[cursor_byte:].split(b"\n")[: LINES_BELOW + 1])
    return above, head[-1], below
