import errno
import os
import shutil
from pathlib import Path

import pytest

from codekv.cache.events import Event
from codekv.cache.key import chain_of
from codekv.storage import administration
from codekv.storage import folder as files
from codekv.storage.blockstore import BlockStore
from codekv.testing.blocks import (
    FakeClock,
    is_same,
    make_store,
    planes_for,
    put_all,
)


def refs_of(store: BlockStore, *blocks: list[int]):
    return chain_of(store.fingerprint, blocks)


def stored(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.kv"))


def loads(store: BlockStore, refs) -> list[bool]:
    return [
        hit is not None and is_same(store.load(hit), planes_for(ref))
        for ref, hit in zip(refs, store.match(refs), strict=True)
    ]


def fill(folder: Path, *blocks: list[int], **options):
    store = make_store(folder, **options)
    refs = refs_of(store, *blocks)
    put_all(store, refs)
    assert store.flush(10_000) == 0
    store.check()
    return store, refs


def test_blocks_come_back_after_a_restart(tmp_path):
    _, refs = fill(tmp_path, [1, 2], [3])

    again = make_store(tmp_path)

    assert [hit and hit.tier for hit in again.match(refs)] == ["disk", "disk"]
    assert loads(again, refs) == [True, True]
    assert [hit and hit.tier for hit in again.match(refs)] == ["ram", "ram"]
    again.check()


def test_blocks_are_movable_after_a_restart(tmp_path):
    _, refs = fill(tmp_path, [1], [5, 6])
    again = make_store(tmp_path)
    moved = refs_of(again, [2], [5, 6])[1]

    hit = again.match([moved])[0]

    assert hit is not None
    assert (hit.kind, hit.source) == ("content", refs[1].chain)
    assert is_same(again.load(hit), planes_for(refs[1]))
    again.check()


def test_nothing_is_written_before_the_flush(tmp_path):
    store = make_store(tmp_path)
    put_all(store, refs_of(store, [1]))

    assert stored(tmp_path) == []
    assert store.stats().waiting_blocks == 1


def test_flush_stops_when_its_time_is_over(tmp_path):
    store = make_store(tmp_path)
    put_all(store, refs_of(store, [1], [2], [3]))

    assert store.flush(0) == 2
    assert len(stored(tmp_path)) == 1


def test_known_blocks_are_not_written_again(tmp_path):
    _, refs = fill(tmp_path, [1])
    again = make_store(tmp_path)
    put_all(again, refs)

    assert again.flush(1000) == 0
    assert again.counters[Event.WRITTEN] == 0


def test_only_the_newest_variant_of_a_content_is_written(tmp_path):
    store = make_store(tmp_path)
    old, new = refs_of(store, [1], [5]), refs_of(store, [2], [5])
    put_all(store, [*old, *new])
    store.flush(1000)

    again = make_store(tmp_path)

    kinds = [hit and hit.kind for hit in again.match([*old, *new])]
    assert kinds == ["chain", "content", "chain", "chain"]


def test_blocks_that_must_not_persist_never_reach_the_disk(tmp_path):
    store = make_store(tmp_path)
    put_all(store, refs_of(store, [1]), persist=False)
    store.flush(1000)

    assert stored(tmp_path) == []


def test_block_that_must_no_longer_persist_is_removed(tmp_path):
    store, refs = fill(tmp_path, [1], [2])

    put_all(store, refs[:1], persist=False)

    assert len(stored(tmp_path)) == 1
    assert loads(store, refs) == [True, True]
    store.check()


def test_forgotten_block_is_nowhere(tmp_path):
    store, refs = fill(tmp_path, [1], [2])
    store.forget(refs[:1])

    assert len(stored(tmp_path)) == 1
    assert store.match(refs)[0] is None
    store.check()


def test_clear_removes_files(tmp_path):
    store, refs = fill(tmp_path, [1], [2])
    store.clear()

    assert stored(tmp_path) == []
    assert store.match(refs) == [None, None]
    store.check()


def test_size_limit_is_kept_by_worth(tmp_path):
    clock = FakeClock()
    store, refs = fill(tmp_path, [1] * 8, clock=clock)
    size = store.stats().disk_bytes
    shutil.rmtree(tmp_path)
    store = make_store(tmp_path, disk_bytes=4 * size, clock=clock)
    refs = refs_of(store, *[[i] * 8 for i in range(8)])
    for ref in refs:
        put_all(store, [ref])
        store.flush(1000)
        clock.tick(86400)
        assert store.stats().disk_bytes <= 4 * size
        store.check()

    total = sum(path.stat().st_size for path in stored(tmp_path))
    assert total == store.stats().disk_bytes
    assert loads(make_store(tmp_path, clock=clock), refs)[-3:] == [True] * 3


def test_smaller_limit_at_the_next_start_is_kept(tmp_path):
    store, refs = fill(tmp_path, *[[i] * 8 for i in range(8)])
    limit = store.stats().disk_bytes // 2

    again = make_store(tmp_path, disk_bytes=limit)

    assert sum(path.stat().st_size for path in stored(tmp_path)) <= limit
    assert 0 < again.stats().disk_bytes <= limit
    again.check()


def test_block_larger_than_the_whole_limit_is_not_kept(tmp_path):
    store, _ = fill(tmp_path, [1] * 100, disk_bytes=1000)

    assert stored(tmp_path) == []
    assert store.stats().disk_blocks == 0


def test_use_is_remembered_across_restarts(tmp_path):
    clock = FakeClock()
    store, refs = fill(tmp_path, [1], [2], clock=clock)
    clock.tick(1000)
    again = make_store(tmp_path, clock=clock)
    assert loads(again, refs[:1]) == [True]
    again.flush(1000)

    times = {path.name[:32]: path.stat().st_mtime for path in stored(tmp_path)}

    assert times[refs[0].chain.hex()] == clock.now
    assert times[refs[1].chain.hex()] < clock.now


def test_files_of_other_models_go_first_when_room_is_short(tmp_path):
    store, _ = fill(tmp_path, *[[i] * 8 for i in range(4)], fingerprint="old")
    size = store.stats().disk_bytes

    fill(tmp_path, [9] * 8, fingerprint="new", disk_bytes=size)

    assert sum(path.stat().st_size for path in stored(tmp_path)) <= size
    assert len(stored(tmp_path)) == 4


def test_other_models_never_share_blocks(tmp_path):
    _, refs = fill(tmp_path, [1], fingerprint="one")
    other = make_store(tmp_path, fingerprint="other")

    assert other.match(refs) == [None]
    assert other.match(refs_of(other, [1])) == [None]


def test_folders_and_files_are_the_users_alone(tmp_path):
    store, _ = fill(tmp_path / "blocks", [1])
    path = stored(tmp_path)[0]

    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.parent.name == files.folder_name(store.fingerprint)


def test_full_disk_is_counted_and_tried_again_later(tmp_path, monkeypatch):
    clock = FakeClock()
    store = make_store(tmp_path, clock=clock)
    refs = refs_of(store, [1], [2])
    put_all(store, refs)

    def full(*_args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        assert store.flush(1000) == 2
        assert store.flush(1000) == 2
    assert store.counters[Event.WRITE_FAILED] == 1
    assert list(tmp_path.rglob(".tmp-*")) == []
    assert loads(store, refs) == [True, True]

    clock.tick(61)
    assert store.flush(1000) == 0
    assert loads(make_store(tmp_path), refs) == [True, True]


def test_folder_that_cannot_be_made_is_counted(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    store = make_store(tmp_path / "file")
    refs = refs_of(store, [1])
    put_all(store, refs)

    assert store.flush(1000) == 1
    assert store.counters[Event.WRITE_FAILED] == 1
    assert loads(store, refs) == [True]


def test_read_only_folder_still_serves_what_it_has(tmp_path, monkeypatch):
    _, refs = fill(tmp_path, [1])

    def read_only(*_args, **_kwargs):
        raise OSError(errno.EROFS, "Read-only file system")

    for name in ("replace", "unlink", "mkdir"):
        monkeypatch.setattr(Path, name, read_only)
    monkeypatch.setattr(os, "utime", read_only)
    store = make_store(tmp_path)
    more = refs_of(store, [1], [2])
    put_all(store, more)

    assert loads(store, more) == [True, True]
    assert store.flush(1000) == 1
    assert store.counters[Event.WRITE_FAILED] == 1
    store.clear()
    store.check()


def test_folder_removed_under_a_running_store_is_made_again(tmp_path):
    clock = FakeClock()
    store, refs = fill(tmp_path / "blocks", [1], clock=clock)
    shutil.rmtree(tmp_path / "blocks")
    put_all(store, refs_of(store, [2]))

    assert store.flush(1000) == 0
    assert len(stored(tmp_path)) == 1
    clock.tick(10)
    store.flush(1000)
    assert store.stats().disk_blocks == 1
    store.check()


def test_vanished_file_is_a_miss(tmp_path):
    fill(tmp_path, [1])
    store = make_store(tmp_path)
    ref = refs_of(store, [1])[0]
    stored(tmp_path)[0].unlink()

    assert loads(store, [ref]) == [False]
    assert store.counters[Event.VANISHED] == 1
    assert store.match([ref]) == [None]
    store.check()


def test_file_that_the_system_will_not_read_is_left_alone(tmp_path, monkeypatch):
    fill(tmp_path, [1])
    store = make_store(tmp_path)
    ref = refs_of(store, [1])[0]

    def broken(*_args, **_kwargs):
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", broken)
        assert loads(store, [ref]) == [False]
    assert store.counters[Event.READ_FAILED] == 1
    assert len(stored(tmp_path)) == 1
    assert loads(make_store(tmp_path), [ref]) == [True]


def test_torn_file_is_dropped_and_nothing_else_is_lost(tmp_path):
    _, refs = fill(tmp_path, [1], [2], [3])
    victim = next(p for p in stored(tmp_path) if p.name.startswith(refs[1].chain.hex()))
    os.truncate(victim, victim.stat().st_size // 2)
    store = make_store(tmp_path)

    assert loads(store, refs) == [True, False, True]
    assert store.counters[Event.CORRUPT] == 1
    assert not victim.exists()
    store.check()


def test_sound_file_under_another_blocks_name_is_dropped(tmp_path):
    _, refs = fill(tmp_path, [1], [2])
    one, other = (
        next(p for p in stored(tmp_path) if p.name.startswith(ref.chain.hex()))
        for ref in refs
    )
    shutil.copy(one, other)
    store = make_store(tmp_path)

    assert loads(store, refs) == [True, False]
    assert store.counters[Event.MISMATCHED] == 1
    assert not other.exists()


def test_file_of_another_model_in_this_models_folder_is_dropped(tmp_path):
    theirs, _ = fill(tmp_path, [1], fingerprint="theirs")
    mine, refs = fill(tmp_path, [1], fingerprint="mine")
    paths = {path.parent.name: path for path in stored(tmp_path)}
    shutil.copy(
        paths[files.folder_name(theirs.fingerprint)],
        paths[files.folder_name(mine.fingerprint)],
    )
    again = make_store(tmp_path, fingerprint="mine")

    assert loads(again, refs) == [False]
    assert again.counters[Event.MISMATCHED] == 1


def test_name_that_lies_about_its_content_serves_nothing(tmp_path):
    store, refs = fill(tmp_path, [1], [2])
    path = next(p for p in stored(tmp_path) if p.name.startswith(refs[0].chain.hex()))
    path.rename(
        path.with_name(path.name.replace(refs[0].content.hex(), refs[1].content.hex()))
    )
    again = make_store(tmp_path)
    other = refs_of(again, [7], [2])[1]

    loaded = [again.load(hit) for hit in again.match([other]) if hit]

    assert not any(is_same(planes, planes_for(refs[0])) for planes in loaded)


def test_other_names_are_left_alone(tmp_path):
    store, _ = fill(tmp_path, [1])
    folder = stored(tmp_path)[0].parent
    (folder / "notes.txt").write_text("mine")
    (folder / ("0" * 32 + ".kv")).write_text("mine")

    again = make_store(tmp_path)
    again.clear()

    assert sorted(path.name for path in folder.iterdir()) == [
        "0" * 32 + ".kv",
        "notes.txt",
    ]


def test_stale_temporary_files_are_removed_and_fresh_ones_left(tmp_path):
    clock = FakeClock()
    fill(tmp_path, [1], clock=clock)
    folder = stored(tmp_path)[0].parent
    for name, age in ((".tmp-1-old", 3601), (".tmp-2-new", 60)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (clock.now - age, clock.now - age))

    make_store(tmp_path, clock=clock)

    assert [path.name for path in folder.glob(".tmp-*")] == [".tmp-2-new"]


def test_two_stores_see_each_others_blocks_after_a_while(tmp_path):
    clock = FakeClock()
    one, other = (make_store(tmp_path, clock=clock) for _ in range(2))
    refs = refs_of(one, [1], [2])
    put_all(one, refs)
    one.flush(1000)
    clock.tick(6)
    other.flush(1000)

    assert loads(other, refs) == [True, True]
    other.check()


def test_two_stores_that_write_the_same_block_keep_one_file(tmp_path):
    clock = FakeClock()
    one, other = (make_store(tmp_path, clock=clock) for _ in range(2))
    ref = refs_of(one, [1])[0]
    put_all(one, [ref])
    one.flush(1000)
    written = stored(tmp_path)[0]
    slower = written.with_name(written.name.replace("-10.kv", "-99.kv"))
    shutil.copy(written, slower)
    put_all(other, [ref])

    for _ in range(2):
        clock.tick(6)
        for store in (one, other):
            store.flush(1000)
            store.check()

    assert stored(tmp_path) == [min(written, slower)]
    assert loads(make_store(tmp_path), [ref]) == [True]


def test_verify_reads_everything_and_drops_what_is_broken(tmp_path):
    store, refs = fill(tmp_path, [1], [2], [3])
    path = stored(tmp_path)[0]
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")

    first, second = administration.verify(tmp_path), administration.verify(tmp_path)
    assert (first.num_good, len(first.broken)) == (2, 1)
    assert (second.num_good, len(second.broken)) == (2, 0)


@pytest.mark.parametrize(
    "name",
    [
        "0" * 32 + "-" + "1" * 32 + "-256-10.kv",
        "f" * 32 + "-" + "e" * 32 + "-1-0.kv",
    ],
)
def test_names_are_read_as_they_are_written(name):
    parsed = files.BlockName.parse(name)

    assert parsed is not None
    assert parsed.filename == name


@pytest.mark.parametrize(
    "name",
    [
        "x.kv",
        "0" * 32 + "-" + "1" * 32 + "-256-10.kv\n",
        "0" * 32 + "-" + "1" * 32 + "-²56-10.kv",
        "0" * 32 + "-" + "1" * 32 + "-256-10.kv.tmp",
        "A" * 32 + "-" + "1" * 32 + "-256-10.kv",
    ],
)
def test_other_names_are_not_blocks(name):
    assert files.BlockName.parse(name) is None


def test_idle_flushes_do_not_list_other_models_again_and_again(tmp_path, monkeypatch):
    clock = FakeClock()
    fill(tmp_path, [1], fingerprint="old", clock=clock)
    store, _ = fill(tmp_path, [1], fingerprint="new", clock=clock)
    listed = []
    monkeypatch.setattr(files, "scan", lambda folder: listed.append(folder) or [])

    for _ in range(10):
        store.flush(1000)
        clock.tick(7)

    assert len(listed) == 1
