r"""Distinct ids and offsets as distinct types.

Every offset inside the engine counts bytes of UTF-8 in a text whose line ends are
`\n`; only `codekv.text.position` converts to what an editor speaks.
"""

from typing import NewType

TokenId = NewType("TokenId", int)
"""An entry of a tokenizer's vocabulary; never a position in a sequence."""

ByteOffset = NewType("ByteOffset", int)
"""Bytes from the start of a snapshot's data; never a column or a character count."""

Slot = NewType("Slot", int)
"""An index into working KV tensors; equals the position unless context is sampled."""

ChainKey = NewType("ChainKey", bytes)
"""Names a block and everything before it: equal keys mean exact reuse."""

ContentKey = NewType("ContentKey", bytes)
"""Names a block's tokens alone: equal keys mean the block may be moved here."""

BlockId = NewType("BlockId", int)
"""Names a stored block within one pool; never a position or a slot."""
