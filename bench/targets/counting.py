"""What a baseline computes for every request, counted without a model.

A baseline takes seconds for an answer, so only some of its requests are timed. How many
tokens it would compute follows from its prompts alone: a request reuses what the one
before it left behind. The answer's own tokens are taken as dropped, so a count is never
too low, and too high by at most the tokens that were generated and then typed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.targets.baselines import num_reused
from bench.targets.target import TargetDocuments
from bench.traces.trace import Ask, Open, Restart, TypedEdit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bench.targets.layouts import PromptLayout
    from bench.traces.trace import Episode, Trace


@dataclass(frozen=True, slots=True)
class Counted:
    """One question's prompt tokens, and how many of them are computed."""

    label: str
    context: int
    computed: int
    restored: int = 0
    moved: int = 0

    @property
    def exact(self) -> int:
        """Tokens that the request before left behind."""
        return self.context - self.computed


class Counter:
    """Counts for one layout, request after request.

    Attributes:
        reuse: Whether a request finds what the one before it left behind.
    """

    def __init__(self, layout: PromptLayout, *, reuse: bool) -> None:
        self._layout = layout
        self.reuse = reuse
        self._held: tuple[int, ...] = ()
        self._documents = TargetDocuments()

    def count(self, trace: Trace) -> list[Counted]:
        """Count every question of a trace."""
        return [row for episode in trace.episodes for row in self._episode(episode)]

    def _episode(self, episode: Episode) -> Iterable[Counted]:
        for step in episode.steps:
            match step:
                case Open():
                    self._documents.open(step)
                case TypedEdit():
                    self._documents.edit(step)
                case Restart():
                    self._documents.clear()
                    self._held = ()
                case Ask(uri, cursor, label):
                    tokens = self._layout(self._documents[uri], cursor).tokens
                    reused = num_reused(self._held, tokens) if self.reuse else 0
                    self._held = tokens
                    yield Counted(label, len(tokens), len(tokens) - reused)


def count_all(
    built: Iterable[Trace], counters: Mapping[str, Counter]
) -> dict[str, dict[str, list[Counted]]]:
    """Count by target and trace."""
    traces = tuple(built)
    return {
        name: {trace.name: counter.count(trace) for trace in traces}
        for name, counter in counters.items()
    }
