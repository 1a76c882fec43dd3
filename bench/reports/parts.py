"""Measurements of one part as sections of `BENCHMARKS.md`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.reports.pipes import pipe_table

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class MeasuredPart:
    """How a measured part is shown.

    Attributes:
        rows: What each number of the report means; units are in the names.
        columns: The same for a report that is a table with a row per case.
    """

    title: str
    about: str
    rows: Mapping[str, str] | None = None
    columns: Mapping[str, str] | None = None


PARTS = {
    "step": MeasuredPart(
        "One step of the model",
        "A prefill and steps of 1 to 16 tokens behind 1000 tokens of context, medians; "
        "*floor* is the time in which the memory, as measured in the same run with all "
        "threads, gives the bytes of a step.",
        rows={
            "read_gb_s": "memory read by all threads, GB/s",
            "prefill_512_tok_s": "prefill of 512 tokens, tokens/s",
            "prefill_512_by_64_tok_s": "the same 64 at a time, as while a user waits",
            "prefill_1024_tok_s": "prefill of 1024 tokens, tokens/s",
            "prefill_2048_tok_s": "prefill of 2048 tokens, tokens/s",
            "step_1_ms": "step of one token",
            "step_1_best_ms": "its best",
            "step_1_floor_ms": "its floor",
            "step_2_over_1": "step of 2 tokens over that of 1",
            "step_4_over_1": "of 4",
            "step_8_over_1": "of 8",
            "step_16_over_1": "of 16",
            "rss_mb": "memory after loading",
        },
    ),
    "candidates": MeasuredPart(
        "Several answers beside one",
        "Asked by hand at places in the sample files, behind a context that is held: "
        "one answer, which may guess and check several of its tokens in a step, and "
        "three different ones, decoded side by side. Medians of the whole time.",
        rows={
            "places": "places",
            "texts": "different answers per place",
            "one_ms": "one answer",
            "one_by_one_ms": "one answer, a token at a time",
            "several_ms": "three answers",
            "ratio": "three over one, median of the places",
            "ratio_p90": "the same, 90th percentile",
            "ratio_by_one": "three over one a token at a time, median of the places",
        },
    ),
    "weights": MeasuredPart(
        "8 or 4 bits per weight",
        "The matrix products of one step with the model's sizes, int8 as used here and "
        "torch's 4-bit product (groups of 32, bfloat16 activations), medians.",
        columns={
            "tokens": "tokens in the step",
            "int8_ms": "8 bits, ms",
            "int4_ms": "4 bits, ms",
            "ratio": "4 over 8",
        },
    ),
    "store": MeasuredPart(
        "The block store",
        "A block of 256 tokens with the default model's sizes: stored, restored from "
        "memory, and from disk (its file in the page cache), medians in milliseconds.",
        columns={
            "codec": "codec",
            "bytes_per_token": "bytes/token",
            "put_ms": "store",
            "ram_ms": "restore from memory",
            "ram_ms_p95": "p95",
            "disk_ms": "restore from disk",
            "disk_ms_p95": "p95",
        },
    ),
    "index": MeasuredPart(
        "The prefix index",
        "Microseconds per block to name, match (by everything before it, or by its own "
        "tokens) and insert blocks, as the number of stored functions grows.\n\n"
        "![Time per block against stored functions](docs/images/index.svg)",
        columns={
            "functions": "functions stored",
            "name_us": "name",
            "match_us": "match",
            "content_us": "match by content",
            "insert_us": "insert",
        },
    ),
    "protocol": MeasuredPart(
        "The language server without a model",
        "The real server process over a service that follows a script, so that nothing "
        "here is the model's. Wall times include the client that measures; processor "
        "times are the server's own.",
        rows={
            "initialize_p50_ms": "start of the process to the answer to `initialize`, "
            "median",
            "initialize_max_ms": "the slowest start",
            "beside_generation_p50_ms": "another request while a completion is made, "
            "median",
            "beside_generation_p99_ms": "the same, 99th percentile",
            "beside_generation_max_ms": "the same, slowest",
            "flood_answers": "answers to 30 questions, one every 10 ms while typing",
            "flood_generations": "generations that they cost",
            "flood_last_answer_ms": "first of them to the last answer (the work takes "
            "100 ms)",
            "megabyte_edit_cpu_ms": "processor time per edit in a file of 1 MB",
            "megabyte_question_cpu_ms": "processor time per question in a file of 1 MB",
            "rss_mb": "memory after 50 documents were opened and closed",
            "grown_after_200_mb": "its growth over 200 more",
            "idle_cpu_percent": "processor use while nothing happens",
        },
    ),
}
"""By the name that a report gives itself."""


def section(report: Mapping[str, Any]) -> str:
    """Write a report's section."""
    name = report["bench"]
    part = PARTS[name]
    lines = [
        f"## {part.title}",
        "",
        f"`python -m bench.micro.{name} out.json`",
        "",
        part.about,
        "",
    ]
    host = report.get("host")
    if host:
        lines += [
            f"- {host['cpu']}, {host['threads']} threads, {host['memory_gb']} GB, load "
            f"before the run {host['load_1m']}; {host['os']}, Python {host['python']}",
            "",
        ]
    if part.rows is not None:
        words = [(text, _value(key, report[key])) for key, text in part.rows.items()]
        lines.append(pipe_table(("what", "value"), words))
    if part.columns is not None:
        cells = [[_plain(row[key]) for key in part.columns] for row in report["rows"]]
        lines.append(pipe_table([*part.columns.values()], cells, num_words=0))
    return "\n".join(lines)


def _plain(value: float | str) -> str:
    if isinstance(value, str) or value == int(value):
        return str(value)
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _value(name: str, value: float) -> str:
    for ending, unit in (("_ms", "ms"), ("_mb", "MB"), ("_percent", "%")):
        if name.endswith(ending):
            return f"{value:.2f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{value:.2f}" if value < 100 and value != int(value) else f"{value:.0f}"
