"""Evaluations, the laboratory and measured parts as sections of `BENCHMARKS.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench.reports import parts
from bench.reports.pipes import pipe_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Report = Mapping[str, Any]

TRACES = "traces"
"""The kind of a report of `codekv bench`."""

_INFILLING = """\
`codekv eval infilling` on HumanEval-Infilling (Bavarian et al. 2022): the text, then \
the program's own tests in a subprocess. *plain* is the prompt that plugins send, cut \
at the cursor, its answer cut at the line's end; *cached* types the text before the \
cursor in three bursts, so that the answer stands on reused keys and values. No \
latency budget, so that the text alone is judged."""

_LINES = """\
`codekv eval next-line`: whole lines of pinned packages, taken out and asked for. No \
rule was made by looking at *test* sources. *parses* is the share of files that parse \
with the answer."""

_REPLAY = """\
`codekv eval replay`: real changes typed again, key by key. A proxy: the person knows \
what to write and takes an offer exactly if the text to come begins with all of it; \
what *saved net* costs for reading is told in [bench/README.md](bench/README.md)."""

_FAULTS = """\
`codekv eval faults`: all kinds of places in the pinned packages; what must never \
happen, and what each filter changed."""

_COMPRESSION = """\
`codekv kv report`: {texts} texts of {context} tokens from real packages, divergence \
(KL, nats) of the next {probe} tokens from the exact run, in float32. Bits per element \
count scales and padding. *same text* is the share of {cursors} cursors at which 24 \
greedy tokens stay the same, *same line* that of the first line."""

_PRESETS = (
    ("bits_per_element", "bits", "{:.2f}"),
    ("bytes_per_token", "bytes/token", "{:.0f}"),
    ("kl_mean", "KL mean", "{:.5f}"),
    ("kl_p99", "KL p99", "{:.4f}"),
    ("same_top", "same first choice", "{:.2%}"),
    ("first_divergence", "first change after", "{:.0f}"),
    ("same_text", "same text", "{:.1%}"),
    ("same_line", "same line", "{:.1%}"),
)
_DISK = (
    ("entropy", "coder", "{}"),
    ("difference", "differences", "{}"),
    ("share_of_memory", "of memory's bytes", "{:.2f}"),
    ("expand_tok_s", "tokens/s back", "{:,.0f}"),
)


def kind_of(report: Report) -> str:
    """What measured a report."""
    if "bits_per_element" in (report.get("presets") or [{}])[0]:
        return "compression"
    return str(report.get("bench", TRACES))


def without_rows(report: dict[str, Any]) -> dict[str, Any]:
    """A report without its single answers and requests, which fill most of a file."""
    return {k: v for k, v in report.items() if k not in ("series", "outcomes")}


def sections(reports: Mapping[str, Report]) -> Iterable[str]:
    """Sections for all reports that are not of traces, by kind."""
    by_kind: dict[str, list[Report]] = {}
    for report in reports.values():
        by_kind.setdefault(kind_of(report), []).append(report)
    quality = [
        *_infilling(by_kind.get("infilling", [])),
        *_lines(by_kind.get("next-line", [])),
        *_faults(by_kind.get("faults", [])),
        *_replays(by_kind.get("replay", [])),
    ]
    if quality:
        yield "## Text quality\n\n" + "\n".join(quality)
    for report in by_kind.get("compression", []):
        yield _compression(report)
    for kind in parts.PARTS:
        yield from map(parts.section, by_kind.get(kind, []))


def _infilling(reports: Sequence[Report]) -> Iterable[str]:
    if not reports:
        return
    yield f"{_INFILLING}\n"
    names = ("exact_match", "pass_at_1", "does_not_parse", "empty")
    ordered = sorted(reports, key=lambda r: (r["data"], r["model"], r["prompt"]))
    yield pipe_table(
        ("data", "model", "prompt", "mode", "options", "rows", "exact")
        + ("pass@1", "does not parse", "empty", "edit similarity"),
        [
            (
                report["data"],
                report["model"],
                report["prompt"],
                report["mode"],
                " ".join(report["settings"]),
                str(report["rows"]),
                *(f"{report[name]:.3f}" for name in names),
                f"{report['edit_similarity']:.3f}",
            )
            for report in ordered
        ],
        num_words=5,
    )


def _lines(reports: Sequence[Report]) -> Iterable[str]:
    if not reports:
        return
    yield f"{_LINES}\n"
    names = ("exact_match", "edit_similarity", "indentation", "parses", "empty")
    rows = [
        (
            report.get("language") or "python",
            report.get("use", "tune") if report.get("language") else "tune",
            report["model"],
            " ".join(report["settings"]),
            str(report["rows"]),
            *(f"{report[name]:.3f}" for name in names),
            f"{report['latency_ms_p50']:.0f}",
        )
        for report in reports
    ]
    head = ("language", "sources", "model", "options", "rows", "exact")
    more = ("edit similarity", "indentation", "parses", "empty", "p50 ms")
    yield pipe_table((*head, *more), rows, num_words=4)


def _replays(reports: Sequence[Report]) -> Iterable[str]:
    if not reports:
        return
    yield f"{_REPLAY}\n"
    names = ("saved", "saved_net", "would_be_accepted", "retained", "undone")
    rows = [
        (
            report["model"],
            " ".join(report["settings"]),
            str(report["changes"]),
            str(report["questions"]),
            str(report["shown"]),
            *(f"{report[name]:.3f}" for name in (*names, "delta_chrf")),
            *(f"{report['latency_ms'][name]:.0f}" for name in ("p50", "p95")),
        )
        for report in reports
    ]
    head = ("model", "options", "changes", "questions", "shown", "saved", "saved net")
    more = ("would be accepted", "retained", "undone", "delta chrF", "p50 ms", "p95")
    yield pipe_table((*head, *more), rows, num_words=2)


def _faults(reports: Sequence[Report]) -> Iterable[str]:
    for report in reports:
        rows = report["rows"]
        yield f"{_FAULTS} {rows} places, {report['offered']} answers.\n"
        yield pipe_table(
            ("fault", "times"), [(k, str(v)) for k, v in report["faults"].items()]
        )
        yield pipe_table(
            ("filter", "answers changed", "share"),
            [(k, str(v), f"{v / rows:.1%}") for k, v in report["filters"].items()],
        )


def _compression(report: Report) -> str:
    about = _COMPRESSION.format(
        texts=len(report["texts"]),
        context=report["context_tokens"],
        probe=report["probe_tokens"],
        cursors=report.get("cursors", 0),
    )
    parts = [f"## Compression: {report['model']}\n\n{about}\n"]
    parts.append(_columns("stored as", report["presets"], _PRESETS))
    for key, title in (
        ("controls", "Rules and their controls: as many other tokens, equal bits."),
        ("classes", "One class at a width (keys/values), all else at 16 bits."),
    ):
        if report.get(key):
            parts.append(f"{title}\n")
            parts.append(_columns("what", report[key], _PRESETS[:5]))
    if report.get("disk"):
        parts.append("Entropy coding of stored blocks on top of the codec.\n")
        parts.append(_columns("preset", report["disk"], _DISK))
    if report.get("speed"):
        speed = report["speed"]
        parts.append(
            f"The codec (`balanced`, {report.get('threads', 1)} threads): encodes "
            f"{speed['encode_tok_s']:,.0f} and decodes {speed['decode_tok_s']:,.0f} "
            "tokens per second.\n"
        )
    return "\n".join(parts)


def _columns(
    first: str, rows: Sequence[Report], columns: Sequence[tuple[str, str, str]]
) -> str:
    known = [each for each in columns if any(each[0] in row for row in rows)]

    def cells(row: Report) -> list[str]:
        return [form.format(row[key]) if key in row else "" for key, _, form in known]

    head = (first, *(title for _, title, _ in known))
    return pipe_table(head, [(row["name"], *cells(row)) for row in rows])
