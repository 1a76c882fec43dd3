"""The sizes of a model that the functions are written for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """Heads, their width, and the constant of the norms."""

    heads: int
    kv_heads: int
    head_dim: int
    eps: float

    @property
    def group(self) -> int:
        """Query heads per key head."""
        return self.heads // self.kv_heads

    @property
    def partial(self) -> int:
        """Floats that one head's sum over a range takes: sum, total, maximum, rest."""
        return self.head_dim + 8
