"""Names of blocks: what they hold, and what stands before them.

A chain key hashes the parent's chain key and the block's tokens, so that equal keys
mean equal text from the start; a content key hashes the tokens alone. Both begin
with the fingerprint of everything that makes keys and values incompatible. A hash is
never trusted alone: a reference carries its tokens, and a hit compares them.
"""

from __future__ import annotations

import sys
from array import array
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

from codekv.units import ChainKey, ContentKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# 128 bits: two blocks by chance under one name would take 2^64 of them.
KEY_BYTES = 16
# A token id as a little-endian 32-bit number; vocabularies need 18 bits.
TOKEN_BYTES = 4
_CHAIN, _CONTENT = b"codekv-chain", b"codekv-content"  # at most 16 bytes each


@dataclass(frozen=True, slots=True)
class BlockRef:
    """A block as asked for.

    Attributes:
        parent: Chain key of the block before it; None at the start of a text.
        tokens: Token ids as little-endian 32-bit integers.
    """

    chain: ChainKey
    content: ContentKey
    parent: ChainKey | None = field(repr=False)
    tokens: bytes = field(repr=False)

    @property
    def num_tokens(self) -> int:
        """Length of the block."""
        return len(self.tokens) // TOKEN_BYTES


def pack_tokens(tokens: Iterable[int]) -> bytes:
    """Write token ids as little-endian 32-bit integers.

    Raises:
        OverflowError: An id is negative or above 2**32 - 1.
    """
    packed = array("I", tokens)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def chain_key(fingerprint: str, parent: ChainKey | None, packed: bytes) -> ChainKey:
    """Name a block by everything up to its end."""
    # Root and child get different personalisations, so no text can imitate a parent.
    before = b"" if parent is None else parent
    person = _CHAIN + (b"" if parent is None else b"+")
    return ChainKey(_digest(person, fingerprint, before, packed))


def content_key(fingerprint: str, packed: bytes) -> ContentKey:
    """Name a block by its tokens alone."""
    return ContentKey(_digest(_CONTENT, fingerprint, b"", packed))


def block_ref(
    fingerprint: str, parent: ChainKey | None, tokens: Iterable[int]
) -> BlockRef:
    """Make the reference of one block."""
    packed = pack_tokens(tokens)
    chain = chain_key(fingerprint, parent, packed)
    return BlockRef(chain, content_key(fingerprint, packed), parent, packed)


def chain_of(fingerprint: str, blocks: Iterable[Sequence[int]]) -> list[BlockRef]:
    """Make the references of consecutive blocks, each the parent of the next."""
    refs: list[BlockRef] = []
    parent: ChainKey | None = None
    for tokens in blocks:
        refs.append(block_ref(fingerprint, parent, tokens))
        parent = refs[-1].chain
    return refs


def _digest(person: bytes, fingerprint: str, before: bytes, packed: bytes) -> bytes:
    name = fingerprint.encode()
    hasher = blake2b(digest_size=KEY_BYTES, person=person)
    # The length keeps fingerprint and data apart.
    hasher.update(len(name).to_bytes(4, "little") + name + before + packed)
    return hasher.digest()
