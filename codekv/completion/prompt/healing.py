"""Token healing: the half-typed word at a prompt's end is decoded, not read.

A prompt that ends inside a word would show the model tokens it never saw in training;
so the word is taken back and decoding must reproduce its bytes (guidance; also a
generation flag of transformers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codekv.tokens.tokenizer import Encoding

# A half word and the indentation before it; each one costs a decoding step.
MAX_HEALED_TOKENS = 3


def healed(
    encoding: Encoding, text: bytes, heal: bool = True
) -> tuple[tuple[int, ...], bytes]:
    """Split off the half-typed end: (tokens to keep, bytes to reproduce).

    Drops the last token, and more while the cut lies inside a word.
    """
    ids, ends = encoding.ids, encoding.ends
    if not heal or not ids:
        return ids, b""
    keep = len(ids) - 1
    least = max(len(ids) - MAX_HEALED_TOKENS, 0)
    while keep > least and _inside_word(text, ends[keep - 1]):
        keep -= 1
    cut = ends[keep - 1] if keep else 0
    # A token may end inside a character; never ask for half of one.
    while keep and cut < len(text) and text[cut] & 0xC0 == 0x80:
        keep -= 1
        cut = ends[keep - 1] if keep else 0
    return ids[:keep], text[cut:]


def _inside_word(text: bytes, cut: int) -> bool:
    return _is_word(text[cut]) and cut > 0 and _is_word(text[cut - 1])


def _is_word(byte: int) -> bool:
    return chr(byte).isalnum() or byte == 0x5F or byte >= 0x80
