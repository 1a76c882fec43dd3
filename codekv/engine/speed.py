"""How long a prefill takes on this machine, learned while it works.

A step costs about the same for one token as for ten, because it reads all weights; on
top comes a price per token. Told apart, short prefills do not make long ones look dear.
Prices are processor time of the engine's thread; how much longer the clock says it took
is learned on its own and counts up to a limit, so that another program's work makes
answers somewhat late instead of poor.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.engine.reuse.extend import CHUNK, FEW, longest

if TYPE_CHECKING:
    from codekv.cooperative import Cooperative
    from codekv.model.runtime.interface import Runtime

RATE = 0.3
"""Weight of the newest prefill in the moving averages."""

TELLS = 32
"""Tokens from which on a prefill tells about the price per token."""

LEAST_MS = 0.001
"""Prices stay above nothing, whatever is measured."""

MOST_LAG = 1.5
"""How far other programs may shrink what is computed before an answer: on two cores of
which one is taken, the clock says up to twice the processor time. Beyond this limit a
late answer is preferred to a poor one."""

LONGEST = longest()


@dataclass(slots=True)
class Speed:
    """Moving averages of what a step and a token in it cost.

    Attributes:
        step_ms: Milliseconds of processor time.
        ms_per_token: The same.
        lag: Milliseconds of the clock per millisecond of processor time.
    """

    step_ms: float = 40.0
    ms_per_token: float = 1.5
    lag: float = 1.0

    def note_prefill(
        self, num_tokens: int, ms: float, cpu_ms: float | None = None
    ) -> None:
        """Learn from a prefill in chunks of `CHUNK`.

        Args:
            num_tokens: Its size.
            ms: By the clock.
            cpu_ms: Processor time of the thread, where that was measured.
        """
        if num_tokens > 0 and cpu_ms is not None and cpu_ms > 0:
            self.lag += RATE * (max(ms / cpu_ms, 1.0) - self.lag)
            ms = min(ms, cpu_ms)
        if 0 < num_tokens <= FEW:
            step = ms - num_tokens * self.ms_per_token
            self.step_ms += RATE * (max(step, LEAST_MS) - self.step_ms)
        elif num_tokens >= TELLS:
            token = (ms - _num_steps(num_tokens) * self.step_ms) / num_tokens
            self.ms_per_token += RATE * (max(token, LEAST_MS) - self.ms_per_token)

    def ms_for(self, num_tokens: int) -> float:
        """How long so many tokens take where nothing else runs."""
        return _num_steps(num_tokens) * self.step_ms + num_tokens * self.ms_per_token

    def tokens_in(self, ms: float) -> int:
        """How many tokens can be computed in so many milliseconds of the clock."""
        ms /= min(self.lag, MOST_LAG)
        full = max(int((ms - self.ms_for(LONGEST)) // self.ms_for(CHUNK)), 0)
        rest = ms - full * self.ms_for(CHUNK)
        one, two = (
            min((rest - steps * self.step_ms) / self.ms_per_token, most)
            for steps, most in ((1, LONGEST), (2, LONGEST + CHUNK))
        )
        return full * CHUNK + max(int(one), int(two), 0)


def measured(runtime: Runtime) -> Cooperative[Speed]:
    """Time a step and a chunk, so that the first answer is planned with true prices.

    The first of them also gets kernels and memory ready, which no user should wait for.
    """
    kv = runtime.new_kv(CHUNK + 1)
    tokens = [1] * CHUNK
    times = {}
    for size in (CHUNK, 1, CHUNK, 1):
        started = time.perf_counter()
        runtime.forward(kv, tokens[:size], 0, "last")
        times[size] = (time.perf_counter() - started) * 1e3
        yield
    token = (times[CHUNK] - times[1]) / (CHUNK - 1)
    return Speed(max(times[1] - token, LEAST_MS), max(token, LEAST_MS))


def _num_steps(num_tokens: int) -> int:
    return 0 if num_tokens <= 0 else 1 + -(-max(num_tokens - LONGEST, 0) // CHUNK)
