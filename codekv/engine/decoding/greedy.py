"""Greedy decoding on a live sequence: healed at the start, drafted where it pays.

Token healing (guidance; also a generation flag of transformers): the last half-typed
word is not part of the prompt, and decoding must first reproduce its bytes.
Drafting changes speed only: a drafted token counts if it is what greedy decoding
would have chosen (speculative decoding with exact match).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import torch

from codekv.engine.decoding.candidate import (
    NO_TEXT,
    Candidate,
    DecodeOptions,
    FinishReason,
    GrowingCandidate,
    Progress,
    Stop,
)
from codekv.engine.reuse.extend import NOTHING_AHEAD, ComputedGuess

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from codekv.cooperative import Cooperative
    from codekv.engine.decoding.drafts import DraftPolicy, NgramIndex
    from codekv.engine.live_sequence import LiveSequence
    from codekv.model.runtime.interface import Runtime

MAX_NGRAM_DRAFT = 7
"""With the token before it, a step of eight: the largest that the default costs of
`DraftPolicy` were measured for."""

MAX_PREVIOUS_DRAFT = 15
"""With the token before it, a step of sixteen; an earlier answer is seldom longer."""


class Vocab(Protocol):
    """What decoding asks of a vocabulary."""

    def allowed(self, need: bytes) -> Any:
        """Ids whose bytes start with `need` or are a proper prefix of it.

        Anything `torch.tensor` takes.
        """

    def starting_with(self, need: bytes) -> Any:
        """Ids whose bytes start with `need`."""


class DecodeTask(Protocol):
    """What decoding asks of a task."""

    @property
    def options(self) -> DecodeOptions:
        """How to decode."""

    @property
    def stop(self) -> Stop:
        """When to stop."""

    @property
    def progress(self) -> Progress:
        """Who follows what is decoded."""


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
        logits: Tensor,
        index: NgramIndex,
        task: DecodeTask,
        begun: Candidate = NO_TEXT,
        ahead: ComputedGuess = NOTHING_AHEAD,
    ) -> Cooperative[Candidate]:
        """Continue a sequence until the text ends.

        Appends the generated tokens, but not the last one, to `seq` and `index`:
        their keys and values stay for the next request. Yields after each step.

        Args:
            seq: Holds the prompt and `begun`.
            logits: Of its next token, [V].
            index: Holds the same tokens.
            task: How to decode and when to stop; its `progress` is told what there is
                before each yield, where the work may be dropped.
            begun: The beginning of the text, where there is one already.
            ahead: Tokens that were computed behind the prompt as a guess.
        """
        options = task.options
        text = GrowingCandidate.after(begun)
        previous = list(options.previous)
        need = options.forced_prefix[len(text.data) :]
        while True:
            token = self._pick(logits, need)
            if token is None:
                text.finish_reason = FinishReason.DEAD_END
                break
            if not self._take(text, token, logits, task):
                break
            need = need[len(self._token_bytes(token)) :]
            previous = previous[1:] if previous[:1] == [token] else []
            index.extend([token])
            if ahead.rows is not None and ahead.tokens[0] == token:
                source, draft, rows = "previous", list(ahead.tokens[1:]), ahead.rows
                # Behind half a healed word the greedy choice is not free yet.
                draft = [] if need else draft[: options.max_tokens - len(text.tokens)]
            else:
                room = options.max_tokens - len(text.tokens)
                is_free = options.draft and not need
                source, draft = self._draft(index, previous, room if is_free else 0)
                rows = self._step(seq, [token, *draft])
                text.num_steps += 1
                task.progress(text.tokens)
                yield
            ahead = NOTHING_AHEAD
            accepted, is_over = self._accept(text, rows, draft, task)
            self._policy.learn(source, len(draft), accepted)
            seq.append([token, *draft[:accepted]])
            index.extend(draft[:accepted])
            if is_over:
                break
            previous = previous[accepted:] if accepted == len(draft) else []
            logits = rows[accepted]
        return text.candidate()

    def _step(self, seq: LiveSequence, tokens: Sequence[int]) -> Tensor:
        seq.reserve(len(seq) + len(tokens))
        logits = self._runtime.forward(seq.kv, tokens, len(seq), logits="all")
        assert logits is not None
        return logits

    def _accept(
        self,
        text: GrowingCandidate,
        rows: Tensor,
        draft: Sequence[int],
        task: DecodeTask,
    ) -> tuple[int, bool]:
        """Take the drafted tokens that greedy decoding agrees with.

        Args:
            text: Grows.
            rows: Logits [n, V], each for the token behind it.
            draft: Guessed tokens.
            task: What ends the text.

        Returns:
            How many were taken, and whether the text ended with or before the next.
        """
        if not draft:
            return 0, False
        choices = rows.argmax(dim=-1).tolist()
        for i, token in enumerate(draft):
            if choices[i] != token:
                return i, False
            if not self._take(text, token, rows[i], task):
                return i, True
        return len(draft), False

    def _take(
        self, text: GrowingCandidate, token: int, logits: Tensor, task: DecodeTask
    ) -> bool:
        """Add a token to the text; False if the text ends with or before it."""
        piece = self._token_bytes(token)
        logprob = _logprob(logits, token)
        return text.take(token, piece, logprob, task.options, task.stop)

    def _pick(self, logits: Tensor, need: bytes) -> int | None:
        """The likeliest token of those that fit the bytes still to be reproduced."""
        if not need:
            return int(logits.argmax())
        allowed = self._vocab.allowed(need)
        if len(allowed) == 0:
            return None
        ids = torch.tensor(allowed, dtype=torch.long, device=logits.device)
        return int(ids[logits[ids].argmax()])

    def _draft(
        self, index: NgramIndex, previous: Sequence[int], room: int
    ) -> tuple[str, list[int]]:
        """Guess the next tokens, fewer than `room`: (what the guess rests on, they)."""
        if room <= 1:
            return "ngram", []
        if previous:
            limit = min(MAX_PREVIOUS_DRAFT, room - 1)
            length = self._policy.length("previous", limit)
            return "previous", list(previous[:length])
        length = self._policy.length("ngram", min(MAX_NGRAM_DRAFT, room - 1))
        return "ngram", index.draft(length) if length else []


def _logprob(logits: Tensor, token: int) -> float:
    return float(logits[token] - logits.logsumexp(dim=-1))
