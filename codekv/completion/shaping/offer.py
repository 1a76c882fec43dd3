"""From decoded texts at one cursor to what may be offered there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.completion.shaping.choice import Choice, choose
from codekv.completion.shaping.trim import TrimContext, Trimmed, finish
from codekv.engine.decoding.candidate import FinishReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codekv.completion.api import Request
    from codekv.completion.prompt.tasks import Prepared
    from codekv.engine.decoding.candidate import Candidate


@dataclass(frozen=True, slots=True)
class CursorOffer:
    """One request with its prompt, and what its texts are held to."""

    request: Request
    prepared: Prepared
    max_lines: int

    def context(self, is_cut: bool = False) -> TrimContext:
        """Where the texts were decoded."""
        return TrimContext(
            self.prepared.document.tree,
            self.prepared.plan,
            max_lines=self.max_lines,
            is_cut=is_cut,
            invoked=self.request.trigger == "invoked",
        )

    def trimmed(self, candidate: Candidate) -> Trimmed:
        """What of a text may be offered."""
        text = candidate.data[len(self.prepared.prompt.need) :]
        is_cut = candidate.finish_reason is FinishReason.LENGTH
        return finish(text, self.context(is_cut))

    def best(self, texts: Sequence[Candidate]) -> int:
        """The text that is likely and leaves the file whole."""
        choices = [Choice(self.trimmed(text), text.total) for text in texts]
        return choose(self.context(), choices)
