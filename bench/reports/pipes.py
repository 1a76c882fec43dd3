"""Tables as Markdown writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def pipe_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], num_words: int = 1
) -> str:
    """A table whose first `num_words` columns are words and the others numbers."""
    rule = ["---"] * num_words + ["---:"] * (len(head) - num_words)
    lines = [head, rule, *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"
