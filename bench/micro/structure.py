"""What structure and prompt cost per keystroke, by the size and the shape of a file.

`python -m bench.micro.structure [out.json]` types one character into
files of several languages, sizes and shapes and times everything between a snapshot
and its prompt: parsing, cutting, tokenising, anchor, plan and layout. Processor time,
in milliseconds; medians and 95th percentiles. Its last lines say how the time grows
with the file: 1 is in proportion, 0 is not at all.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.micro.output import give
from codekv.completion.document import CodeDocuments
from codekv.completion.prompt.layout import build
from codekv.completion.prompt.window import Limits, Place
from codekv.completion.shaping.shape import plan
from codekv.model.library import store
from codekv.model.library.catalog import DEFAULT
from codekv.structure.anchor import find_anchor
from codekv.structure.parser import Parser
from codekv.text.snapshot import Snapshot
from codekv.tokens.tokenizer import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from codekv.tokens.tokenizer import Tokenizer

KEYS = 20
"""Typed characters per file; the 95th percentile is then the last but one."""

LIMITS = Limits(max_length=1536, suffix=256, output=48)
"""The default configuration's."""

FUNCTIONS = {
    "python": "def task_{n}(left):\n    total = left + {n}\n    return total\n\n",
    "typescript": "function task{n}(left: number) {{\n  return left + {n};\n}}\n\n",
    "go": "func task{n}(left int) int {{\n\tt := left + {n}\n\treturn t\n}}\n\n",
    "rust": "fn task_{n}(left: i64) -> i64 {{\n    let t = left;\n    t\n}}\n\n",
    "java": "  int task{n}(int left) {{\n    int t = left;\n    return t;\n  }}\n\n",
    "c": "int task{n}(int left) {{\n    int t = left + {n};\n    return t;\n}}\n\n",
}
"""One small function per language; `{n}` makes each its own."""

FILE_NAMES = {
    "python": "a.py",
    "typescript": "a.ts",
    "go": "a.go",
    "rust": "a.rs",
    "java": "A.java",
    "c": "a.c",
}


@dataclass(frozen=True, slots=True)
class TypingPlace:
    """A text and where in it somebody types.

    Attributes:
        group: What the text is large in: `size`, `depth`, `line`, `errors`, `case`.
        amount: How much of that it has.
    """

    group: str
    language: str
    amount: int
    text: str
    cursor: int


def shapes() -> Iterator[TypingPlace]:
    """Every text that is measured, small ones first within a group."""
    for language, function in FUNCTIONS.items():
        for kilobytes in (1, 8, 64, 512, 1024):
            text = _repeated(function, kilobytes << 10)
            yield _within("size", language, kilobytes, text)
    for depth in (1, 10, 100, 1_000, 10_000):
        text = "x = " + "[\n" * depth + "1\n" + "]\n" * depth
        yield TypingPlace("depth", "python", depth, text, text.index("1\n") + 1)
    for length in (100, 1_000, 10_000, 100_000):
        text = "values = [" + "12345, " * (length // 7) + "]\n"
        yield TypingPlace("line", "python", length, text, len(text) - 2)
    for count in (0, 10, 100, 1_000):
        lines = _repeated(FUNCTIONS["go"], 64 << 10).split("\n\n")
        stride = max(1, len(lines) // (count or len(lines) + 1))
        broken = [
            part.replace("{", "", 1) if count and index % stride == 0 else part
            for index, part in enumerate(lines)
        ]
        yield _within("errors", "go", count, "\n\n".join(broken))
    yield from _cases()


def _cases() -> Iterator[TypingPlace]:
    """Files that once stopped the server."""
    for count in (600, 3_000):
        head = "const s =\n" + "".join(f"  'line {i}' +\n" for i in range(count))
        text = head + "  'the end' + ;\nlet y = 1;\n"
        yield TypingPlace(
            "concatenation", "typescript", count, text, text.index(";\nlet")
        )
    for count in (1_000, 4_000, 12_000):
        rows = (f"    {{0x{i:08x}}}, {{0x{i * 31:08x}}}," for i in range(count))
        text = "\n".join(rows) + "\n    {0x\n"
        yield TypingPlace("table", "c", count, text, len(text) - 1)
    for count in (300, 3_000):
        head = "function f(a) {\n if (a == 0) return 0;\n"
        body = "".join(f" else if (a == {i}) return {i};\n" for i in range(count))
        text = head + body + " return g(\n}\n"
        yield TypingPlace("else-if", "typescript", count, text, len(text) - 3)


def _repeated(function: str, size: int) -> str:
    parts: list[str] = []
    total = 0
    while total < size:
        parts.append(function.format(n=len(parts)))
        total += len(parts[-1])
    return "".join(parts)


def _within(group: str, language: str, amount: int, text: str) -> TypingPlace:
    """Type at the end of a line in the middle of a text."""
    return TypingPlace(group, language, amount, text, text.index("\n", len(text) // 2))


def measure(shape: TypingPlace, tokenizer: Tokenizer) -> dict[str, Any]:
    """Type into one text; milliseconds of processor time per keystroke."""
    documents = CodeDocuments(tokenizer, Parser(), 256)
    uri = "file:///" + FILE_NAMES[shape.language]
    data = shape.text.encode()
    opened = _timed(lambda: _prompt(documents, uri, shape, (0, data), tokenizer))
    times: list[float] = []
    for number in range(1, KEYS + 1):
        typed = data[: shape.cursor] + b"a" * number + data[shape.cursor :]
        step = (number, typed)
        times.append(_timed(partial(_prompt, documents, uri, shape, step, tokenizer)))
    return {
        "group": shape.group,
        "language": shape.language,
        "amount": shape.amount,
        "bytes": len(data),
        "open_ms": opened,
        "key_ms_p50": statistics.median(times),
        "key_ms_p95": sorted(times)[math.ceil(0.95 * len(times)) - 1],
        "from_lines": documents.is_dear(uri),
    }


def _prompt(
    documents: CodeDocuments,
    uri: str,
    shape: TypingPlace,
    step: tuple[int, bytes],
    tokenizer: Tokenizer,
) -> None:
    """All that happens between a keystroke and its prompt."""
    number, data = step
    language = shape.language
    document = documents.update(Snapshot(uri, number, language, data))
    cursor = shape.cursor + number
    plan(document.tree, cursor)
    place = Place(data, document.encoding, find_anchor(document.tree, cursor), cursor)
    build(place, tokenizer, LIMITS)


def _timed(work: Callable[[], None]) -> float:
    started = time.thread_time()
    work()
    return (time.thread_time() - started) * 1e3


def growth(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """How the time per key grows: the slope of log time over log size, per group.

    Taken between a group's two largest texts; 1 is growth in proportion.
    """
    slopes: dict[str, float] = {}
    names = {(row["group"], row["language"]) for row in rows}
    for group, language in sorted(names):
        found = [r for r in rows if (r["group"], r["language"]) == (group, language)]
        *_, small, large = sorted(found, key=lambda row: row["bytes"])
        if large["bytes"] > 2 * small["bytes"]:
            rise = math.log(large["key_ms_p50"] / small["key_ms_p50"])
            by = math.log(large["bytes"] / small["bytes"])
            slopes[f"{group} {language}"] = rise / by
    return slopes


STEEPEST = 1.15
"""More than this is worse than proportion, noise of the clock included."""


def main(arguments: Sequence[str] = ()) -> int:
    """Measure every shape and print; 1 if a time grows faster than its file."""
    tokenizer = load_tokenizer(store.open_model(DEFAULT.name).folder)
    rows = []
    sys.stdout.write("shape                    amount      KB    open   p50   p95\n")
    for shape in shapes():
        row = measure(shape, tokenizer)
        rows.append(row)
        note = "  from lines" if row["from_lines"] else ""
        sys.stdout.write(
            f"{shape.group:14}{shape.language:11}{shape.amount:6}"
            f"{row['bytes'] / 1024:8.0f}{row['open_ms']:8.0f}"
            f"{row['key_ms_p50']:8.1f}{row['key_ms_p95']:8.1f}{note}\n"
        )
        sys.stdout.flush()
    slopes = growth(rows)
    for name, slope in slopes.items():
        sys.stdout.write(f"growth {name:26} {slope:5.2f}\n")
    give({"bench": "structure", "rows": rows, "growth": slopes}, arguments)
    return 1 if max(slopes.values()) > STEEPEST else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
