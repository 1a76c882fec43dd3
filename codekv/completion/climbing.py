"""The climb to the full prompt of a document, in the gaps between keystrokes.

An answer stands on the richest prompt at hand; the planner names the next richer one.
The climb makes it ready while somebody types, layer by layer, and goes on to the next
until the full prompt is at hand. Answers take each rung over by themselves.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from codekv.completion.api import Request
    from codekv.completion.prompt.planner import PromptChoice
    from codekv.completion.prompt.tasks import Prepared
    from codekv.cooperative import Cooperative
    from codekv.engine.engine import Engine


@dataclass(frozen=True, slots=True)
class ClimbGoal:
    """A question and the prompt to make ready for it; none where `wanted` is None."""

    request: Request
    anchor_byte: int
    wanted: Prepared | None

    def is_near(self, other: ClimbGoal) -> bool:
        """Whether prompts for both begin alike: one is typed on from the other."""
        mine, theirs = self.request, other.request
        head = mine.snapshot.data[: self.anchor_byte]
        return (
            self.anchor_byte == other.anchor_byte
            and theirs.snapshot.data.startswith(head)
            and _below(mine) == _below(theirs)
        )


class Climber:
    """Climbs for the newest question of each document; on the engine's thread.

    Attributes:
        on_goal: Is told of a document that has a prompt to climb to now.
    """

    def __init__(
        self, engine: Engine, choose: Callable[[Request], Cooperative[PromptChoice]]
    ) -> None:
        """Climb with an engine.

        Args:
            engine: Computes prompts.
            choose: Plans the prompt of a question as it would be answered now.
        """
        self._engine = engine
        self._choose = choose
        self._goals: dict[str, ClimbGoal] = {}
        self.on_goal: Callable[[str], None] = lambda _uri: None

    def note(self, request: Request, choice: PromptChoice) -> None:
        """Note what a question is answered with, and what would be richer."""
        uri = request.snapshot.uri
        anchor = choice.prepared.anchor_byte
        self._goals[uri] = ClimbGoal(request, anchor, choice.wanted)
        if choice.wanted is not None:
            self.on_goal(uri)

    def forget(self, uri: str) -> None:
        """Drop a closed document."""
        self._goals.pop(uri, None)

    def climb(self, uri: str) -> Cooperative[int]:
        """Idle: make richer prompts of a document ready, for its newest question.

        Goes on while the newest question's prompt begins as the last one's did.

        Returns:
            How many prompts were made ready.
        """
        climbed = 0
        while (goal := self._goals.pop(uri, None)) is not None:
            if goal.wanted is None:
                break
            with closing(self._engine.grow(goal.wanted.task)) as steps:
                while not self._is_elsewhere(uri, goal):
                    try:
                        next(steps)
                    except StopIteration:
                        climbed += 1
                        choice = yield from self._choose(goal.request)
                        next_goal = replace(goal, wanted=choice.wanted)
                        self._goals.setdefault(uri, next_goal)
                        break
                    yield
        return climbed

    def _is_elsewhere(self, uri: str, goal: ClimbGoal) -> bool:
        """Whether a newer question needs another prompt than the one in the making."""
        newer = self._goals.get(uri)
        if newer is None:
            return False
        return newer.wanted is None or not goal.is_near(newer)


def _below(request: Request) -> bytes:
    """The text below the cursor's line."""
    return request.snapshot.data[request.cursor_byte :].partition(b"\n")[2]
