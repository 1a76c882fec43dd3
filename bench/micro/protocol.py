"""What the language server itself costs, without any model.

`python -m bench.micro.protocol [FILE.json]` starts the real server over a scripted
service and prints, as its last line, JSON, which it also writes to the file: the time
to the initialize answer, how long another request takes while a completion is
generated, what 30 questions in 300 ms cost, the server's own processor time per edit
and per question of a file of 1 MB, memory after 200 documents, and processor time while
idle. Wall times include this client.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from bench.micro.output import give
from bench.reports.parts import PARTS
from codekv.testing.client import start_scripted
from codekv.testing.editor import Editor
from codekv.testing.service import ScriptedAnswer, ServiceScript

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

URI = "file:///w/shop.py"
LINE = "    value = compute(first, second)\n"
NUM_LINES = 29_000
"""A file of about one megabyte."""

NUM_ASKS = 200
"""Enough for a 99th percentile that is not the slowest one."""

NUM_EDITS = 100
"""Enough for a mean, in a few seconds."""

IDLE_S = 10.0
"""Seconds without a request: enough to see a loop that polls."""

GREETING = {
    "processId": None,
    "capabilities": {
        "general": {"positionEncodings": ["utf-16"]},
        "textDocument": {"inlineCompletion": {"dynamicRegistration": False}},
    },
}


def main(arguments: Sequence[str] = ()) -> None:
    """Measure everything and print; write to the file that is named, if one is."""
    report: dict[str, Any] = {"bench": "protocol"}
    greetings: list[float] = []
    measures: tuple[
        tuple[Callable[[Editor], dict[str, float]], ScriptedAnswer], ...
    ] = (
        (_beside_a_generation, ScriptedAnswer("slow", delay_ms=5_000)),
        (_flood, ScriptedAnswer("done", delay_ms=100)),
        (_large_file, ScriptedAnswer("done")),
        (_open_and_close, ScriptedAnswer("done")),
        (_idle, ScriptedAnswer("done")),
    )
    for measure, answer in measures:
        with tempfile.TemporaryDirectory() as folder:
            greeted, numbers = _run(measure, answer, Path(folder))
            greetings.append(greeted)
            report |= numbers
    report["starts"] = len(greetings)
    report["initialize_p50_ms"] = _ms(statistics.median(greetings))
    report["initialize_max_ms"] = _ms(max(greetings))
    for name, words in (PARTS["protocol"].rows or {}).items():
        sys.stdout.write(f"{name:28} {report[name]:10} {words}\n")
    give(report, arguments)


def _run(
    measure: Callable[[Editor], dict[str, float]], answer: ScriptedAnswer, folder: Path
) -> tuple[float, dict[str, float]]:
    path = folder / "script.json"
    path.write_text(ServiceScript(answers=(answer,)).to_json(), "utf-8")
    started = time.perf_counter()
    with start_scripted(path, folder) as client:
        editor = Editor(client, dict(GREETING))
        editor.greet()
        greeted = time.perf_counter() - started
        editor.await_state("ready")
        result = measure(editor)
        client.close()
    return greeted, result


def _beside_a_generation(editor: Editor) -> dict[str, float]:
    editor.open(URI, "x = ")
    editor.ask(URI, triggerKind=1)
    editor.await_state("working")
    times = []
    for _ in range(NUM_ASKS):
        started = time.perf_counter()
        editor.status()
        times.append(time.perf_counter() - started)
    return {
        "beside_generation_p50_ms": _ms(statistics.median(times)),
        "beside_generation_p99_ms": _ms(sorted(times)[int(0.99 * (len(times) - 1))]),
        "beside_generation_max_ms": _ms(max(times)),
    }


def _flood(editor: Editor) -> dict[str, float]:
    editor.open(URI, "x = ")
    editor.complete(URI)
    before = editor.status()["metrics"]["generations"]
    started = time.perf_counter()
    ids = []
    for number in range(30):
        end = len(editor.texts[URI])
        editor.replace(URI, end, end, "a")
        ids.append(editor.ask(URI))
        time.sleep(max(0.0, started + (number + 1) * 0.01 - time.perf_counter()))
    answers = [editor.client.answer(each) for each in ids]
    generations = editor.status()["metrics"]["generations"] - before
    return {
        "flood_answers": len(answers),
        "flood_generations": generations,
        "flood_last_answer_ms": _ms(editor.client.arrived[ids[-1]] - started),
    }


def _large_file(editor: Editor) -> dict[str, float]:
    editor.open(URI, LINE * NUM_LINES)
    editor.status()
    edit = _processor_time(editor, NUM_EDITS, lambda: _type_one(editor))
    text = editor.texts[URI]
    # The editor's slow reference would dominate; the server's work is the same.
    editor.texts[URI] = ""
    ask = _processor_time(
        editor, NUM_EDITS, lambda: editor.complete(URI, triggerKind=1)
    )
    editor.texts[URI] = text
    return {
        "megabyte_edit_cpu_ms": _ms(edit),
        "megabyte_question_cpu_ms": _ms(ask),
    }


def _type_one(editor: Editor) -> None:
    place = {"line": NUM_LINES // 2, "character": 4}
    change = {"range": {"start": place, "end": place}, "text": "x"}
    params = {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [change]}
    editor.client.notify("textDocument/didChange", params)


def _processor_time(editor: Editor, times: int, work: Callable[[], object]) -> float:
    process = psutil.Process(editor.client.process.pid)
    before = sum(process.cpu_times()[:2])
    for _ in range(times):
        work()
    editor.status()
    return float(sum(process.cpu_times()[:2]) - before) / times


def _open_and_close(editor: Editor) -> dict[str, float]:
    process = psutil.Process(editor.client.process.pid)
    text = LINE * 2_000

    def cycle(times: int) -> float:
        for number in range(times):
            uri = f"file:///w/{number}.py"
            editor.open(uri, text)
            editor.close(uri)
        editor.status()
        return float(process.memory_info().rss)

    cycle(50)
    before = cycle(1)
    grown = cycle(200) - before
    return {
        "rss_mb": round(before / 1e6, 1),
        "grown_after_200_mb": round(grown / 1e6, 2),
    }


def _idle(editor: Editor) -> dict[str, float]:
    editor.open(URI, "x = ")
    editor.complete(URI)
    process = psutil.Process(editor.client.process.pid)
    before = sum(process.cpu_times()[:2])
    time.sleep(IDLE_S)
    used = sum(process.cpu_times()[:2]) - before
    return {"idle_cpu_percent": round(100 * used / IDLE_S, 2)}


def _ms(seconds: float) -> float:
    return round(seconds * 1e3, 3)


if __name__ == "__main__":
    main(sys.argv[1:])
