"""Real processes, real signals, a real full disk."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from codekv.cache.events import Event
from codekv.storage.blockfile import parse
from codekv.testing.blocks import is_same, make_store, planes_for, put_all
from codekv.testing.hammer import NUM_TEXTS

FOREVER = 10**9


def start(folder: Path, seed: int, steps: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "codekv.testing.hammer"]
    return subprocess.Popen(
        [*command, str(folder), str(seed), str(steps)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def wait_until_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def assert_folder_is_sound(folder: Path) -> None:
    """Every file is whole, and every block has the values of its text."""
    files = list(folder.rglob("*.kv"))
    assert files
    for path in files:
        parse(memoryview(path.read_bytes()))
    store = make_store(folder)
    refs = [store.ref(None, [text] * (10 + text)) for text in range(NUM_TEXTS)]
    hits = [hit for hit in store.match(refs) if hit]
    assert len(hits) == len(files)
    assert all(is_same(store.load(hit), planes_for(hit.ref)) for hit in hits)
    store.check()


def test_killed_at_any_moment_nothing_is_broken(tmp_path):
    for seed in range(3):
        process = start(tmp_path, seed, FOREVER)
        wait_until_ready(process)
        # A different moment each time: after so many files have appeared.
        while len(list(tmp_path.rglob("*.kv"))) < 3 + 5 * seed:
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL

        assert_folder_is_sound(tmp_path)


def test_two_processes_in_one_folder_never_read_a_wrong_block(tmp_path):
    processes = [start(tmp_path, seed, 80) for seed in (1, 2)]
    reports = []
    for process in processes:
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        reports.append(json.loads(output.splitlines()[-1]))

    assert [report["wrong"] for report in reports] == [0, 0]
    for event in (Event.CORRUPT, Event.MISMATCHED, Event.WRITE_FAILED):
        assert [report[event] for report in reports] == [0, 0]
    assert all(report[Event.WRITTEN] for report in reports)
    assert list(tmp_path.rglob(".tmp-*")) == []
    assert_folder_is_sound(tmp_path)


def test_half_written_temporary_file_is_never_taken_for_a_block(tmp_path):
    store = make_store(tmp_path)
    refs = [store.ref(None, [1, 2])]
    put_all(store, refs)
    store.flush(10_000)
    path = next(tmp_path.rglob("*.kv"))
    whole = path.read_bytes()
    path.unlink()
    # What a kill between write and rename leaves, at every length.
    for size in range(0, len(whole) + 1, 97):
        (path.parent / ".tmp-1-00").write_bytes(whole[:size])
        assert make_store(tmp_path).match(refs) == [None]


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 KiB, where the system lets us make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        done = None
    if done is None or done.returncode:
        pytest.skip("mounting needs rights that this user lacks")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_full_disk_keeps_what_fits_and_serves_the_rest(small_disk):
    store = make_store(small_disk)
    refs = [store.ref(None, [i] * 60) for i in range(20)]
    put_all(store, refs)

    left = store.flush(60_000)

    assert 0 < left < 20
    assert store.counters[Event.WRITE_FAILED] == 1
    assert list(small_disk.rglob(".tmp-*")) == []
    assert all(
        is_same(store.load(hit), planes_for(hit.ref))
        for hit in store.match(refs)
        if hit
    )
    again = make_store(small_disk)
    hits = [hit for hit in again.match(refs) if hit]
    assert len(hits) == 20 - left
    assert all(is_same(again.load(hit), planes_for(hit.ref)) for hit in hits)
    again.check()
