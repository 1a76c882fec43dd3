"""Text to token ids and back, in bytes.

A thin face over the `tokenizers` library: the model's own `tokenizer.json`, no
transformers import. Every offset is a byte offset; every token has bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Encoding:
    """Token ids of a text and the byte offset at which each token ends.

    Tokens tile the text: token i covers bytes [ends[i - 1], ends[i]). A character
    whose bytes fall into several tokens gives tokens that end inside it.
    """

    ids: tuple[int, ...]
    ends: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fim:
    """Ids of the fill-in-the-middle markers, and what ends a middle."""

    prefix: int
    suffix: int
    middle: int
    stop: tuple[int, ...]


class Tokenizer(Protocol):
    """What the rest of the engine asks of a tokenizer; deterministic, thread-safe."""

    vocab_size: int
    fim: Fim | None
    bos_id: int | None
    special_ids: frozenset[int]
    """Ids that stand for no text; they are never offered to a user."""

    fingerprint: str

    def encode(self, data: bytes) -> Encoding:
        """Tokenise UTF-8 text; special-token texts in it are ordinary text."""

    def token_bytes(self, token: int) -> bytes:
        """The bytes a token stands for; empty for special tokens."""

    def decode(self, tokens: Sequence[int]) -> bytes:
        """Concatenate the bytes of tokens; may end inside a character."""
