"""Newest wins: one question per document is alive, older ones are answered at once.

Knows keys and coroutines only; what the work is and what an old question is told is
the caller's business. All of it belongs to one event loop.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


class RequestSlot:
    """One question's right to be answered; lost for good once something newer comes."""

    def __init__(self) -> None:
        self._lost = asyncio.Event()

    @property
    def is_current(self) -> bool:
        """Whether nothing newer has come."""
        return not self._lost.is_set()

    def lose(self) -> None:
        """Take the right away; work under it stops."""
        self._lost.set()

    async def run(self, work: Coroutine[None, None, T]) -> T | None:
        """Do `work` unless and until the turn is lost.

        Returns:
            What the work returns, or None as soon as the turn is lost; the work is
            then cancelled and nobody waits for it.

        Raises:
            asyncio.CancelledError: The caller was cancelled; so is the work.
        """
        if not self.is_current:
            work.close()
            return None
        task = asyncio.ensure_future(work)
        lost = asyncio.ensure_future(self._lost.wait())
        try:
            await asyncio.wait({task, lost}, return_when=asyncio.FIRST_COMPLETED)
            # Something newer may have come in the same loop turn as the result.
            return None if self._lost.is_set() else task.result()
        finally:
            lost.cancel()
            if not task.done():
                task.cancel()
                task.add_done_callback(_swallow)
            elif not task.cancelled():
                task.exception()


class Latest:
    """Hands out turns, one current turn per key."""

    def __init__(self) -> None:
        self._turns: dict[str, RequestSlot] = {}

    def take(self, key: str) -> RequestSlot:
        """Begin a turn; the older turn of the same key is lost."""
        self.drop(key)
        turn = RequestSlot()
        self._turns[key] = turn
        return turn

    def drop(self, key: str) -> None:
        """End the key's turn, for the text it was about is no longer there."""
        turn = self._turns.pop(key, None)
        if turn is not None:
            turn.lose()

    def release(self, key: str, turn: RequestSlot) -> None:
        """Forget a turn that is over, unless a newer one has its place."""
        if self._turns.get(key) is turn:
            del self._turns[key]

    def drop_all(self) -> None:
        """End every turn."""
        for key in list(self._turns):
            self.drop(key)


def _swallow(task: asyncio.Future[T]) -> None:
    """Fetch the outcome of abandoned work so that nobody reports it as unseen."""
    if not task.cancelled():
        task.exception()
