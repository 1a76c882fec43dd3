"""One block's record, and who may change what in it.

The pool alone changes `num_refs`; the manager alone changes the rest. A record never
changes which block it names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codekv.units import BlockId, ChainKey, ContentKey


@dataclass(slots=True, eq=False)
class Block:
    """What is known of a stored block without its bytes.

    Attributes:
        tokens: Packed token ids, or None where only the bytes on disk can tell; then
            whoever reads them must compare.
        parent: Chain key of the block before; meaningless while `tokens` is None.
        cost_s: Seconds it took, or would take, to compute the block again.
        used_at: When it was last stored, matched or loaded.
        importance: Smoothed share of attention it received; 0 when never measured.
        is_volatile: Was computed ahead and in no prompt yet: nothing shows that it is
            of use beyond the present topic.
        num_refs: Owners that hold it; a held block is never evicted.
    """

    id: BlockId
    chain: ChainKey
    content: ContentKey
    parent: ChainKey | None
    tokens: bytes | None
    num_tokens: int
    num_bytes: int
    cost_s: float
    used_at: float
    importance: float = 0.0
    is_volatile: bool = False
    num_refs: int = 0
