"""How long to wait before a question is worth the work.

A person who types faster than the model answers makes every answer but the last one
useless, so a question waits for a short silence. Answers that come between two
keystrokes anyway wait the least, and the time the editor has waited itself counts.
Pure: the clock is the caller's, in seconds.
"""

from __future__ import annotations

from collections import deque
from statistics import median

FAST_WAIT = 0.02
MIN_WAIT = 0.05
MAX_WAIT = 0.075
PAUSE = 1.0
_RHYTHM_LENGTH = 20
_LATENCY_WEIGHT = 0.3


class Debounce:
    """Learns the typing rhythm and the latency of answers.

    Attributes:
        client_wait: Seconds that this editor is known to wait before it asks.
    """

    def __init__(self, client_wait: float = 0.0) -> None:
        self.client_wait = client_wait
        self._intervals: deque[float] = deque(maxlen=_RHYTHM_LENGTH)
        self._last_change: float | None = None
        self._last_question: float | None = None
        self._latency: float | None = None

    def changed(self, now: float) -> None:
        """Note a change of a document; pauses are no rhythm."""
        if self._last_change is not None:
            interval = now - self._last_change
            if 0.0 < interval < PAUSE:
                self._intervals.append(interval)
        self._last_change = now

    def since_change(self, now: float) -> float | None:
        """Tell how long ago the last change was; None if there was none."""
        return None if self._last_change is None else now - self._last_change

    def answered(self, seconds: float) -> None:
        """Note how long the model took for an answer."""
        if self._latency is None:
            self._latency = seconds
        else:
            self._latency += _LATENCY_WEIGHT * (seconds - self._latency)

    def wait(self, now: float, fixed: float | None = None) -> float:
        """Tell how long a question that arrives now should still wait.

        Args:
            now: The time of its arrival; noted for the next question.
            fixed: The user's own waiting time instead of a learned one.
        """
        wanted = self._learned() if fixed is None else fixed
        since_question = _since(self._last_question, now)
        waited = min(since_question, _since(self._last_change, now))
        self._last_question = now
        # A client that asks again sooner than it is said to wait does not wait.
        if since_question >= self.client_wait:
            waited = max(waited, self.client_wait)
        return max(0.0, wanted - waited)

    def _learned(self) -> float:
        if not self._intervals or self._latency is None:
            return MIN_WAIT
        rhythm = median(self._intervals)
        if self._latency <= rhythm / 2:
            return FAST_WAIT
        return min(max(rhythm / 2, MIN_WAIT), MAX_WAIT)


def _since(then: float | None, now: float) -> float:
    """Tell the time since something; for ever if it has not happened."""
    return float("inf") if then is None else now - then
