"""How a vocabulary writes bytes down: the two kinds that keep every byte.

Byte-level BPE (GPT-2 and later) writes each byte as one printable character;
SentencePiece-style BPE writes text with a mark for the space and falls back to
`<0xNN>` for bytes it has no character for.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

SPACE_MARK = "\u2581"

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def byte_characters() -> dict[str, int]:
    """The printable character that stands for each byte in byte-level BPE."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(byte): byte for byte in shown}
    hidden = (byte for byte in range(256) if chr(byte) not in table)
    table |= {chr(256 + i): byte for i, byte in enumerate(hidden)}
    return table


_BYTE_OF = byte_characters()


class Alphabet(Enum):
    """Which of the two kinds a vocabulary is."""

    BYTE_LEVEL = "byte-level"
    SENTENCE_PIECE = "sentence-piece"

    @classmethod
    def of(cls, spec: dict[str, Any]) -> Alphabet:
        """Tell the kind of a parsed `tokenizer.json`.

        Raises:
            ValueError: It is neither, so bytes would get lost.
        """
        if _mentions(spec.get("pre_tokenizer"), "ByteLevel"):
            return cls.BYTE_LEVEL
        vocab = spec["model"].get("vocab")
        if isinstance(vocab, dict) and "<0x0A>" in vocab:
            return cls.SENTENCE_PIECE
        raise ValueError("neither byte-level BPE nor BPE with byte fallback")

    def normalizer(self) -> dict[str, Any] | None:
        """The only normalisation that loses nothing: the mark for the space."""
        if self is Alphabet.BYTE_LEVEL:
            return None
        return {"type": "Replace", "pattern": {"String": " "}, "content": SPACE_MARK}

    def reserved(self) -> bytes:
        """What a text cannot say in this alphabet; empty if it can say everything."""
        return SPACE_MARK.encode() if self is Alphabet.SENTENCE_PIECE else b""

    def pre_tokenizer(self, original: dict[str, Any] | None) -> dict[str, Any] | None:
        """The model's own splitting, without a space added before the text."""
        if self is Alphabet.SENTENCE_PIECE:
            return None
        return _without_prefix_space(original) if original else None


def bytes_of_piece(piece: str, alphabet: Alphabet) -> bytes:
    """The bytes that a vocabulary entry stands for."""
    if alphabet is Alphabet.BYTE_LEVEL:
        try:
            return bytes(map(_BYTE_OF.__getitem__, piece))
        except KeyError:  # an entry outside the alphabet: reachable from no text
            return b""
    match = _BYTE_PIECE.fullmatch(piece)
    if match:
        return bytes([int(match[1], 16)])
    return piece.replace(SPACE_MARK, " ").encode()


def _mentions(node: Any, kind: str) -> bool:
    if isinstance(node, dict):
        return node.get("type") == kind or any(
            _mentions(value, kind) for value in node.values()
        )
    return isinstance(node, list) and any(_mentions(value, kind) for value in node)


def _without_prefix_space(node: Any) -> Any:
    if isinstance(node, dict):
        return {
            key: False if key == "add_prefix_space" else _without_prefix_space(value)
            for key, value in node.items()
        }
    return (
        [_without_prefix_space(value) for value in node]
        if isinstance(node, list)
        else node
    )
