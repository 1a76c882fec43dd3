"""Whether this machine runs on its battery; asked now and then, never waited for."""

from __future__ import annotations

import time

import psutil

FRESH_S = 30.0
"""How long an answer holds: the system is asked by files or calls that take time."""

_known: tuple[float, bool] = (-FRESH_S, False)


def on_battery() -> bool:
    """Tell whether no charger is connected; False where that cannot be known."""
    global _known  # noqa: PLW0603 - one machine has one battery
    asked, answer = _known
    if time.monotonic() - asked >= FRESH_S:
        answer = _ask()
        _known = time.monotonic(), answer
    return answer


def _ask() -> bool:
    try:
        battery = psutil.sensors_battery()
    except (AttributeError, OSError, RuntimeError, NotImplementedError):
        # Not every system has the call, and some containers hide what it reads.
        return False
    return battery is not None and battery.power_plugged is False
