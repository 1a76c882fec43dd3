"""Greedy decoding on a live sequence: healed at the start, drafted where it pays.

Token healing (guidance; also a generation flag of transformers): the last half-typed
word is not part of the prompt, and decoding must first reproduce its bytes.
Drafting changes speed only: a drafted token counts if it is what greedy decoding
would have chosen (speculative decoding with exact match).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import torch

from codekv.engine.reuse.extend import NOTHING_AHEAD, ComputedGuess

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from codekv.cooperative import Cooperative
    from codekv.engine.decoding.drafts import DraftPolicy, NgramIndex
    from codekv.engine.live_sequence import LiveSequence
    from codekv.model.runtime.interface import Runtime

MAX_NGRAM_DRAFT = 7
MAX_PREVIOUS_DRAFT = 15

Stop = Callable[[bytes], bool]
"""Told all bytes so far; True ends the text."""


class Vocab(Protocol):
    """What decoding asks of a vocabulary."""

    def allowed(self, need: bytes) -> Any:
        """Ids whose bytes start with `need` or are a proper prefix of it.

        Anything `torch.tensor` takes.
        """

    def starting_with(self, need: bytes) -> Any:
        """Ids whose bytes start with `need`."""


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """How one text is decoded.

    Attributes:
        need: Bytes that the text must begin with (the half-typed word).
        max_tokens: Upper limit of generated tokens.
        stop_ids: Tokens that end the text.
        previous: Tokens of an earlier answer to draft from, the first one being a
            guess of the first token here.
        draft: Whether to draft at all.
    """

    need: bytes = b""
    max_tokens: int = 48
    stop_ids: frozenset[int] = frozenset()
    previous: tuple[int, ...] = ()
    draft: bool = True


@dataclass(slots=True)
class Decoded:
    """A decoded text.

    Attributes:
        data: All bytes, `need` included.
        ended: What ended it: `stop-token`, `stop`, `length` or `dead-end`.
        num_steps: Forward passes.
    """

    tokens: list[int] = field(default_factory=list)
    data: bytes = b""
    logprobs: list[float] = field(default_factory=list)
    ended: str = "length"
    num_steps: int = 0

    @property
    def total(self) -> float:
        """Log probability of the text."""
        return sum(self.logprobs)

    @property
    def score(self) -> float:
        """Mean log probability per token; 0 for no tokens."""
        return self.total / len(self.logprobs) if self.logprobs else 0.0

    def become(self, other: Decoded) -> None:
        """Take over another text."""
        self.tokens, self.logprobs = [*other.tokens], [*other.logprobs]
        self.data, self.ended = other.data, other.ended
        self.num_steps = other.num_steps


class DecodeTask(Protocol):
    """What decoding asks of a task."""

    @property
    def options(self) -> DecodeOptions:
        """How to decode."""

    @property
    def stop(self) -> Stop:
        """When to stop."""


class GreedyDecoder:
    """Decodes texts with one runtime; holds what is learnt about drafting."""

    def __init__(
        self,
        runtime: Runtime,
        vocab: Vocab,
        token_bytes: Callable[[int], bytes],
        policy: DraftPolicy,
    ) -> None:
        self._runtime = runtime
        self._vocab = vocab
        self._token_bytes = token_bytes
        self._policy = policy

    def decode(
        self,
        seq: LiveSequence,
        row: Tensor,
        index: NgramIndex,
        goal: DecodeTask,
        out: Decoded,
        ahead: ComputedGuess = NOTHING_AHEAD,
    ) -> Cooperative[None]:
        """Continue `seq`, whose next-token logits are `row` [V], into `out`.

        `ahead` are tokens that were computed behind the prompt as a guess.

        What `out` holds already must stand in `seq` and `index`. Appends the generated
        tokens, but not the last one, to `seq` and `index`:
        their keys and values stay for the next request. Yields after each step; if
        the work is dropped there, `out` holds what was decoded so far.
        """
        options, stop = goal.options, goal.stop
        previous = list(options.previous)
        need = options.need[len(out.data) :]
        while True:
            token, logprob = self._pick(row, need)
            if token is None:
                out.ended = "dead-end"
                return
            if not self._take(out, token, logprob, options, stop):
                return
            need = need[len(self._token_bytes(token)) :]
            previous = previous[1:] if previous[:1] == [token] else []
            index.extend([token])
            if ahead.rows is not None and ahead.tokens[0] == token:
                source, draft, logits = "previous", list(ahead.tokens[1:]), ahead.rows
                # Behind half a healed word the greedy choice is not free yet.
                draft = [] if need else draft[: options.max_tokens - len(out.tokens)]
            else:
                source, draft = self._draft(index, previous, need, options, out)
                logits = self._step(seq, [token, *draft])
                out.num_steps += 1
                yield
            ahead = NOTHING_AHEAD
            accepted, ended = self._accept(out, logits, draft, options, stop)
            self._policy.learn(source, len(draft), accepted)
            seq.append([token, *draft[:accepted]])
            index.extend(draft[:accepted])
            if ended:
                return
            previous = previous[accepted:] if accepted == len(draft) else []
            row = logits[accepted]

    def _step(self, seq: LiveSequence, tokens: Sequence[int]) -> Tensor:
        seq.reserve(len(seq) + len(tokens))
        logits = self._runtime.forward(seq.kv, tokens, len(seq), logits="all")
        assert logits is not None
        return logits

    def _accept(
        self,
        out: Decoded,
        logits: Tensor,
        draft: Sequence[int],
        options: DecodeOptions,
        stop: Stop,
    ) -> tuple[int, bool]:
        """Take the drafted tokens that greedy decoding agrees with."""
        if not draft:
            return 0, False
        choices = logits.argmax(dim=-1).tolist()
        for i, token in enumerate(draft):
            if choices[i] != token:
                return i, False
            if not self._take(out, token, _logprob(logits[i], token), options, stop):
                return i, True
        return len(draft), False

    def _take(
        self,
        out: Decoded,
        token: int,
        logprob: float,
        options: DecodeOptions,
        stop: Stop,
    ) -> bool:
        """Add a token to the text; False if the text ends with or before it."""
        piece = self._token_bytes(token)
        if token in options.stop_ids or not piece:
            out.ended = "stop-token"
            return False
        out.tokens.append(token)
        out.logprobs.append(logprob)
        out.data += piece
        if len(out.data) > len(options.need) and stop(out.data[len(options.need) :]):
            out.ended = "stop"
            return False
        return len(out.tokens) < options.max_tokens

    def _pick(self, row: Tensor, need: bytes) -> tuple[int | None, float]:
        if not need:
            token = int(row.argmax())
            return token, _logprob(row, token)
        allowed = self._vocab.allowed(need)
        if len(allowed) == 0:
            return None, 0.0
        ids = torch.tensor(allowed, dtype=torch.long, device=row.device)
        token = int(ids[row[ids].argmax()])
        return token, _logprob(row, token)

    def _draft(
        self,
        index: NgramIndex,
        previous: Sequence[int],
        need: bytes,
        options: DecodeOptions,
        out: Decoded,
    ) -> tuple[str, list[int]]:
        room = options.max_tokens - len(out.tokens)
        if not options.draft or need or room <= 1:
            return "ngram", []
        if previous:
            limit = min(MAX_PREVIOUS_DRAFT, room - 1)
            length = self._policy.length("previous", limit)
            return "previous", list(previous[:length])
        length = self._policy.length("ngram", min(MAX_NGRAM_DRAFT, room - 1))
        return "ngram", index.draft(length) if length else []


def _logprob(row: Tensor, token: int) -> float:
    return float(row[token] - row.logsumexp(dim=-1))
