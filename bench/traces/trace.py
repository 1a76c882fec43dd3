"""What a person does in an editor, as data: steps, episodes, traces.

Knows documents as bytes and nothing of models, services or editors. Offsets are bytes
of UTF-8 with line feeds, as in `codekv.text.snapshot`.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random


ARRIVE = "arrive"
"""Label of the first answer in a file, which is told apart from all others."""


@dataclass(frozen=True, slots=True)
class Open:
    """A document comes up in the editor, and is looked at."""

    uri: str
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class TypedEdit:
    """Bytes [start_byte, end_byte) of the document give way to `text`.

    `version` is the document's version after the edit.
    """

    uri: str
    version: int
    start_byte: int
    end_byte: int
    text: str


@dataclass(frozen=True, slots=True)
class Focus:
    """The user looks at another document that is already open."""

    uri: str


@dataclass(frozen=True, slots=True)
class Ask:
    """The editor asks for a completion; `label` tells the phase of the episode."""

    uri: str
    cursor_byte: int
    label: str


@dataclass(frozen=True, slots=True)
class Pause:
    """Time between two keystrokes; `max` does not wait for it.

    The human pace waits so long after an answer, the live pace after the last key.
    """

    seconds: float


@dataclass(frozen=True, slots=True)
class Take:
    """The next characters are on offer and are taken, or else are typed one by one.

    `version` is the document's after the last of them; `pauses` are seconds before
    each of them.
    """

    uri: str
    version: int
    start_byte: int
    text: str
    pauses: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """Other programs keep so many processor cores busy from now on."""

    cores: int


@dataclass(frozen=True, slots=True)
class Settle:
    """The user reads. Every pace waits until the service is idle or the time is up."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Restart:
    """The server's process ends and a new one starts; documents must be reopened."""


@dataclass(frozen=True, slots=True)
class Probe:
    """The answer just given is compared with a fresh run."""

    uri: str


Step = Open | TypedEdit | Focus | Ask | Pause | Take | Load | Settle | Restart | Probe


@dataclass(frozen=True, slots=True)
class Episode:
    """One visit to one place of one file, independent of other episodes.

    `repository` names the package of that file; digests do not depend on it.
    """

    name: str
    steps: tuple[Step, ...]
    repository: str = ""

    @property
    def num_asks(self) -> int:
        """How many completions are asked for."""
        return sum(isinstance(step, Ask) for step in self.steps)

    @property
    def num_counted(self) -> int:
        """How many of them count; the first answer in a file is told apart."""
        return sum(
            isinstance(step, Ask) and step.label != ARRIVE for step in self.steps
        )


@dataclass(frozen=True, slots=True)
class Trace:
    """Many episodes of one kind of editing."""

    name: str
    episodes: tuple[Episode, ...]

    @property
    def num_asks(self) -> int:
        """How many completions are asked for."""
        return sum(episode.num_asks for episode in self.episodes)

    @property
    def digest(self) -> str:
        """Names the trace's contents: equal digests replay identical requests."""
        rows = [
            [
                episode.name,
                [[type(step).__name__, asdict(step)] for step in episode.steps],
            ]
            for episode in self.episodes
        ]
        text = json.dumps([self.name, rows], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


_STRIDE = 0.618
"""Spreads the compared requests over the phases of an episode."""


def cut(trace: Trace, count: int) -> Trace:
    """Keep `count` beginnings of episodes, each up to a request that is compared."""
    episodes = trace.episodes
    found: list[Episode] = []
    for index in range(count if episodes else 0):
        place = index * len(episodes) // count if count <= len(episodes) else index
        episode = episodes[place % len(episodes)]
        asks = [
            number
            for number, step in enumerate(episode.steps)
            if isinstance(step, Ask) and step.label != ARRIVE
        ]
        last = asks[int((0.5 + index * _STRIDE) % 1 * len(asks))]
        ask = episode.steps[last]
        assert isinstance(ask, Ask)
        steps = (*episode.steps[: last + 1], Probe(ask.uri))
        found.append(Episode(f"{episode.name}/{index}", steps, episode.repository))
    return Trace(trace.name, tuple(found))


def rhythm(rng: Random) -> float:
    """Seconds between two keystrokes of a practised typist; median about 170 ms."""
    return round(min(max(rng.lognormvariate(-1.77, 0.45), 0.05), 1.2), 3)


class Script:
    """Writes an episode step by step while keeping the documents' present text.

    Edits are made through this class only, so that offsets always fit the text that
    the replay will have at that step.
    """

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._texts: dict[str, bytes] = {}
        self._languages: dict[str, str] = {}
        self._versions: dict[str, int] = {}
        self._steps: list[Step] = []

    def text(self, uri: str) -> bytes:
        """The document's present bytes."""
        return self._texts[uri]

    def open(self, uri: str, language: str, data: bytes, settle: float = 2.0) -> None:
        """Open a document and read it for a while."""
        self._texts[uri] = data
        self._languages[uri] = language
        self._versions[uri] = 1
        self._steps.append(Open(uri, language, data.decode()))
        self.settle(settle)

    def focus(self, uri: str) -> None:
        """Look at an open document."""
        self._steps.append(Focus(uri))

    def replace(self, uri: str, start: int, end: int, text: str) -> None:
        """Replace bytes [start, end)."""
        data = self._texts[uri]
        self._texts[uri] = data[:start] + text.encode() + data[end:]
        self._versions[uri] += 1
        self._steps.append(TypedEdit(uri, self._versions[uri], start, end, text))

    def ask(self, uri: str, cursor: int, label: str) -> None:
        """Ask for a completion."""
        self._steps.append(Ask(uri, cursor, label))

    def type(self, uri: str, at: int, strokes: list[str], label: str) -> int:
        """Type strokes one by one, asking after each.

        Returns:
            The cursor after the last stroke.
        """
        for stroke in strokes:
            self._steps.append(Pause(rhythm(self._rng)))
            self.replace(uri, at, at, stroke)
            at += len(stroke.encode())
            self.ask(uri, at, label)
        return at

    def key(
        self, uri: str, start: int, end: int, text: str, pause: float, label: str
    ) -> None:
        """Press one key `pause` seconds after the last one, and ask behind it."""
        self._steps.append(Pause(pause))
        self.replace(uri, start, end, text)
        self.ask(uri, start + len(text.encode()), label)

    def take(self, uri: str, at: int, text: str, pauses: list[float]) -> None:
        """Take `text` if it is on offer, else type it."""
        data = self._texts[uri]
        self._texts[uri] = data[:at] + text.encode() + data[at:]
        self._versions[uri] += len(text)
        self._steps.append(Take(uri, self._versions[uri], at, text, tuple(pauses)))

    def load(self, cores: int) -> None:
        """Let other programs keep cores busy."""
        self._steps.append(Load(cores))

    def settle(self, seconds: float) -> None:
        """Read for a while."""
        self._steps.append(Settle(seconds))

    def restart(self, uri: str) -> None:
        """End the server, start a new one and reopen the document."""
        self._steps.append(Restart())
        self._versions[uri] = 1
        text = self._texts[uri].decode()
        self._steps.append(Open(uri, self._languages[uri], text))

    def episode(self, name: str, repository: str = "") -> Episode:
        """What was written so far."""
        return Episode(name, tuple(self._steps), repository)
