"""`BENCHMARKS.md`, written from the reports in `bench/results/`.

`python -m bench.reports.markdown add REPORT.json NAME` keeps a report of
`codekv bench`, `codekv eval`, `codekv kv report` or a part in `bench/micro`, without
its single requests and answers, which fill most of a file; with no arguments it writes
the page.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.reports.compare import load, read
from bench.reports.index_plot import draw
from bench.reports.pipes import pipe_table
from bench.reports.sections import TRACES, kind_of, sections, without_rows
from bench.reports.table import (
    baselines_by_trace,
    divergence_rows,
    num_timed,
    requests,
    same,
    share_rows,
    speed_line,
    timed,
)
from codekv.errors import CodekvError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.reports.table import Rows

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"
INDEX_PICTURE = ROOT / "docs" / "images" / "index.svg"
PAGE = ROOT / "BENCHMARKS.md"

HEAD = """\
# Benchmarks

This page is written by `python -m bench.reports.markdown` from the reports in `bench/results/`; do not edit it by hand.

## Read this first

- One machine, one run per table. The spread within a run is in the columns p50, p95 and max; between machines the *ratios* travel, the milliseconds do not.
- What is typed is the real text of real packages, typed by a script. People pause, delete and look around more. `--pace max` leaves no pauses, so idle work has only the moments in which a person would read (after opening a file, after coming back).
- Shortcuts that answer without the model (typing along a known answer, guesses made ahead) are off here, and answers end with their line, so that every request costs what the model costs. `--as-used` turns all of it on.
- `fresh` is the same service with everything forgotten before each request, no budget and no idle work. `common-prefix` is our prompt with what every server does: one sequence, reuse of the common prefix. `plugin-layout` is the prompt of llama.vim (current line before the suffix, 256 lines above, 64 below) within the same token window, with the same reuse. The last two run on the same runtime and weights, greedy, one line; they do not draft, the service does, so compare *ttft* for the cache alone and *latency* for what a user waits.
- The tokens of every request are counted for every target. Baselines take seconds for an answer, so only a sample of theirs is timed: `n (timed)` gives both numbers where they differ. A baseline's count takes the tokens of its answers as dropped, so it is too high by at most the tokens that it generated and that were then typed.
- *as fresh* is the share of sampled requests whose text equals that of the fresh run, and of how many.
- A failed idea is a result too: they are in [docs/log.md](docs/log.md).

## Do it yourself

```
codekv bench PATH --json out.json --html out.html     any folder of source files
codekv bench --sources                                the six packages used here, pinned by hash
codekv bench PATH --quick                             a look in about three minutes
codekv bench PATH --against http://127.0.0.1:8012     beside a llama.cpp server
codekv bench --compare before.json after.json         two runs side by side
```

The same seed replays identical requests: every report carries the digest of each trace. The traces and all columns are explained in [bench/README.md](bench/README.md).
"""  # noqa: E501 - one sentence per line, as in every page


def page(reports: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the whole page from reports by name."""
    parts = [HEAD]
    for name, report in reports.items():
        if kind_of(report) != TRACES:
            continue
        parts.append(
            f"## {name}\n\n{_about(report)}\n\n{_claims(report)}{_table(report)}"
            f"\n{_shares(report)}{_divergence(report)}"
        )
    parts += sections(reports)
    return "\n".join(parts)


def keep(path: Path, name: str, folder: Path = RESULTS) -> Path:
    """Store a report under a name, without its single requests.

    Raises:
        UsageError: It is not a whole report.
    """
    report = read(path)
    if kind_of(report) == TRACES:
        report = load(path)
    if report.get("partial"):
        raise UsageError(f"{path}: a partial report; let the run finish first")
    report = without_rows(report)
    folder.mkdir(exist_ok=True)
    target = folder / f"{name}.json"
    target.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return target


def kept(folder: Path = RESULTS) -> dict[str, dict[str, Any]]:
    """All stored reports by name."""
    return {path.stem: read(path) for path in sorted(folder.glob("*.json"))}


def main(arguments: Sequence[str]) -> int:
    """Command line."""
    try:
        if len(arguments) == 3 and arguments[0] == "add":  # noqa: PLR2004
            keep(Path(arguments[1]), arguments[2])
        elif arguments:
            raise UsageError(
                "usage: python -m bench.reports.markdown [add REPORT.json NAME]"
            )
        reports = kept()
        PAGE.write_text(page(reports), "utf-8")
        for report in reports.values():
            if kind_of(report) == "index":
                INDEX_PICTURE.write_text(draw(report["rows"]), "utf-8")
    except CodekvError as error:
        sys.stderr.write(f"codekv: {error}\n")
        return 1
    return 0


def _about(report: Mapping[str, Any]) -> str:
    host, model = report["host"], report["model"]
    versions = ", ".join(f"{k} {v}" for k, v in host["versions"].items())
    features = " ".join(host["features"])
    lines = [
        f"`{report['command']}`",
        "",
        f"- {model['name']}, {model.get('compute', '')}, source SHA-256 "
        f"`{str(model.get('source_sha256'))[:16]}…`",
        f"- {host['cpu']} ({features}), {host['threads']} threads, "
        f"{host['memory_gb']} GB, load before the run {host['load_1m']}",
        f"- {host['os']}, Python {host['python']}, {versions}",
        f"- seed {report['seed']}, pace {report['pace']}",
    ]
    if report.get("speed"):
        lines.append(f"- {speed_line(report['speed'])}")
    if report.get("start", {}).get("starts"):
        start = report["start"]
        lines.append(
            f"- ready after {start['ready_s']['p50']:.1f} s (median of "
            f"{start['starts']}), {start['rss_mb']['max']:.0f} MB resident at most"
        )
    lines += [f"- **{note}**" for note in report.get("notes", [])]
    if report.get("hit_rate") is not None:
        lines.append(
            f"- tokens not computed, over all traces: {report['hit_rate']:.2%}"
        )
    return "\n".join(lines)


def _claims(report: Mapping[str, Any]) -> str:
    """How much quicker than the plugins' layout, where both were measured."""
    others = {
        row["name"]: row
        for base in report["baselines"]
        if base["name"] == "plugin-layout"
        for row in base["traces"]
    }
    lines = []
    for row in report["traces"]:
        other = others.get(row["name"])
        if row["name"] != "type-line":
            continue
        if row.get("decode_ms_per_token"):
            lines.append(
                f"`type-line`: {row['decode_ms_per_token']:.1f} ms of decoding per "
                "generated token (drafts checked in the same step count).\n\n"
            )
        if not other or not num_timed(other):
            continue
        first = other["ttft_ms"]["p50"] / max(row["ttft_ms"]["p50"], 0.01)
        whole = other["latency_ms"]["p50"] / max(row["latency_ms"]["p50"], 0.01)
        decode = other["decode_ms"]["p50"] / max(row["decode_ms"]["p50"], 0.01)
        lines.append(
            f"`{row['name']}` beside `plugin-layout`: first token {first:.1f} times "
            f"sooner, whole answer {whole:.1f} times, decoding alone {decode:.1f} "
            "times (medians).\n\n"
        )
    return "".join(lines)


def _table(report: Mapping[str, Any]) -> str:
    head = (
        "| trace | target | n (timed) | context | computed p50 | p95 | max "
        "| ttft p50 | p95 | latency p50 | p95 | p99 | decode p50 | hits | as fresh |"
    )
    lines = [head, "| --- | --- |" + " ---: |" * 13]
    others = baselines_by_trace(report)
    for row in report["traces"]:
        lines.append(_row(f"**{row['name']}**", "codekv", row))
        lines += [
            _row("", name, rows[row["name"]])
            for name, rows in others.items()
            if row["name"] in rows
        ]
    return "\n".join(lines) + "\n"


def _shares(report: Mapping[str, Any]) -> str:
    title = (
        "Share of the context computed before the answer, p50 / p95 of all requests:"
    )
    return _by_trace(title, *share_rows(report))


def _divergence(report: Mapping[str, Any]) -> str:
    names, rows = divergence_rows(report)
    title = (
        "Answers compared with fresh runs of the same prompt: divergence (KL, nats) of "
        "the next-token distribution at the prompt's end, beside the runtime's own "
        "noise (the same prompt computed in other steps), and again once idle work "
        "was done; *inexact* are answers that used restored or moved slots. *same "
        "text* compares 12 greedy tokens, and *noise's* those of two fresh runs."
    )
    return f"\n{_by_trace(title, names, rows)}" if rows else ""


def _by_trace(title: str, names: list[str], rows: Rows) -> str:
    table = pipe_table(("trace", *names), [(trace, *cells) for trace, cells in rows])
    return f"{title}\n\n{table}"


def _row(name: str, target: str, row: Mapping[str, Any]) -> str:
    computed, hits = row["tokens_computed"], row["hit_rate"]
    values = [
        name,
        target,
        requests(row),
        f"{row['context_tokens']['p50']:.0f}",
        *(f"{computed[key]:.0f}" for key in ("p50", "p95", "max")),
        *timed(row, "ttft_ms", "p50", "p95"),
        *timed(row, "latency_ms", "p50", "p95", "p99"),
        *timed(row, "decode_ms", "p50"),
        "" if hits is None else f"{hits:.1%}",
        same(row),
    ]
    return "| " + " | ".join(values) + " |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
