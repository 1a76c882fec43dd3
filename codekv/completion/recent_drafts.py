"""The last model answer in each document, as tokens to draft the next one from.

The next keystroke's answer mostly begins with what is left of the last one; as a
draft it costs one step to confirm.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# Some 100 lines above: where the same words were most likely written before.
CONTEXT_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Given:
    """Decoded tokens and the text they were decoded at.

    Attributes:
        start_byte: Where the decoded bytes begin (before the healed word).
        before: The text just before that.
        ends: Where each token ends, counted from `start_byte`.
    """

    start_byte: int
    before: bytes
    tokens: tuple[int, ...]
    ends: tuple[int, ...]
    data: bytes


class Told:
    """The last tokens that a decoding run has told of."""

    def __init__(self) -> None:
        self.tokens: tuple[int, ...] = ()

    def progress(self, tokens: Sequence[int]) -> None:
        """Take the tokens decoded so far."""
        self.tokens = tuple(tokens)


class Drafts:
    """One answer per document; on the engine's thread.

    Attributes:
        num_dropped: Tokens decoded for answers that were dropped.
    """

    def __init__(self, token_bytes: Callable[[int], bytes]) -> None:
        self._token_bytes = token_bytes
        self._given: dict[str, Given] = {}
        self.num_dropped = 0

    @contextmanager
    def recording(self, uri: str, data: bytes, start: int) -> Iterator[Told]:
        """Remember the tokens decoded at `start` of a document's bytes.

        The work inside tells what it has so far. The last it told is kept at the end,
        also if the work is dropped: the next keystroke confirms it in one step.
        """
        told = Told()
        try:
            yield told
        except GeneratorExit:
            self.num_dropped += len(told.tokens)
            raise
        finally:
            self.note(uri, data, start, told.tokens)

    def note(self, uri: str, data: bytes, start: int, tokens: Sequence[int]) -> None:
        """Remember the tokens decoded at `start` of a document's bytes."""
        if not tokens:
            return
        parts = [self._token_bytes(token) for token in tokens]
        ends = tuple(accumulate(map(len, parts)))
        before = data[max(0, start - CONTEXT_BYTES) : start]
        self._given[uri] = Given(start, before, tuple(tokens), ends, b"".join(parts))

    def find(self, uri: str, data: bytes, start: int, cursor: int) -> tuple[int, ...]:
        """Tokens of the last answer that continue at `start`, if the text agrees."""
        given = self._given.get(uri)
        if given is None:
            return ()
        offset = start - given.start_byte
        typed = data[given.start_byte : cursor]
        if not 0 <= offset < len(given.data) or not given.data.startswith(typed):
            return ()
        if not data[: given.start_byte].endswith(given.before):
            return ()
        if offset == 0:
            return given.tokens
        if offset not in given.ends:
            return ()
        return given.tokens[given.ends.index(offset) + 1 :]

    def forget(self, uri: str) -> None:
        """Drop a document's answer."""
        self._given.pop(uri, None)
