"""How long a costly question may wait for the next keystroke.

A person who types faster than the model answers makes every answer but the last one
useless. So work that would take longer than the usual time between two keystrokes
waits for a short silence; what fits between two keystrokes does not wait at all, and
the service starts cheap work at once in any case. Only a burst of changes that no
person types keeps every question waiting, and the first few keystrokes of all. The
time that the editor has waited itself counts. Pure: the clock is the caller's, in
seconds.
"""

from __future__ import annotations

from collections import deque
from statistics import median

MAX_WAIT = 0.075
"""A wait that a person who stops typing notices little beside a costly answer."""

PAUSE = 1.0
"""From here on a gap between two keystrokes is a pause and tells nothing of rhythm."""

BURST_S = 0.03
"""Nobody types so fast: a key is held down, or a program types. An answer takes at
least one decoding step, which is longer."""

FEW_INTERVALS = 3
"""The fewest that have a middle one, which a late change alone does not move."""

BURST_WAIT = 0.05
"""Such changes come to an end before anything is asked."""

_RHYTHM_LENGTH = 20
"""Keystrokes that the rhythm is learned from: about a line of code."""

_LATENCY_WEIGHT = 0.3
"""Weight of the newest answer in the moving average of their cost."""


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

    @property
    def is_strict(self) -> bool:
        """Whether cheap questions wait as well.

        They do where changes come faster than any answer could be made, and until it is
        known how fast they come.
        """
        recent = list(self._intervals)[-FEW_INTERVALS:]
        return len(recent) < FEW_INTERVALS or median(recent) < BURST_S

    def since_change(self, now: float) -> float | None:
        """Tell how long ago the last change was; None if there was none."""
        return None if self._last_change is None else now - self._last_change

    def answered(self, seconds: float) -> None:
        """Note how long the model worked on an answer."""
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
        if self.is_strict:
            return BURST_WAIT
        if self._latency is None:
            return 0.0
        rhythm = median(self._intervals)
        return 0.0 if self._latency <= rhythm else min(rhythm / 2, MAX_WAIT)


def _since(then: float | None, now: float) -> float:
    """Tell the time since something; for ever if it has not happened."""
    return float("inf") if then is None else now - then
