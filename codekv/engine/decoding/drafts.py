"""Drafts: guesses of the next tokens, to be verified by the model in one step.

Two sources, both exact after verification: the last occurrence of the most recent
tokens earlier in the prompt (prompt lookup, Saxena 2023; also n-gram speculation in
llama.cpp), and the completion given a moment ago at this place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Longer contexts than three tokens repeat too rarely to add a match.
MAX_ORDER = 3


class NgramIndex:
    """Where each run of one to three tokens was last followed by something.

    Grows with a sequence; cropping forgets lazily, because a position is checked
    against the tokens before it is used.
    """

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self._ends: dict[tuple[int, ...], int] = {}

    def sync(self, tokens: Sequence[int], common: int) -> None:
        """Make the index hold `tokens`, of which the first `common` are held."""
        del self.tokens[common:]
        self.extend(tokens[common:])

    def extend(self, tokens: Sequence[int]) -> None:
        """Append tokens; costs a few dictionary writes per token."""
        held, ends = self.tokens, self._ends
        for token in tokens:
            # What ends before `token` is now followed by it.
            size = len(held)
            for order in range(1, min(MAX_ORDER, size) + 1):
                ends[tuple(held[size - order :])] = size
            held.append(token)

    def draft(self, length: int) -> list[int]:
        """Up to `length` tokens that followed the longest matching recent run."""
        held = self.tokens
        for order in range(min(MAX_ORDER, len(held)), 0, -1):
            run = tuple(held[len(held) - order :])
            end = self._ends.get(run)
            if end is None or end >= len(held):
                continue
            if tuple(held[end - order : end]) == run:
                return held[end : end + length]
        return []


class DraftPolicy:
    """How many tokens to draft, from how often drafts came true.

    The expected gain of the k-th drafted token is the acceptance rate to the power
    k; drafting stops where a longer step costs more than it gains. Rates are
    exponential moving averages per source.
    """

    def __init__(self, step_cost: Sequence[float] = (1.0, 1.02, 1.05, 1.1)) -> None:
        """Take the relative cost of a step of 1, 2, 4, 8 (, 16) tokens."""
        self._cost = list(step_cost)
        self._rate = {"ngram": 0.6, "previous": 0.9}

    def length(self, source: str, limit: int) -> int:
        """Draft length with the best expected tokens per cost, at most `limit`."""
        rate = self._rate[source]
        best, best_value = 0, 1.0
        expected, chance = 1.0, 1.0
        for length in range(1, limit + 1):
            chance *= rate
            expected += chance
            value = expected / self.cost(length + 1)
            if value > best_value:
                best, best_value = length, value
        return best

    def cost(self, num_tokens: int) -> float:
        """Relative cost of a step, interpolated between powers of two."""
        power = (num_tokens - 1).bit_length()
        if power < len(self._cost):
            return self._cost[power]
        return self._cost[-1] * num_tokens / (1 << (len(self._cost) - 1))

    def learn(self, source: str, drafted: int, accepted: int) -> None:
        """Note the outcome of one verified draft."""
        if drafted:
            # A draft ends at its first miss, so tokens behind it say nothing.
            seen = min(drafted, accepted + 1)
            old = self._rate[source]
            self._rate[source] = old + 0.1 * (accepted / seen - old)
