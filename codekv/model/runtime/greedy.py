"""What a model says next if nobody stops it: for comparisons of two ways to compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from codekv.model.runtime.interface import Runtime
    from codekv.storage.tensors import KVTensors


def go_on(
    runtime: Runtime, kv: KVTensors, slot: int, row_V: Tensor, count: int
) -> list[int]:
    """Decode `count` tokens greedily.

    Args:
        runtime: Computes them.
        kv: Holds the text; slots from `slot` on are overwritten.
        slot: Where the continuation begins.
        row_V: Logits after the text.
        count: At least one.
    """
    text = [int(row_V.argmax())]
    while len(text) < count:
        rows_TV = runtime.forward(kv, text[-1:], slot + len(text) - 1, "last")
        assert rows_TV is not None, "the last logits were asked for"
        text.append(int(rows_TV[-1].argmax()))
    return text
