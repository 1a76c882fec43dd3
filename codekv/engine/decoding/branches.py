"""Several continuations at once, in one batch on a shared prefix.

A step of a few tokens costs about what a step of one does, so a handful of short
branches is nearly free. All branches share the sequence's slots and own tree slots
behind it (tree attention, as in speculative decoding: SpecInfer, Miao et al. 2023);
nothing is copied until one branch is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from codekv.engine.decoding.candidate import (
    Candidate,
    DecodeOptions,
    FinishReason,
    GrowingCandidate,
    Stop,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from codekv.cooperative import Cooperative
    from codekv.engine.live_sequence import LiveSequence
    from codekv.model.runtime.interface import Runtime


FREE_CHOICES = 64
"""A first token that is not among so many likeliest ones is no continuation."""


@dataclass(frozen=True, slots=True)
class Start:
    """How one continuation begins.

    Attributes:
        tokens: Taken as they are.
        lead: If given, the first token behind them begins with these bytes, and
            something other than white space follows.
        rank: Which of the tokens that may stand there is taken; 0 is the likeliest.
        allowance: How much further than others it may fall behind in a race.
    """

    tokens: tuple[int, ...] = ()
    lead: bytes | None = None
    rank: int = 0
    allowance: float = 0.0


@dataclass(frozen=True, slots=True)
class Race:
    """When branches that compete for one place give up.

    Attributes:
        margin: A branch so much less likely than the likeliest is dropped, in sums of
            log probabilities.
        max_tokens: What is still alive then has to be chosen among as it is.
    """

    margin: float = 3.0
    max_tokens: int = 24

    @classmethod
    def among(cls, starts: Sequence[Start]) -> Race:
        """A race for these; where second choices take part, they get time to show."""
        return cls(8.0, 16) if any(start.rank for start in starts) else cls()


@dataclass(frozen=True, slots=True)
class Leader:
    """When nobody waits any longer for others than one branch.

    Attributes:
        index: Of the branch that is waited for.
        share: How much longer others may take, in shares of its steps.
        least: The same in steps, at least.
    """

    index: int
    share: float = 0.5
    least: int = 2

    def most(self, steps: int) -> int:
        """Steps that others get if the first one takes so many."""
        return steps + max(int(self.share * steps), self.least)


@dataclass(eq=False, slots=True)
class Branch:
    """One continuation and its nodes in the tree.

    Attributes:
        start: How it began.
        forced: Tokens that it begins with, still to be taken.
        lead: See `Start`; None once the first free token is taken.
        text: What it has so far.
        path: Its nodes, root first.
        logits: After its last token; None when it has ended.
    """

    start: Start
    forced: list[int]
    lead: bytes | None
    text: GrowingCandidate = field(default_factory=GrowingCandidate)
    path: list[int] = field(default_factory=list)
    logits: Tensor | None = None

    @property
    def candidate(self) -> Candidate:
        """Its text as it is now."""
        return self.text.candidate()


class Brancher:
    """Decodes branches greedily, side by side."""

    def __init__(self, runtime: Runtime, token_bytes: Callable[[int], bytes]) -> None:
        self._runtime = runtime
        self._token_bytes = token_bytes

    def decode(
        self,
        seq: LiveSequence,
        logits: Tensor,
        starts: Sequence[Start],
        options: DecodeOptions,
        stop: Stop,
        rules: Race | Leader | None = None,
    ) -> Cooperative[list[Branch]]:
        """Continue `seq`, whose next-token logits are `logits`, once per start.

        In a race, ends as soon as one branch is left, which may then go on. Where one
        leads, those that take much longer are given up.

        Args:
            seq: Not changed; slots behind it are used as scratch space.
            logits: [V].
            starts: What each branch must begin with; an empty one is plain greedy.
            options: As for plain decoding; `forced_prefix` is the
                caller's business here.
            stop: Told each branch's bytes behind the forced prefix.
            rules: Without any, all branches are decoded to their ends.
        """
        branches = [
            Branch(each, list(each.tokens), each.lead, logits=logits) for each in starts
        ]
        race = rules if isinstance(rules, Race) else None
        leader = rules if isinstance(rules, Leader) else None
        tokens: list[int] = []
        parents: list[int] = []
        for _ in range(race.max_tokens if race else options.max_tokens):
            known = len(tokens)
            grown = [each for each in branches if self._grow(each, options, stop)]
            if race is not None:
                branches = _in_race(branches, race.margin)
                grown = [each for each in grown if each in branches]
            if leader is not None and _is_over(leader, branches, grown):
                branches = [each for each in branches if each not in grown]
                break
            if not grown:
                break
            for branch in grown:
                parents.append(branch.path[-1] if branch.path else -1)
                branch.path.append(len(tokens))
                tokens.append(branch.text.tokens[-1])
            seq.reserve(len(seq) + len(tokens))
            rows = self._runtime.forward_tree(seq.kv, tokens, parents, len(seq), known)
            for branch, row in zip(grown, rows, strict=True):
                branch.logits = row
                branch.text.num_steps += 1
            yield
            is_settled = len(branches) == 1 and branches[0].lead is None
            if race is not None and is_settled:
                break
        return branches

    def keep(self, seq: LiveSequence, branch: Branch) -> None:
        """Make a branch part of the sequence; the other branches are lost."""
        if not branch.path:
            return
        self._runtime.keep_path(seq.kv, len(seq), branch.path)
        seq.append(branch.text.tokens[: len(branch.path)])

    def _grow(self, branch: Branch, options: DecodeOptions, stop: Stop) -> bool:
        """Take the branch's next token; False if it has ended (before or with it)."""
        logits, text = branch.logits, branch.text
        if logits is None:
            return False
        branch.logits = None
        token = self._next(branch, logits)
        if token is None:
            text.finish_reason = FinishReason.DEAD_END
            return False
        logprob = float(logits[token] - logits.logsumexp(dim=-1))
        # Within what it has to begin with, no text ends.
        rule = None if branch.forced else stop
        return text.take(token, self._token_bytes(token), logprob, options, rule)

    def _next(self, branch: Branch, logits: Tensor) -> int | None:
        """The forced token, or else the likeliest one that may stand here."""
        if branch.forced:
            return branch.forced.pop(0)
        if branch.lead is None:
            return int(logits.argmax())
        lead, branch.lead = branch.lead, None
        left = branch.start.rank
        for token in most_likely(logits, None, FREE_CHOICES):
            piece = self._token_bytes(token)
            if piece.startswith(lead) and piece[len(lead) :][:1].strip():
                if not left:
                    return token
                left -= 1
        return None


def _is_over(
    leader: Leader, branches: Sequence[Branch], grown: Sequence[Branch]
) -> bool:
    """Whether the leader ended so long ago that nobody waits for those that grow."""
    first = branches[leader.index]
    most = leader.most(first.text.num_steps)
    return first not in grown and any(each.text.num_steps >= most for each in grown)


def _in_race(branches: Sequence[Branch], margin: float) -> list[Branch]:
    """Those that got anywhere and are not far behind."""
    alive = [
        each
        for each in branches
        if each.text.finish_reason is not FinishReason.DEAD_END
    ]
    best = max((each.text.total for each in alive), default=0.0)
    return [
        each
        for each in alive
        if each.text.total >= best - margin - each.start.allowance
    ]


def most_likely(logits: Tensor, allowed: object | None, count: int) -> list[int]:
    """The `count` likeliest first tokens, likeliest first, among the allowed ids."""
    if allowed is None:
        return [int(token) for token in logits.topk(min(count, logits.numel())).indices]
    ids = torch.tensor(allowed, dtype=torch.long, device=logits.device)
    order = logits[ids].topk(min(count, ids.numel())).indices
    return [int(token) for token in ids[order]]
