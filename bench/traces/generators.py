"""Seeded generators: a folder's own text in, typed traces out.

Each generator writes one episode; which files and places it takes depends on the seed,
the trace's name and the episode's number alone.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from bench.traces import disturb, human
from bench.traces.corpus import by_repository
from bench.traces.disturb import BACK, WARM
from bench.traces.places import DEEP, WINDOW, Visit, begin, target_in
from bench.traces.trace import Episode, Script, Trace
from codekv.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bench.traces.corpus import SourceFile

    Generator = Callable[[Sequence[SourceFile], Random], Script | None]

TYPED = 15
"""Characters typed at each position of `type-line`."""

_ATTEMPTS = 60
"""Tries at one repository before the next one's turn."""

_MISSES = 4
"""Episodes in a row without a place before a trace is as long as it can be."""


def build(
    name: str,
    files: Sequence[SourceFile],
    episodes: int,
    seed: int,
    requests: int = 0,
) -> Trace:
    """Write a trace; shorter where the files lack places.

    The repositories take turns, so that each has about the same number of episodes.

    Args:
        name: The kind of editing.
        files: Where it happens.
        episodes: How many episodes there are,
        seed: Chooses places.
        requests: or more of them, until so many questions count.

    Raises:
        UsageError: There is no trace of that name.
    """
    generator = TRACES.get(name)
    if generator is None:
        raise UsageError(f"no trace {name!r}; known: {', '.join(TRACES)}")
    writer = _EpisodeWriter(name, generator, by_repository(files))
    counted = number = misses = 0
    while (number < episodes or counted < requests) and misses < _MISSES:
        episode = writer.write(number, Random(f"{seed}/{name}/{number}"))
        number += 1
        if episode is None:
            misses += 1
        else:
            misses = 0
            counted += episode.num_counted
    return Trace(name, tuple(writer.written))


class _EpisodeWriter:
    """Writes different episodes, the repository with the fewest ones first."""

    def __init__(
        self,
        name: str,
        generator: Generator,
        groups: Mapping[str, Sequence[SourceFile]],
    ) -> None:
        self._name = name
        self._generator = generator
        self._groups = groups
        self._counts = dict.fromkeys(groups, 0)
        self._seen: set[tuple[object, ...]] = set()
        self.written: list[Episode] = []

    def write(self, number: int, rng: Random) -> Episode | None:
        """Write an episode in the first repository that has a place for it."""
        for repository in sorted(self._counts, key=self._counts.__getitem__):
            files = self._groups[repository]
            for _ in range(_ATTEMPTS):
                script = self._generator(files, rng)
                if script is None:
                    continue
                episode = script.episode(f"{self._name}/{number}", repository)
                if episode.steps not in self._seen:
                    self._seen.add(episode.steps)
                    self._counts[repository] += 1
                    self.written.append(episode)
                    return episode
        return None


def _type_line(files: Sequence[SourceFile], rng: Random) -> Script | None:
    begun = begin(files, rng, TYPED)
    if begun is None:
        return None
    script, file, _, target = begun
    Visit(script, file, target, arrive=True).type(TYPED, "type")
    return script


def _type_in_first_function(files: Sequence[SourceFile], rng: Random) -> Script | None:
    file = rng.choice(files)
    if len(file.functions) < 5:
        return None
    target = target_in(file, file.functions[0], TYPED, rng)
    if target is None:
        return None
    script = Script(rng)
    script.open(file.uri, file.language, file.data)
    Visit(script, file, target, arrive=True).type(TYPED, "type")
    return script


def _switch_file_and_back(files: Sequence[SourceFile], rng: Random) -> Script | None:
    begun = begin(files, rng, WARM + BACK)
    if begun is None:
        return None
    script, file, _, target = begun
    other = rng.choice(files)
    if other.uri == file.uri or not other.functions:
        return None
    away = target_in(other, rng.choice(other.functions), 4, rng)
    if away is None:
        return None
    # Both files have been open for a while: a first visit is the `arrive` of any trace.
    script.open(other.uri, other.language, other.data)
    elsewhere = Visit(script, other, away, arrive=True)
    script.focus(file.uri)
    visit = Visit(script, file, target, arrive=True)
    visit.type(WARM, "warm")
    script.focus(other.uri)
    elsewhere.type(4, "away")
    script.focus(file.uri)
    visit.type(BACK, "back")
    return script


def _undo_redo(files: Sequence[SourceFile], rng: Random) -> Script | None:
    begun = begin(files, rng, TYPED)
    if begun is None:
        return None
    script, file, _, target = begun
    uri = file.uri
    Visit(script, file, target, arrive=True)
    steps = [target.strokes[0:5], target.strokes[5:10]]
    at = script.type(uri, target.start, list(steps[0]), "type")
    end = script.type(uri, at, list(steps[1]), "type")
    typed = "".join(steps[1])
    for _ in range(2):
        script.replace(uri, at, end, "")
        script.ask(uri, at, "undo")
        script.replace(uri, at, at, typed)
        script.ask(uri, end, "redo")
    script.type(uri, end, list(target.strokes[10:]), "type")
    return script


def _jump(files: Sequence[SourceFile], rng: Random) -> Script | None:
    file = rng.choice(files)
    if len(file.functions) < 4 or len(file.data) < 4_000:
        return None
    script = Script(rng)
    script.open(file.uri, file.language, file.data, settle=120.0)
    for function in rng.sample(file.functions, 4):
        lines = [i for i in range(function.first, function.last + 1) if file.is_code(i)]
        line = file.lines[rng.choice(lines)]
        at = script.text(file.uri).find(line.text, max(0, line.start - 64)) + len(
            line.text
        )
        script.ask(file.uri, at, "jump")
        script.type(file.uri, at, ["\n" + " " * line.indent], "type")
    return script


def _restart(files: Sequence[SourceFile], rng: Random) -> Script | None:
    begun = begin(files, rng, WARM + BACK)
    if begun is None:
        return None
    script, file, _, target = begun
    visit = Visit(script, file, target, arrive=True)
    visit.type(WARM, "warm")
    script.settle(120.0)
    script.restart(file.uri)
    visit.ask("restart")
    visit.type(BACK, "back")
    return script


TRACES: dict[str, Generator] = {
    "type-line": _type_line,
    "type-in-first-function": _type_in_first_function,
    "insert-function-above": disturb.insert_function_above,
    "edit-above": disturb.edit_above,
    "edit-comment": disturb.edit_comment,
    "rename-used-name": disturb.rename_used_name,
    "delete-function": disturb.delete_function,
    "indent-block": disturb.indent_block,
    "switch-file-and-back": _switch_file_and_back,
    "undo-redo": _undo_redo,
    "jump": _jump,
    "restart": _restart,
    "cold-typing": human.cold_typing,
    "human-session": human.human_session,
    "busy": human.busy,
}

LIVE_TRACES = frozenset({"cold-typing", "human-session", "busy"})
"""Traces whose keys come on time, whether or not there is an answer; they go through
a real server unless told otherwise, and are played only when asked for by name."""

BY_DEFAULT = tuple(name for name in TRACES if name not in LIVE_TRACES)
"""What is played where no trace is named."""

_DEEP = f"a function that begins {DEEP:,} bytes or more into its file"
_REACH = f"within {WINDOW:,} bytes above it"

NEEDS: dict[str, str] = {
    "type-in-first-function": "a file with five functions",
    "insert-function-above": f"{_DEEP}, and two functions {_REACH}",
    "edit-above": (
        f"{_DEEP}, and two functions {_REACH}, the upper one with a statement in place"
        " of which another statement of the file can stand"
    ),
    "edit-comment": f"{_DEEP}, and a comment {_REACH}",
    "rename-used-name": f"{_DEEP}, and a name used two to twelve times {_REACH}",
    "delete-function": f"{_DEEP}, and functions {_REACH}",
    "switch-file-and-back": f"{_DEEP}, and another file with a function",
    "jump": "a file of 4,000 bytes or more with four functions",
}
"""What the files must have for a trace that is not just typing in a deep function."""


def why_absent(name: str) -> str:
    """Say why a trace could not be made of any file."""
    need = NEEDS.get(name, _DEEP)
    return f"{name}: left out, no file has a place for it; it needs {need}"
