"""Seeded generators: a folder's own text in, typed traces out.

Each generator writes one episode; which files and places it takes depends on the seed,
the trace's name and the episode's number alone.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from bench import disturb
from bench.disturb import BACK, WARM
from bench.places import Visit, begin, target_in
from bench.trace import Episode, Script, Trace
from codekv.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.corpus import SourceFile

    Generator = Callable[[Sequence[SourceFile], Random], Script | None]

TYPED = 15
"""Characters typed at each position of `type-line`."""

_ATTEMPTS = 60


def build(name: str, files: Sequence[SourceFile], episodes: int, seed: int) -> Trace:
    """Write a trace of up to `episodes` episodes; fewer where the files lack places.

    Raises:
        UsageError: There is no trace of that name.
    """
    generator = TRACES.get(name)
    if generator is None:
        raise UsageError(f"no trace {name!r}; known: {', '.join(TRACES)}")
    written: list[Episode] = []
    seen: set[tuple[object, ...]] = set()
    for number in range(episodes):
        rng = Random(f"{seed}/{name}/{number}")
        for _ in range(_ATTEMPTS):
            script = generator(files, rng)
            if script is None:
                continue
            episode = script.episode(f"{name}/{number}")
            if episode.steps not in seen:
                seen.add(episode.steps)
                written.append(episode)
                break
    return Trace(name, tuple(written))


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
    visit = Visit(script, file, target, arrive=True)
    visit.type(WARM, "warm")
    script.open(other.uri, other.language, other.data)
    Visit(script, other, away).type(4, "away")
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
    script.open(file.uri, file.language, file.data, settle=8.0)
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
    script.settle(4.0)
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
}
