"""A service over the tiny model whose block store is the one its settings ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from codekv.completion import load
from codekv.completion.api import Completion, Request, Trigger
from codekv.completion.service import Service
from codekv.config import Config, apply
from codekv.testing.tiny import load_tiny_as_configured
from codekv.text.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

TEXT = "import os\n\n\n" + "".join(
    f"def part_{i}(one, two):\n    # comment {i}\n    return one + two * {i}\n\n\n"
    for i in range(30)
)


def configured(values: dict[str, Any]) -> Config:
    """The options of a test, on top of some that suit the tiny model."""
    base = {
        "kvcache": {"max_length": 700, "disk": False},
        "completion": {"max_tokens": 8, "latency_budget_ms": 60000},
    }
    for section, options in values.items():
        base.setdefault(section, {}).update(options)
    config, problems = apply(Config(), base, "test")
    assert not problems
    return config


def request(text: str = TEXT, cursor: int | None = None, name: str = "a.py") -> Request:
    """Ask behind a text, or somewhere in it."""
    snapshot = Snapshot.from_text(f"file:///w/{name}", len(text), "python", text)
    at = len(text) if cursor is None else cursor
    return Request(snapshot, at, Trigger.INVOKED)


class Used:
    """A service, and what may be asked of it in a test."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def complete(self, *args: Any, **more: Any) -> Completion:
        """Answer a request made of the arguments; see `request`."""
        made = request(*args, **more)
        self.service.document_changed(made.snapshot)
        return await self.service.complete(made)

    async def rest(self) -> None:
        """Wait until idle work is done."""
        await self.service.idle()

    async def stats(self) -> Any:
        """The store's statistics."""
        return await self.service.inspect(lambda engine: engine.store.stats())


@pytest.fixture
def serve(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[Callable[..., Any]]:
    """Make services with options by section; they are closed at the end."""
    monkeypatch.setenv("CODEKV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(load, "load_pipeline", load_tiny_as_configured)

    async def make(**values: dict[str, Any]) -> Used:
        service = Service(configured(values))
        await service.ready()
        return Used(service)

    return make
