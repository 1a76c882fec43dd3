"""What the store tells of itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class LoadTimes:
    """How long loading a block took; the goal is below 2 ms."""

    num_loads: int = 0
    total_ms: float = 0.0
    max_ms: float = 0.0

    def note(self, seconds: float) -> None:
        """Add one load."""
        self.num_loads += 1
        self.total_ms += seconds * 1e3
        self.max_ms = max(self.max_ms, seconds * 1e3)

    @property
    def mean_ms(self) -> float:
        """Mean time of a load, 0 before the first."""
        return self.total_ms / self.num_loads if self.num_loads else 0.0


@dataclass(frozen=True, slots=True)
class StoreStats:
    """One look at a store.

    Attributes:
        ram_held_bytes: Of `ram_bytes`, what some document or request holds.
        live_bytes: Working tensors of live sequences, which share the budget.
        live_shared_bytes: How much more these would be if they shared nothing.
        waiting_blocks: Blocks to be written at the next flush.
        counters: See `codekv.cache.events.Event`.
    """

    ram_blocks: int
    ram_tokens: int
    ram_bytes: int
    ram_held_bytes: int
    live_bytes: int
    live_shared_bytes: int
    ram_budget_bytes: int
    disk_blocks: int
    disk_tokens: int
    disk_bytes: int
    disk_budget_bytes: int
    waiting_blocks: int
    load_ms_mean: float
    load_ms_max: float
    counters: dict[str, int]
