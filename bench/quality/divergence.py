"""How far reused answers are from fresh ones, measured in a pass of its own.

A comparison takes seconds and lets idle work run, so it must not happen while costs are
measured: episodes are cut at the request that is compared, and replayed on their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench.run import DIVERGENCE, Entrant
from bench.targets.target import ServiceTarget
from bench.traces.sample import Divergence
from codekv.config import cache_dir, cache_dir_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.traces.sample import Sample
    from codekv.completion.service import Service

SETTLE_S = 30.0
"""Long enough to compute a whole prompt anew on two cores."""


class DivergenceTarget(ServiceTarget):
    """The service with a look behind its answers."""

    def __init__(self, make: Callable[[], Service]) -> None:
        super().__init__(make)
        self._make_service = make
        self._looked: Service | None = None

    async def start(self) -> None:
        """See `Target`; its blocks are kept apart from those of the measured pass."""
        with cache_dir_at(cache_dir() / DIVERGENCE):
            await super().start()

    def make(self) -> Service:
        """See `ServiceTarget`."""
        self._looked = self._make_service()
        return self._looked

    async def probe(self) -> Divergence | None:
        """Compare the last answer with a fresh run, and again after idle work."""
        from codekv.engine.divergence_probe import AnswerProbe

        assert self._looked is not None, "start() comes first"
        probe = AnswerProbe()
        now = await self._looked.inspect(probe.look)
        await self.settle(SETTLE_S)
        later = await self._looked.inspect(probe.look)
        if now is None or later is None:
            return None
        return Divergence(
            inexact=now.num_inexact,
            kl=now.kl,
            noise=now.noise,
            same_top=now.same_top,
            same_text=now.same_text,
            noise_text=now.noise_text,
            idle_inexact=later.num_inexact,
            idle_kl=later.kl,
            idle_same_top=later.same_top,
            idle_same_text=later.same_text,
        )


def entrant(make: Callable[[], Service]) -> Entrant:
    """The pass as a part of a run."""
    return Entrant(DIVERGENCE, lambda: DivergenceTarget(make))


def summary(samples: Sequence[Sample]) -> dict[str, Any] | None:
    """The comparisons of one trace; None without any."""
    pairs = [
        (sample, sample.divergence)
        for sample in samples
        if sample.divergence is not None and sample.context
    ]
    # Idle work was quicker than the look: that answer's slots are gone.
    found = [
        seen
        for sample, seen in pairs
        if seen.inexact or not (sample.restored or sample.moved)
    ]
    if not found:
        return None

    def mean(name: str, digits: int = 4) -> float:
        total: float = sum(getattr(seen, name) for seen in found)
        return round(total / len(found), digits)

    return {
        "asks": len(found),
        "inexact": sum(seen.inexact > 0 for seen in found),
        "kl_mean": mean("kl", 6),
        "kl_max": round(max(seen.kl for seen in found), 6),
        "kl_noise": mean("noise", 6),
        "same_top": mean("same_top"),
        "same_text": mean("same_text"),
        "noise_text": mean("noise_text"),
        "after_idle_inexact": sum(seen.idle_inexact > 0 for seen in found),
        "after_idle_kl": mean("idle_kl", 6),
        "after_idle_same_top": mean("idle_same_top"),
        "after_idle_same_text": mean("idle_same_text"),
    }
