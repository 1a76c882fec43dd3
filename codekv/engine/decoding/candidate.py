"""A candidate: the text that one decoding run gave, complete and unchangeable.

`GrowingCandidate` collects its tokens while it is being decoded; it belongs to the
decoder alone. Everybody else gets a `Candidate`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

Stop = Callable[[bytes], bool]
"""Is told all bytes behind the forced prefix; True ends the text."""

Progress = Callable[[Sequence[int]], None]
"""Is told all tokens so far before each pause of a decoding run."""


class FinishReason(StrEnum):
    """Why a text ended."""

    STOP_TOKEN = "stop-token"  # noqa: S105 - no password
    STOP = "stop"
    LENGTH = "length"
    DEAD_END = "dead-end"


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """How one text is decoded.

    Attributes:
        forced_prefix: Bytes that the text must begin with (the half-typed word).
        max_tokens: Upper limit of generated tokens.
        stop_ids: Tokens that end the text.
        previous: Tokens of an earlier answer to draft from, the first one being a
            guess of the first token here.
        draft: Whether to draft at all.
    """

    forced_prefix: bytes = b""
    max_tokens: int = 48
    stop_ids: frozenset[int] = frozenset()
    previous: tuple[int, ...] = ()
    draft: bool = True


@dataclass(frozen=True, slots=True)
class Candidate:
    """A decoded text.

    Attributes:
        tokens: The generated tokens; one that ended the text is not among them.
        data: All bytes, the forced prefix included.
        logprobs: The log probability of each token.
        finish_reason: Why it ended.
        num_steps: Forward passes that it took.
    """

    tokens: tuple[int, ...] = ()
    data: bytes = b""
    logprobs: tuple[float, ...] = ()
    finish_reason: FinishReason = FinishReason.LENGTH
    num_steps: int = 0

    @property
    def total(self) -> float:
        """Log probability of the text."""
        return sum(self.logprobs)

    @property
    def score(self) -> float:
        """Mean log probability per token; 0 for no tokens."""
        return self.total / len(self.logprobs) if self.logprobs else 0.0


NO_TEXT = Candidate()


@dataclass(eq=False, slots=True)
class GrowingCandidate:
    """A text that is still being decoded; see `Candidate` for its fields."""

    tokens: list[int] = field(default_factory=list)
    data: bytes = b""
    logprobs: list[float] = field(default_factory=list)
    finish_reason: FinishReason = FinishReason.LENGTH
    num_steps: int = 0

    @classmethod
    def after(cls, begun: Candidate) -> GrowingCandidate:
        """Go on with a text that was decoded up to here."""
        return cls(
            [*begun.tokens],
            begun.data,
            [*begun.logprobs],
            begun.finish_reason,
            begun.num_steps,
        )

    @property
    def total(self) -> float:
        """Log probability of the text so far."""
        return sum(self.logprobs)

    def take(
        self,
        token: int,
        piece: bytes,
        logprob: float,
        options: DecodeOptions,
        stop: Stop | None,
    ) -> bool:
        """Add a token, unless it ends the text; whether the text goes on behind it.

        Args:
            token: The next one.
            piece: Its bytes.
            logprob: Its log probability.
            options: What ends the text, and its greatest length.
            stop: Asked once there is something behind the forced prefix; None asks
                nobody.
        """
        if token in options.stop_ids or not piece:
            self.finish_reason = FinishReason.STOP_TOKEN
            return False
        self.tokens.append(token)
        self.logprobs.append(logprob)
        self.data += piece
        behind = self.data[len(options.forced_prefix) :]
        if behind and stop is not None and stop(behind):
            self.finish_reason = FinishReason.STOP
            return False
        return len(self.tokens) < options.max_tokens

    def candidate(self) -> Candidate:
        """The text as it is now."""
        return Candidate(
            tuple(self.tokens),
            self.data,
            tuple(self.logprobs),
            self.finish_reason,
            self.num_steps,
        )
