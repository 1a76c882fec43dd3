"""Several texts for one request: when to decode them, and which becomes the answer.

Generators on the engine's thread. What speaks for a text is in `choice.py`; here it is
weighed against the time that another text takes.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from codekv.completion.shaping.choice import starts

if TYPE_CHECKING:
    from codekv.completion.prompt.tasks import TaskMaker
    from codekv.completion.shaping.offer import CursorOffer
    from codekv.cooperative import Cooperative
    from codekv.engine.decoding.branches import Start
    from codekv.engine.engine import Engine, Outcome, Task


class Rivals:
    """Decodes what may become an answer with one engine."""

    def __init__(self, engine: Engine, maker: TaskMaker) -> None:
        self._engine = engine
        self._maker = maker

    def best(
        self, offer: CursorOffer, task: Task, submitted: float
    ) -> Cooperative[Outcome]:
        """The answer; if it breaks the file and there is time, the best of several.

        Where a line may be indented in several ways, they race.
        """
        settings = self._maker.config.completion
        racing = self._starts(offer)
        if racing:
            outcome = yield from self._engine.race(task, racing, offer.best)
        else:
            outcome = yield from self._engine.answer(task)
        spent_ms = (time.perf_counter() - submitted) * 1e3
        # More texts take about as long as this one did.
        is_late = 2 * spent_ms > settings.latency_budget_ms
        if is_late or not settings.syntax_choice:
            return outcome
        context, need = offer.context(), offer.prepared.prompt.need
        if not starts(context):
            return outcome
        more = self._maker.again(context, need, offer.trimmed(outcome.candidate))
        if more:
            others = yield from self._engine.candidates(task, 0, more)
            texts = [each.candidate for each in (outcome, *others)]
            outcome = replace(outcome, candidate=texts[offer.best(texts)])
        return outcome

    def several(self, offer: CursorOffer) -> Cooperative[list[Outcome]]:
        """Different answers, at most as many as were asked for, the best first."""
        racing = self._starts(offer)
        outcomes = yield from self._engine.candidates(
            offer.prepared.task, offer.request.max_items, racing
        )
        if racing and outcomes:
            best = offer.best([outcome.candidate for outcome in outcomes])
            outcomes.insert(0, outcomes.pop(best))
        return outcomes

    def _starts(self, offer: CursorOffer) -> tuple[Start, ...]:
        """The indentations to choose among, where there is a choice."""
        if not self._maker.config.completion.syntax_choice:
            return ()
        return self._maker.starts(offer.context(), offer.prepared.prompt.need)
