"""Generators that disturb what is above the cursor, and come back to type on.

Each warms a place, changes text above it as a person or a tool would, and types on:
what a cache keeps of the file in between is the question.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from bench.traces.places import WINDOW, Visit, begin, other_line, span

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from bench.traces.corpus import SourceFile
    from bench.traces.trace import Script

WARM = 3
"""Strokes typed before the disturbance of a trace."""

BACK = 6
"""Strokes typed after coming back from it."""

_NAME = re.compile(rb"[A-Za-z_]\w{3,}")


def insert_function_above(files: Sequence[SourceFile], rng: Random) -> Script | None:
    """Paste a function above the one being typed in."""
    begun = begin(files, rng, WARM + BACK, before=2)
    if begun is None:
        return None
    script, file, index, target = begun
    visit = Visit(script, file, target, arrive=True)
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


def edit_above(files: Sequence[SourceFile], rng: Random) -> Script | None:
    """Replace a line two functions above by another line of the file."""
    begun = begin(files, rng, WARM + BACK, before=2)
    if begun is None:
        return None
    script, file, index, target = begun
    swap = other_line(file, file.functions[index - 2], rng)
    if swap is None:
        return None
    line, code = swap
    visit = Visit(script, file, target, arrive=True)
    visit.type(WARM, "warm")
    start = line.start + line.indent
    script.replace(file.uri, start, line.end, "")
    at = script.type(file.uri, start, list(code[:4]), "away")
    script.replace(file.uri, at, at, code[4:])
    visit.type(BACK, "back")
    return script


def edit_comment(files: Sequence[SourceFile], rng: Random) -> Script | None:
    """Replace a word of a comment or documentation string above."""
    begun = begin(files, rng, WARM + BACK)
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
    visit = Visit(script, file, target, arrive=True)
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


def rename_used_name(files: Sequence[SourceFile], rng: Random) -> Script | None:
    """Rename something everywhere above, as an editor does in one go."""
    begun = begin(files, rng, WARM + BACK, before=1)
    if begun is None:
        return None
    script, file, _, target = begun
    above = file.data[max(0, target.start - WINDOW) : target.start]
    counts = Counter(match.group() for match in _NAME.finditer(above))
    names = sorted(name for name, count in counts.items() if 2 <= count <= 12)
    if not names:
        return None
    name = rng.choice(names)
    visit = Visit(script, file, target, arrive=True)
    visit.type(WARM, "warm")
    whole = re.compile(rb"\b" + re.escape(name) + rb"\b")
    # From the end, so that earlier offsets stay true; the place itself is left alone.
    for match in reversed(list(whole.finditer(file.data, 0, target.start))):
        if match.end() < target.start:
            script.replace(file.uri, *match.span(), name.decode() + "_new")
    script.settle(1.0)
    visit.type(BACK, "back")
    return script


def delete_function(files: Sequence[SourceFile], rng: Random) -> Script | None:
    """Delete the function above."""
    begun = begin(files, rng, WARM + BACK, before=2)
    if begun is None:
        return None
    script, file, index, target = begun
    visit = Visit(script, file, target, arrive=True)
    visit.type(WARM, "warm")
    start = file.lines[file.functions[index - 1].first].start
    end = file.lines[file.functions[index - 1].last + 1].start
    script.replace(file.uri, start, end, "")
    script.settle(1.0)
    visit.type(BACK, "back")
    return script


def indent_block(files: Sequence[SourceFile], rng: Random) -> Script | None:
    """Put the second half of the function above into an `if`."""
    begun = begin(files, rng, WARM + BACK, before=1)
    if begun is None:
        return None
    script, file, index, target = begun
    function = file.functions[index - 1]
    inner = [i for i in range(function.first + 1, function.last + 1) if file.is_code(i)]
    if len(inner) < 2:
        return None
    first, last = inner[len(inner) // 2], inner[-1]
    visit = Visit(script, file, target, arrive=True)
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
