"""Work in steps: a generator that may be set aside, or dropped, at every `yield`."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar, cast

T = TypeVar("T")
Cooperative = Generator[None, None, T]


def finish(steps: Cooperative[T]) -> T:
    """Run work to its end at once."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return cast("T", stop.value)
