"""A report as one HTML file: no network, no script, readable in light and dark."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from bench.reports import plots
from bench.reports.table import (
    baselines_by_trace,
    divergence_rows,
    num_timed,
    requests,
    same,
    speed_line,
    timed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#626b76;--line:#dfe3e8;
--paper:#fff;--band:#f4f6f8;--a:#0b6bcb;--b:#d97a0b;--c:#7a5bd1;--d:#8a949e;
--exact:#1a8f5a;--restored:#3ea6d9;--moved:#e3a018;--computed:#d2453b}
@media(prefers-color-scheme:dark){:root{--ink:#e8ebee;--soft:#9aa4af;--line:#2d333b;
--paper:#14181d;--band:#1b2027;--a:#5aa9f5;--b:#f0a04b;--c:#ab93f2;--d:#79838e;
--exact:#3cb97e;--restored:#63bfee;--moved:#efb849;--computed:#ee6e64}}
*{box-sizing:border-box}body{margin:0 auto;padding:32px 24px 64px;max-width:1040px;
background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
h1{font-size:26px;margin:0 0 4px}h2{font-size:18px;margin:40px 0 4px}
p{margin:4px 0 12px;color:var(--soft)}b{color:var(--ink)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(200px,1fr));
gap:12px;margin:24px 0}.tile{border:1px solid var(--line);border-radius:8px;
padding:12px 14px}.tile b{display:block;font-size:24px;line-height:1.2}
.tile span{color:var(--soft);font-size:13px}
.warn{border-left:3px solid var(--moved);padding:4px 12px;margin:12px 0}
svg{width:100%;height:auto;display:block;font:12px system-ui,sans-serif}
text{fill:var(--ink)}.tick{fill:var(--soft);font-size:11px}
.end{text-anchor:end}.mid{text-anchor:middle}
.grid{stroke:var(--line);stroke-width:1}.band{fill:var(--band)}
.sample{fill:var(--a);fill-opacity:.45}.curve{fill:none;stroke:var(--a);
stroke-width:1.5}.p50{stroke:var(--ink);stroke-width:2}
.p95{stroke:var(--computed);stroke-width:2}
.exact{fill:var(--exact);background:var(--exact)}
.restored{fill:var(--restored);background:var(--restored)}
.moved{fill:var(--moved);background:var(--moved)}
.computed{fill:var(--computed);background:var(--computed)}
.target0{fill:var(--a);background:var(--a)}.target1{fill:var(--d);background:var(--d)}
.target2{fill:var(--c);background:var(--c)}.target3{fill:var(--b);background:var(--b)}
.target4{fill:var(--moved);background:var(--moved)}
i.p50{background:var(--ink)}i.p95{background:var(--computed)}
.key{margin-right:18px;color:var(--soft);font-size:13px;white-space:nowrap}
.swatch{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:6px}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:13px;width:100%;
font-variant-numeric:tabular-nums}th,td{padding:4px 8px;text-align:right;
border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child,th:nth-child(2),td:nth-child(2){text-align:left}
tr.other td{color:var(--soft)}code{font-size:12px;overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;font-size:13px}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
"""


def render(report: Mapping[str, Any]) -> str:
    """Write the page."""
    parts = [
        f"<h1>{escape(str(report['model'].get('name', '')))} in codekv</h1>",
        f"<p>{escape(_subtitle(report))}</p>",
        *_warnings(report),
        _tiles(report),
        *_plots(report),
        "<h2>Numbers</h2>",
        _table(report),
        *_divergence(report),
        "<h2>How it was measured</h2>",
        _facts(report),
    ]
    body = "\n".join(parts)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>codekv benchmark</title><style>{STYLE}</style></head>"
        f"<body>{body}</body></html>\n"
    )


def _subtitle(report: Mapping[str, Any]) -> str:
    host = report["host"]
    return (
        f"{host['cpu']}, {host['threads']} threads, {host['memory_gb']} GB; "
        f"seed {report['seed']}, pace {report['pace']}"
    )


def _warnings(report: Mapping[str, Any]) -> list[str]:
    lines = []
    if report["partial"]:
        lines.append("The run was interrupted; this is what was measured until then.")
    if report["host"]["load_1m"] > report["host"]["threads"]:
        load = report["host"]["load_1m"]
        lines.append(f"The machine was busy (load {load}): times are too long.")
    lines += report.get("notes", [])
    lines += report.get("monitor", {}).get("advice", [])
    return [f'<p class="warn">{escape(line)}</p>' for line in lines]


def _tiles(report: Mapping[str, Any]) -> str:
    first = report["traces"][0] if report["traces"] else None
    tiles = []
    if first is not None:
        computed, name = first["tokens_computed"], first["name"]
        tiles += [
            (f"{computed['p50']:.0f}", f"tokens computed per keystroke, {name}"),
            (f"{first['latency_ms']['p50']:.0f} ms", f"median latency, {name}"),
        ]
        for base in report["baselines"]:
            rows = {row["name"]: row for row in base["traces"]}
            is_shown = base["name"] == "plugin-layout" and name in rows
            if is_shown and num_timed(rows[name]):
                value = rows[name]["latency_ms"]["p50"]
                tiles.append((f"{value:.0f} ms", f"{base['name']}, {name}"))
    if report["hit_rate"] is not None:
        tiles.append((f"{report['hit_rate']:.1%}", "of context tokens not computed"))
    cells = "".join(
        f'<div class="tile"><b>{escape(number)}</b><span>{escape(what)}</span></div>'
        for number, what in tiles
    )
    return f'<div class="tiles">{cells}</div>'


def _plots(report: Mapping[str, Any]) -> list[str]:
    names = ["codekv", *(base["name"] for base in report["baselines"])]
    targets = [(f"target{index}", name) for index, name in enumerate(names)]
    grades = [(grade, grade) for grade in plots.GRADES]
    marks = [("p50", "median"), ("p95", "95th percentile")]
    drawn = [
        ("Latency", "One dot per request.", marks, plots.latency),
        ("Beside other ways", "Median latency.", targets, plots.against),
        ("Tokens computed", "In the order of the run.", [], plots.computed),
        ("Computed share", "Of the context, 95th percentile.", targets, plots.cost),
        ("Where the tokens came from", "Of all requests.", grades, plots.shares),
        ("Memory", "Resident, at each request.", [], plots.memory),
    ]
    return [
        f"<h2>{title}</h2><p>{note}</p>{plots.legend(entries)}{draw(report)}"
        for title, note, entries, draw in drawn
    ]


def _table(report: Mapping[str, Any]) -> str:
    head = ["trace", "target", "n (timed)", "context", "computed p50", "p95", "max"]
    head += ["ttft p50", "latency p50", "p95", "p99", "decode p50", "hits", "as fresh"]
    others = baselines_by_trace(report)
    lines = ["".join(f"<th>{name}</th>" for name in head)]
    for row in report["traces"]:
        lines.append(_cells(row["name"], "codekv", row))
        lines += [
            _cells("", name, rows[row["name"]])
            for name, rows in others.items()
            if row["name"] in rows
        ]
    rows = "".join(
        f'<tr class="{"other" if "<td></td>" in line[:9] else ""}">{line}</tr>'
        for line in lines
    )
    return f'<div class="scroll"><table>{rows}</table></div>'


def _divergence(report: Mapping[str, Any]) -> list[str]:
    """How far answers were from fresh ones, if that was measured."""
    names, rows = divergence_rows(report)
    if not rows:
        return []
    lines = [["trace", *names], *([trace, *cells] for trace, cells in rows)]
    cells = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>"
        for line in lines
    )
    note = "Of the next-token distribution at the prompt's end, in nats."
    table = f'<div class="scroll"><table>{cells}</table></div>'
    return ["<h2>Compared with fresh runs</h2>", f"<p>{note}</p>", table]


def _cells(name: str, target: str, row: Mapping[str, Any]) -> str:
    computed, hits = row["tokens_computed"], row["hit_rate"]
    values = [
        name,
        target,
        requests(row),
        f"{row['context_tokens']['p50']:.0f}",
        *(f"{computed[key]:.0f}" for key in ("p50", "p95", "max")),
        *timed(row, "ttft_ms", "p50"),
        *timed(row, "latency_ms", "p50", "p95", "p99"),
        *timed(row, "decode_ms", "p50"),
        "" if hits is None else f"{hits:.2%}",
        same(row),
    ]
    return "".join(f"<td>{escape(value)}</td>" for value in values)


def _facts(report: Mapping[str, Any]) -> str:
    host, model = report["host"], report["model"]
    facts = [
        ("command", report["command"]),
        ("model", ", ".join(f"{key} {value}" for key, value in model.items())),
        ("processor", f"{host['cpu']} ({' '.join(host['features'])})"),
        ("system", f"{host['os']}, Python {host['python']}, load {host['load_1m']}"),
        ("versions", ", ".join(f"{k} {v}" for k, v in host["versions"].items())),
        ("traces", ", ".join(f"{k} {v}" for k, v in report["digests"].items())),
    ]
    start = report["start"]
    if start["starts"]:
        told = f"{start['ready_s']['p50']:.1f} s, median of {start['starts']} starts"
        facts.insert(2, ("ready after", told))
    if report.get("speed"):
        facts.insert(2, ("speed", speed_line(report["speed"])))
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd><code>{escape(str(value))}</code></dd>"
        for name, value in facts
    )
    return f"<dl>{rows}</dl>"
