"""What may be offered of an answer that is still being decoded."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from codekv.completion.shaping.cut import sensible_cut
from codekv.engine.decoding.candidate import Candidate
from codekv.engine.engine import Outcome
from codekv.engine.reuse.prefill import Reuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from codekv.completion.api import Completion, Request
    from codekv.completion.prompt.tasks import PlannedAnswer, Prepared
    from codekv.completion.recent_drafts import Told


class PartialAnswer:
    """Looks at one decoding run; on the engine's thread."""

    def __init__(
        self,
        token_bytes: Callable[[int], bytes],
        finish: Callable[[Request, Prepared, Outcome], Completion],
        planned: PlannedAnswer,
        told: Told,
    ) -> None:
        """Follow a run.

        Args:
            token_bytes: The bytes of a token.
            finish: Makes a completion of an outcome.
            planned: What is being answered.
            told: What has been decoded.
        """
        self._token_bytes = token_bytes
        self._finish = finish
        self._planned = planned
        self._told = told
        self._reuse = Reuse()

    def filled(self, reuse: Reuse) -> None:
        """Note how the prompt's slots came to be."""
        self._reuse = reuse

    def __call__(self) -> Completion | None:
        """Make an offer of the part that makes sense; None if there is none."""
        data = self._sensible_data()
        if not data:
            return None
        outcome = Outcome(Candidate(self._told.tokens, data), self._reuse)
        planned = self._planned
        cut = self._finish(planned.request, planned.prepared, outcome)
        # How likely a text is shows only once it is whole.
        items = tuple(replace(item, score=None) for item in cut.items)
        return replace(cut, items=items, is_cut=True) if items else None

    def _sensible_data(self) -> bytes:
        """The forced prefix and what makes sense behind it; nothing if nothing does."""
        request, prepared = self._planned.request, self._planned.prepared
        data = b"".join(map(self._token_bytes, self._told.tokens))
        need = prepared.prompt.need
        if not data.startswith(need):
            return b""
        before = request.snapshot.data[: request.cursor_byte]
        head = before[before.rfind(b"\n") + 1 :]
        cut = sensible_cut(prepared.document.tree.grammar, head, data[len(need) :])
        return need + cut if cut else b""
