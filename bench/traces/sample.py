"""One measured request, and the journal that makes a run resumable.

The journal is a file of JSON lines: a head that names the run, then one line per
finished episode. An interrupted run leaves whole episodes behind, nothing else.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from codekv.completion.api import Completion

HEAD = "codekv bench journal 1"


@dataclass(frozen=True, slots=True)
class Divergence:
    """How far an answer's next-token distribution was from a fresh run's.

    Attributes:
        inexact: Prompt slots from the first one on that was not exact.
        kl: In nats.
        noise: The same between two fresh runs in other steps.
        same_top: Whether the likeliest token was the same.
        same_text: Whether a line's worth of greedy tokens was.
        noise_text: Whether it was between the two fresh runs.
        idle_inexact: As `inexact`, once idle work was done; so are the others.
    """

    inexact: int
    kl: float
    noise: float
    same_top: bool
    same_text: bool
    noise_text: bool
    idle_inexact: int
    idle_kl: float
    idle_same_top: bool
    idle_same_text: bool


@dataclass(frozen=True, slots=True)
class Sample:
    """One question and its answer's cost.

    Times are milliseconds; `latency` is the asker's wall clock, the others are the
    target's account. `at_s` counts from the beginning of the replay, `index` the
    episode's questions. An overtaken question got no answer before the next key came;
    `taken` counts the characters of the answer that were taken.
    """

    episode: str
    index: int
    label: str
    at_s: float
    latency: float
    ttft: float
    prefill: float
    decode: float
    context: int
    exact: int
    restored: int
    moved: int
    computed: int
    generated: int
    steps: int
    source: str
    reason: str
    reuse_stop: str
    text: str
    rss_mb: float
    divergence: Divergence | None = None
    overtaken: bool = False
    taken: int = 0


def make_sample(
    place: tuple[str, int, str],
    at_s: float,
    latency: float,
    answer: Completion,
    rss_mb: float,
) -> Sample:
    """Flatten a completion asked for at (episode, index, label)."""
    episode, index, label = place
    timing, tokens = answer.timing, answer.tokens
    return Sample(
        episode=episode,
        index=index,
        label=label,
        at_s=round(at_s, 3),
        latency=round(latency, 3),
        ttft=round(timing.ttft, 3),
        prefill=round(timing.prefill, 3),
        decode=round(timing.decode, 3),
        context=tokens.context,
        exact=tokens.exact,
        restored=tokens.restored,
        moved=tokens.moved,
        computed=tokens.computed,
        generated=tokens.generated,
        steps=tokens.steps,
        source=str(answer.source),
        reason=answer.reason,
        reuse_stop=answer.reuse_stop,
        text=answer.text,
        rss_mb=round(rss_mb, 1),
    )


Key = tuple[str, str, str]
"""Target's name, trace's name, episode's name."""


class Journal:
    """Finished episodes, in memory and in a file."""

    def __init__(self, path: Path | None, run: str) -> None:
        """Take up the file if it belongs to the same `run`, else begin it anew."""
        self._path = path
        self._done: dict[Key, list[Sample]] = {}
        if path is None:
            return
        head = json.dumps([HEAD, run])
        if path.is_file():
            lines = path.read_text("utf-8").splitlines()
            if lines and lines[0] == head:
                self._take(lines[1:])
        path.parent.mkdir(parents=True, exist_ok=True)
        # Rewritten, so that a line cut off by a kill does not spoil the next one.
        rows = [self._row(key, samples) for key, samples in self._done.items()]
        path.write_text("".join(f"{line}\n" for line in (head, *rows)), "utf-8")

    @property
    def num_done(self) -> int:
        """How many episodes are there."""
        return len(self._done)

    def get(self, key: Key) -> list[Sample] | None:
        """An episode's samples, or None if it was not finished."""
        return self._done.get(key)

    def add(self, key: Key, samples: list[Sample]) -> None:
        """Note a finished episode."""
        self._done[key] = samples
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(self._row(key, samples) + "\n")

    def drop(self) -> None:
        """Remove the file: the run is over."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _take(self, lines: list[str]) -> None:
        for line in lines:
            try:
                target, trace, episode, rows = json.loads(line)
                samples = [_sample(row) for row in rows]
            except (ValueError, TypeError):
                continue
            self._done[(target, trace, episode)] = samples

    @staticmethod
    def _row(key: Key, samples: list[Sample]) -> str:
        row: list[Any] = [*key, [asdict(sample) for sample in samples]]
        return json.dumps(row, ensure_ascii=False)


def _sample(row: dict[str, Any]) -> Sample:
    seen = row.pop("divergence", None)
    return Sample(**row, divergence=Divergence(**seen) if seen else None)
