"""Seeded generators: a folder's own text in, typed traces out.

Each generator writes one episode; which files and places it takes depends on the seed,
the trace's name and the episode's number alone.
"""

from __future__ import annotations

import re
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from bench.places import (
    WINDOW,
    Target,
    Visit,
    deep_functions,
    other_line,
    span,
    target_in,
)
from bench.trace import Episode, Script, Trace
from codekv.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.corpus import SourceFile

    Generator = Callable[[Sequence[SourceFile], Random], Script | None]

TYPED = 15
"""Characters typed at each position of `type-line`."""

WARM = 3
"""Strokes typed before the disturbance of a trace."""

BACK = 6
"""Strokes typed after coming back from it."""

_ATTEMPTS = 60
_NAME = re.compile(rb"[A-Za-z_]\w{3,}")


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


def _begin(
    files: Sequence[SourceFile], rng: Random, strokes: int, before: int = 0
) -> tuple[Script, SourceFile, int, Target] | None:
    """Choose a deep function with `before` others in reach above it, and open it."""
    file = rng.choice(files)
    deep = [index for index in deep_functions(file) if index >= before]
    if not deep:
        return None
    index = rng.choice(deep)
    target = target_in(file, file.functions[index], strokes, rng)
    reach = file.lines[file.functions[index - before].first].start
    if target is None or target.start - reach > WINDOW:
        return None
    script = Script(rng)
    script.open(file.uri, file.language, file.data)
    return script, file, index, target


def _type_line(files: Sequence[SourceFile], rng: Random) -> Script | None:
    begun = _begin(files, rng, TYPED)
    if begun is None:
        return None
    script, file, _, target = begun
    Visit(script, file, target).type(TYPED, "type")
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
    Visit(script, file, target).type(TYPED, "type")
    return script


def _insert_function_above(files: Sequence[SourceFile], rng: Random) -> Script | None:
    begun = _begin(files, rng, WARM + BACK, before=2)
    if begun is None:
        return None
    script, file, index, target = begun
    visit = Visit(script, file, target)
    visit.type(WARM, "warm")
    model = file.functions[rng.randrange(len(file.functions))]
    start, end = span(file, model)
    if end - start > 2_000:
        return None
    spot = file.lines[file.functions[index - 1].first].start
    copy = file.data[start:end].decode()
    head, _, body = copy.partition("(")
    script.replace(file.uri, spot, spot, f"{head}_again({body}\n\n")
    script.settle(1.0)
    visit.type(BACK, "back")
    return script


def _edit_above(files: Sequence[SourceFile], rng: Random) -> Script | None:
    begun = _begin(files, rng, WARM + BACK, before=2)
    if begun is None:
        return None
    script, file, index, target = begun
    swap = other_line(file, file.functions[index - 2], rng)
    if swap is None:
        return None
    line, code = swap
    visit = Visit(script, file, target)
    visit.type(WARM, "warm")
    start = line.start + line.indent
    script.replace(file.uri, start, line.end, "")
    at = script.type(file.uri, start, list(code[:4]), "away")
    script.replace(file.uri, at, at, code[4:])
    visit.type(BACK, "back")
    return script


def _edit_comment(files: Sequence[SourceFile], rng: Random) -> Script | None:
    begun = _begin(files, rng, WARM + BACK)
    if begun is None:
        return None
    script, file, _, target = begun
    prose = [
        line
        for index, line in enumerate(file.lines)
        if target.start - WINDOW < line.start
        and line.end < target.start
        and (file.is_comment(index) or _is_prose(line.text))
        and len(line.text.strip()) > 12
    ]
    if not prose:
        return None
    line = rng.choice(prose)
    words = list(re.finditer(rb"[a-z]{3,}", line.text))
    if not words:
        return None
    word = rng.choice(words)
    visit = Visit(script, file, target)
    visit.type(WARM, "warm")
    spot = line.start + word.start()
    script.replace(file.uri, spot, line.start + word.end(), "")
    script.type(file.uri, spot, list(rng.choice(("other", "new", "present"))), "away")
    script.settle(1.0)
    visit.type(BACK, "back")
    return script


def _is_prose(text: bytes) -> bool:
    """Whether a line reads like a sentence of a documentation string."""
    return (
        re.fullmatch(rb"\s*(?:\"\"\")?[A-Za-z][a-z]*(?: [A-Za-z`,.']+){4,}", text)
        is not None
    )


def _rename_used_name(files: Sequence[SourceFile], rng: Random) -> Script | None:
    begun = _begin(files, rng, WARM + BACK, before=1)
    if begun is None:
        return None
    script, file, _, target = begun
    above = file.data[max(0, target.start - WINDOW) : target.start]
    counts = Counter(match.group() for match in _NAME.finditer(above))
    names = sorted(name for name, count in counts.items() if 2 <= count <= 12)
    if not names:
        return None
    name = rng.choice(names)
    visit = Visit(script, file, target)
    visit.type(WARM, "warm")
    whole = re.compile(rb"\b" + re.escape(name) + rb"\b")
    # From the end, so that earlier offsets stay true; the place itself is left alone.
    for match in reversed(list(whole.finditer(file.data, 0, target.start))):
        if match.end() < target.start:
            script.replace(file.uri, *match.span(), name.decode() + "_new")
    script.settle(1.0)
    visit.type(BACK, "back")
    return script


def _delete_function(files: Sequence[SourceFile], rng: Random) -> Script | None:
    begun = _begin(files, rng, WARM + BACK, before=2)
    if begun is None:
        return None
    script, file, index, target = begun
    visit = Visit(script, file, target)
    visit.type(WARM, "warm")
    start = file.lines[file.functions[index - 1].first].start
    end = file.lines[file.functions[index - 1].last + 1].start
    script.replace(file.uri, start, end, "")
    script.settle(1.0)
    visit.type(BACK, "back")
    return script


def _indent_block(files: Sequence[SourceFile], rng: Random) -> Script | None:
    begun = _begin(files, rng, WARM + BACK, before=1)
    if begun is None:
        return None
    script, file, index, target = begun
    function = file.functions[index - 1]
    inner = [i for i in range(function.first + 1, function.last + 1) if file.is_code(i)]
    if len(inner) < 2:
        return None
    first, last = inner[len(inner) // 2], inner[-1]
    visit = Visit(script, file, target)
    visit.type(WARM, "warm")
    for number in range(last, first - 1, -1):
        line = file.lines[number]
        if not line.is_blank:
            script.replace(file.uri, line.start, line.start, "    ")
    line = file.lines[first]
    head = line.text[: line.indent].decode()
    opener = "if True:" if file.language == "python" else "if (true) {"
    script.replace(file.uri, line.start, line.start, f"{head}{opener}\n")
    script.settle(1.0)
    visit.type(BACK, "back")
    return script


def _switch_file_and_back(files: Sequence[SourceFile], rng: Random) -> Script | None:
    begun = _begin(files, rng, WARM + BACK)
    if begun is None:
        return None
    script, file, _, target = begun
    other = rng.choice(files)
    if other.uri == file.uri or not other.functions:
        return None
    away = target_in(other, rng.choice(other.functions), 4, rng)
    if away is None:
        return None
    visit = Visit(script, file, target)
    visit.type(WARM, "warm")
    script.open(other.uri, other.language, other.data)
    Visit(script, other, away).type(4, "away")
    script.focus(file.uri)
    visit.type(BACK, "back")
    return script


def _undo_redo(files: Sequence[SourceFile], rng: Random) -> Script | None:
    begun = _begin(files, rng, TYPED)
    if begun is None:
        return None
    script, file, _, target = begun
    uri = file.uri
    script.replace(uri, target.start, target.end, "")
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
    begun = _begin(files, rng, WARM + BACK)
    if begun is None:
        return None
    script, file, _, target = begun
    visit = Visit(script, file, target)
    visit.type(WARM, "warm")
    script.settle(4.0)
    script.restart(file.uri)
    visit.ask("restart")
    visit.type(BACK, "back")
    return script


TRACES: dict[str, Generator] = {
    "type-line": _type_line,
    "type-in-first-function": _type_in_first_function,
    "insert-function-above": _insert_function_above,
    "edit-above": _edit_above,
    "edit-comment": _edit_comment,
    "rename-used-name": _rename_used_name,
    "delete-function": _delete_function,
    "indent-block": _indent_block,
    "switch-file-and-back": _switch_file_and_back,
    "undo-redo": _undo_redo,
    "jump": _jump,
    "restart": _restart,
}
