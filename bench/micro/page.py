"""A measurement of one part as a section of `BENCHMARKS.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

TITLE = "The language server without a model"

COMMAND = "python -m bench.micro.protocol out.json"

ABOUT = """\
The real server process over a service that follows a script, so that nothing here is \
the model's. Wall times include the client that measures; processor times are the \
server's own."""

ROWS = {
    "initialize_p50_ms": "start of the process to the answer to `initialize`, median",
    "initialize_max_ms": "the slowest start",
    "beside_generation_p50_ms": "another request while a completion is made, median",
    "beside_generation_p99_ms": "the same, 99th percentile",
    "beside_generation_max_ms": "the same, slowest",
    "flood_answers": "answers to 30 questions, one every 10 ms while typing",
    "flood_generations": "generations that they cost",
    "flood_last_answer_ms": "first of them to the last answer (the work takes 100 ms)",
    "megabyte_edit_cpu_ms": "processor time per edit in a file of 1 MB",
    "megabyte_question_cpu_ms": "processor time per question in a file of 1 MB",
    "rss_mb": "memory after 50 documents were opened and closed",
    "grown_after_200_mb": "its growth over 200 more",
    "idle_cpu_percent": "processor use while nothing happens",
}
"""What each number of the report means; units are in the names."""


def section(report: Mapping[str, Any]) -> str:
    """Write a report's section."""
    host = report["host"]
    lines = [
        f"## {TITLE}",
        "",
        f"`{COMMAND}`",
        "",
        ABOUT,
        "",
        f"- {host['cpu']}, {host['threads']} threads, {host['memory_gb']} GB, load "
        f"before the run {host['load_1m']}; {host['os']}, Python {host['python']}",
        f"- {report['starts']} starts of the server",
        "",
        "| what | value |",
        "| --- | ---: |",
        *(
            f"| {words} | {_value(name, report[name])} |"
            for name, words in ROWS.items()
        ),
    ]
    return "\n".join(lines) + "\n"


def _value(name: str, value: float) -> str:
    for ending, unit in (("_ms", "ms"), ("_mb", "MB"), ("_percent", "%")):
        if name.endswith(ending):
            return f"{value:.2f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{value:.0f}"
