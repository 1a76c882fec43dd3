import json
import os
import random
import subprocess
import sys
import threading
import time
import tracemalloc
import urllib.request

import pytest

from codekv.config import Config
from codekv.monitor import Monitor, Verdict
from codekv.monitor.advice import RULES
from codekv.monitor.history import MAX_NAMES
from codekv.monitor.output import (
    JsonLinesLog,
    StatusFile,
    read_statuses,
    serve_prometheus,
    status_dir,
)

DEFAULTS = Config().model_dump()


def finding(monitor, name):
    return next(f for f in monitor.analyze() if f.name == name)


def settings(**changes):
    values = Config().model_dump()
    for path, value in changes.items():
        section, _, key = path.partition("__")
        assert key in values[section]
        values[section][key] = value
    return values


def type_along(monitor, requests=100, *, computed=2, context=1300, **more):
    """A history of requests that each computed so many of their context tokens."""
    for _ in range(requests):
        metrics = {"latency_ms": 180, "ttft_ms": 60, "memory_mb": 200.0}
        metrics |= {"exact": context - computed, "computed": computed} | more
        monitor.record(kind="type", **metrics)


def named_settings(sentences):
    """Settings that advice names, all of which must exist."""
    known = {
        f"{section}.{key}" for section, values in DEFAULTS.items() for key in values
    }
    purge = DEFAULTS["kvcache"]["purge_strategy"]
    known |= {f"kvcache.purge_strategy.{key}" for key in purge}
    words = {word.strip('.,:;()"') for text in sentences for word in text.split()}
    named = {w for w in words if w.partition(".")[0] in DEFAULTS and "." in w}
    assert named <= known, named - known
    return named


def test_healthy_typing_gives_no_advice():
    monitor = Monitor(settings=DEFAULTS)
    type_along(monitor, load_ms=0.8)
    assert monitor.advice() == ()
    assert finding(monitor, "hit rate").verdict is Verdict.OK
    assert finding(monitor, "hit rate").value == pytest.approx(1 - 2 / 1300)
    assert finding(monitor, "block load").verdict is Verdict.OK
    assert finding(monitor, "memory swing").verdict is Verdict.OK


def test_nothing_recorded_is_not_a_verdict():
    for found in Monitor().analyze():
        assert found.verdict is Verdict.UNKNOWN
        assert found.advice == ()
    assert Monitor().snapshot()["requests"] == 0


def test_few_samples_are_not_a_verdict():
    monitor = Monitor()
    type_along(monitor, 5, computed=1300)
    assert finding(monitor, "hit rate").verdict is Verdict.UNKNOWN


def test_hit_rate_threshold_is_85_percent_of_tokens():
    for computed, verdict in ((140, Verdict.OK), (160, Verdict.WARN)):
        monitor = Monitor()
        type_along(monitor, computed=computed, context=1000)
        assert finding(monitor, "hit rate").verdict is verdict


def test_a_deliberately_bad_configuration_is_named():
    bad = settings(
        kvcache__memory_mb=16, kvcache__chunk_size=16, kvcache__reuse="exact"
    )
    monitor = Monitor(settings=bad)
    type_along(monitor, computed=900)
    named = named_settings(monitor.advice())
    assert {"kvcache.memory_mb", "kvcache.chunk_size", "kvcache.reuse"} <= named


@pytest.mark.parametrize("eviction", ["purge", "disk", "guard", "topic"])
def test_a_tiny_budget_is_named_once_whatever_else_went(eviction):
    monitor = Monitor(settings=settings(kvcache__memory_mb=16))
    type_along(monitor, computed=900, evicted=5, eviction=eviction)
    sentences = finding(monitor, "hit rate").advice
    assert sum("kvcache.memory_mb" in sentence for sentence in sentences) == 1


@pytest.mark.parametrize(
    ("changes", "more", "expected"),
    [
        ({}, {"evicted": 5, "eviction": "size"}, "kvcache.memory_mb"),
        ({}, {"evicted": 5, "eviction": "disk"}, "kvcache.disk_mb"),
        (
            {},
            {"evicted": 5, "eviction": "purge"},
            "kvcache.purge_strategy.keep_ratio",
        ),
        ({"kvcache__reuse": "exact"}, {}, "kvcache.reuse"),
        ({"kvcache__chunk_size": 16}, {}, "kvcache.chunk_size"),
        ({"kvcache__idle_work": False}, {}, "kvcache.idle_work"),
        ({"kvcache__reset_on_topic_switch": True}, {}, "kvcache.reset_on_topic_switch"),
        ({}, {"reuse_stop": "window"}, "kvcache.max_length"),
        ({}, {"reuse_stop": "suffix"}, "completion.suffix_tokens"),
        ({}, {"reuse_stop": "cold"}, "kvcache.disk_mb"),
        ({}, {"reuse_stop": "prefix"}, "kvcache.reuse"),
        ({}, {"reuse_stop": "unheard-of"}, "kvcache.memory_mb"),
    ],
)
def test_poor_reuse_names_the_setting_to_change(changes, more, expected):
    monitor = Monitor(settings=settings(**changes))
    type_along(monitor, computed=700, **more)
    found = finding(monitor, "hit rate")
    assert found.verdict is Verdict.WARN
    assert expected in named_settings(found.advice)


@pytest.mark.parametrize(
    ("changes", "more", "expected"),
    [
        ({"kvcache__chunk_size": 16}, {}, "kvcache.chunk_size"),
        ({}, {"disk_loads": 3}, "kvcache.memory_mb"),
        ({}, {}, "kvcache.precision"),
    ],
)
def test_slow_block_loads_warn(changes, more, expected):
    monitor = Monitor(settings=settings(**changes))
    type_along(monitor, load_ms=3.5, **more)
    found = finding(monitor, "block load")
    assert found.verdict is Verdict.WARN
    assert expected in named_settings(found.advice)


def test_memory_swing_is_deviation_over_mean():
    monitor = Monitor(settings=DEFAULTS)
    for index in range(40):
        monitor.record(memory_mb=100 + (index % 2) * 100)
    found = finding(monitor, "memory swing")
    assert found.value == pytest.approx(50 / 150)
    assert named_settings(found.advice) == {"kvcache.live_documents"}
    monitor.record(evicted=3, eviction="guard")
    assert named_settings(finding(monitor, "memory swing").advice) == {
        "kvcache.memory_mb"
    }


def test_a_pool_that_fills_up_does_not_swing():
    monitor = Monitor(settings=DEFAULTS)
    for index in range(40):
        monitor.record(memory_mb=10 * index)
    found = finding(monitor, "memory swing")
    assert found.value > 0.1
    assert found.verdict is Verdict.OK


def test_late_first_tokens_warn_against_the_configured_budget():
    for budget, verdict in ((1000, Verdict.OK), (300, Verdict.WARN)):
        monitor = Monitor(settings=settings(completion__latency_budget_ms=budget))
        type_along(monitor, ttft_ms=500)
        found = finding(monitor, "first token")
        assert found.verdict is verdict
        assert bool(found.advice) == (verdict is Verdict.WARN)
        named_settings(found.advice)


def test_cancellations_and_acceptance_warn():
    monitor = Monitor(settings=DEFAULTS)
    type_along(monitor, 20)
    for _ in range(40):
        monitor.record(cancelled=1)
    assert "completion.debounce_ms" in named_settings(
        finding(monitor, "cancelled").advice
    )
    for _ in range(60):
        monitor.record(shown=1)
    monitor.record(accepted=1)
    found = finding(monitor, "accepted")
    assert found.verdict is Verdict.WARN
    assert "completion.min_confidence" in named_settings(found.advice)
    for _ in range(10):
        monitor.record(partially_accepted=1)
    assert finding(monitor, "accepted").verdict is Verdict.OK


def test_mostly_moved_context_warns():
    monitor = Monitor(settings=DEFAULTS)
    for _ in range(30):
        monitor.record(exact=100, moved=900, computed=2)
    assert "kvcache.max_drift" in named_settings(finding(monitor, "moved").advice)


def test_a_held_key_is_healthy_and_a_file_of_one_character_is_named():
    held = Monitor(settings=DEFAULTS)
    # A held key: every request computes a few tokens more, the run is short.
    for run in range(60):
        held.record(latency_ms=150, exact=1200 + run, computed=3, longest_run=run)
    assert held.advice() == ()
    filled = Monitor(settings=DEFAULTS)
    # 100,000 equal characters: the window slides over them at every keystroke.
    for _ in range(60):
        filled.record(
            latency_ms=2000,
            exact=10,
            computed=1200,
            longest_run=1100,
            reuse_stop="window",
        )
    named = named_settings(filled.advice())
    assert {"privacy.max_line_kb", "kvcache.max_length"} <= named


def test_every_rule_stays_silent_on_an_empty_history():
    assert len(Monitor().analyze()) == len(RULES)


def test_recording_is_quick_and_memory_is_bounded():
    monitor = Monitor(window=128)
    rng = random.Random(1)

    def burst(count):
        for index in range(count):
            monitor.record(
                kind=f"kind{index % 100}",
                latency_ms=rng.random(),
                exact=1000,
                computed=2,
                memory_mb=1.0,
                reuse_stop=f"reason{index}",
                evicted=1,
                eviction=f"why{index}",
                **{f"extra{index % 500}": index},
            )

    burst(5000)
    tracemalloc.start()
    began = time.process_time()
    burst(5000)
    per_record = (time.process_time() - began) / 5000
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert per_record < 1e-4
    assert grown < 200_000
    assert (
        len([n for n in monitor.snapshot() if "latency_ms_p50." in n]) <= MAX_NAMES + 1
    )


def test_only_the_window_counts():
    monitor = Monitor(window=50)
    type_along(monitor, 100, computed=1300)
    type_along(monitor, 50, computed=1)
    assert finding(monitor, "hit rate").verdict is Verdict.OK


def test_snapshot_has_rates_percentiles_and_reasons():
    monitor = Monitor()
    type_along(monitor, 30, reuse_stop="suffix", evicted=1, eviction="size")
    monitor.record(kind="jump", latency_ms=900)
    numbers = monitor.snapshot()
    assert numbers["requests"] == 31
    assert numbers["latency_ms_p50.type"] == 180
    assert numbers["latency_ms_p95.jump"] == 900
    assert numbers["reuse_stop.suffix"] == 30
    assert numbers["evictions.size"] == 30
    assert all(isinstance(value, int | float) for value in numbers.values())
    json.dumps(numbers)


def test_lengths_are_a_distribution():
    monitor = Monitor()
    type_along(monitor, 3, context=1000)
    type_along(monitor, 2, context=200)
    numbers = monitor.snapshot()
    assert {name: n for name, n in numbers.items() if name.startswith("lengths.")} == {
        "lengths.256": 2,
        "lengths.1024": 3,
    }


def test_records_from_many_threads_all_count():
    monitor = Monitor()
    threads = [
        threading.Thread(target=type_along, args=(monitor, 200)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert monitor.snapshot()["requests"] == 800


def test_log_writes_json_lines_and_turns_over(tmp_path):
    path = tmp_path / "metrics.jsonl"
    log = JsonLinesLog(path, limit=2000)
    monitor = Monitor(sink=log)
    type_along(monitor, 60)
    log.close()
    monitor.record(latency_ms=1)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(line["kind"] == "type" for line in lines)
    assert path.with_name("metrics.jsonl.old").stat().st_size < 3000
    assert path.stat().st_size < 3000


def test_prometheus_answers_on_loopback():
    monitor = Monitor()
    type_along(monitor, 30, reuse_stop="suffix")
    with_port = _free_port()
    stop = serve_prometheus(monitor.snapshot, with_port)
    try:
        page = urllib.request.urlopen(f"http://127.0.0.1:{with_port}/metrics")
        text = page.read().decode()
    finally:
        stop()
    page.close()
    assert "codekv_requests 30.0" in text
    assert 'codekv_latency_ms_p50_by{name="type"} 180.0' in text
    assert 'codekv_reuse_stop_by{name="suffix"} 30.0' in text


def _free_port():
    import socket

    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def test_status_file_is_written_when_something_changed_and_not_too_often(tmp_path):
    folder = status_dir(tmp_path)
    with StatusFile(folder) as file:
        assert file.write({"state": "ready"}, now=10.0)
        assert not file.write({"state": "working"}, now=10.5)
        assert not file.write({"state": "ready"}, now=12.0)
        assert file.write({"state": "working"}, now=12.1)
        assert read_statuses(folder)[os.getpid()]["state"] == "working"
        assert [path.name for path in folder.iterdir()] == [f"{os.getpid()}.json"]
    assert read_statuses(folder) == {}


def test_statuses_of_dead_servers_and_broken_files_are_passed_over(tmp_path):
    folder = status_dir(tmp_path)
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    StatusFile(folder, done.pid).write({"state": "ready"})
    (folder / f"{os.getpid()}.json").write_text("{")
    (folder / "notes.json").write_text("{}")
    assert read_statuses(folder) == {}
    assert not (folder / f"{done.pid}.json").exists()


def test_a_status_that_cannot_be_written_is_no_error(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with StatusFile(blocked / "status") as file:
        assert not file.write({"state": "ready"})


def test_top_shows_metrics_and_advice(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from codekv.commands.top import top

    monkeypatch.setenv("CODEKV_CACHE_DIR", str(tmp_path))
    empty = CliRunner().invoke(top, ["--once"])
    assert "no server is running" in empty.output
    monitor = Monitor(settings=settings(kvcache__reuse="exact"))
    type_along(monitor, computed=700, reuse_stop="edit")
    status = {
        "state": "ready",
        "model": "m",
        "metrics": monitor.snapshot(),
        "advice": monitor.advice(),
    }
    with StatusFile(status_dir(tmp_path)) as file:
        file.write(status)
        shown = CliRunner().invoke(top, ["--once"]).output
    assert "46.2%" in shown
    assert "edit 100" in shown
    assert "kvcache.reuse" in shown


def test_the_monitor_imports_no_torch():
    code = "import sys, codekv.monitor.output; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
