import hashlib
import io
import tarfile
import zipfile

import pytest

from bench.traces import fetch
from bench.traces.fetch import LANGUAGE_PINS, PinnedPackage, pinned, unpack
from codekv.errors import DownloadError


def archive(tmp_path, members):
    path = tmp_path / "thing-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path, hashlib.sha256(path.read_bytes()).hexdigest()


def test_every_pin_has_a_hash_and_a_permissive_licence():
    pins = pinned()
    assert len(pins) == 6
    for source in pins:
        assert len(bytes.fromhex(source.sha256)) == 32
        assert source.licence in {"MIT", "BSD-3-Clause", "Apache-2.0"}


def test_an_archive_with_the_pinned_hash_is_unpacked(tmp_path):
    path, digest = archive(tmp_path, {"thing-1.0/a.py": b"x = 1\n"})
    target = tmp_path / "out" / "thing-1.0"
    target.parent.mkdir()
    unpack(path, PinnedPackage("thing", "1.0", digest, "MIT"), target)
    assert (target / "a.py").read_bytes() == b"x = 1\n"
    assert [p.name for p in target.parent.iterdir()] == ["thing-1.0"]


def test_another_hash_is_refused_and_leaves_nothing(tmp_path):
    path, _ = archive(tmp_path, {"thing-1.0/a.py": b"x = 1\n"})
    target = tmp_path / "thing-1.0"
    with pytest.raises(DownloadError, match="sha256"):
        unpack(path, PinnedPackage("thing", "1.0", "0" * 64, "MIT"), target)
    assert not target.exists()


@pytest.mark.parametrize("name", ["../outside.py", "/absolute.py"])
def test_a_hostile_archive_writes_nothing_outside(tmp_path, name):
    path, digest = archive(tmp_path, {name: b"x"})
    target = tmp_path / "in" / "thing-1.0"
    target.parent.mkdir()
    with pytest.raises(DownloadError, match="cannot be unpacked"):
        unpack(path, PinnedPackage("thing", "1.0", digest, "MIT"), target)
    assert not (tmp_path / "outside.py").exists()
    assert list(target.parent.iterdir()) == []


def test_a_file_that_is_no_archive_is_refused(tmp_path):
    path = tmp_path / "x.tar.gz"
    path.write_bytes(b"not gzip")
    digest = hashlib.sha256(b"not gzip").hexdigest()
    with pytest.raises(DownloadError, match="cannot be unpacked"):
        unpack(path, PinnedPackage("x", "1", digest, "MIT"), tmp_path / "x-1")


def test_tuning_and_test_sources_are_different_repositories():
    pins = pinned(LANGUAGE_PINS)
    names = {use: {s.name for s in pins if s.use == use} for use in ("tune", "test")}
    assert not names["tune"] & names["test"]
    assert not names["test"] & {source.name for source in pinned()}
    assert len({source.sha256 for source in pins}) == len(pins)
    for source in pins:
        assert len(bytes.fromhex(source.sha256)) == 32
        assert source.licence
        assert source.languages


@pytest.mark.parametrize(
    "language",
    ["python", "typescript", "typescriptreact", "javascript", "go", "rust"]
    + ["java", "c", "cpp", "ruby", "php", "kotlin", "lua"],
)
def test_every_language_has_sources_to_tune_on_and_others_to_test_on(
    language, monkeypatch
):
    asked = []
    monkeypatch.setattr(fetch, "fetch", lambda source, *_: asked.append(source))
    fetch.fetch_language(language, "tune")
    fetch.fetch_language(language, "test")
    assert {source.use for source in asked} == {"tune", "test"}
    assert all(language in source.languages for source in asked)


def test_a_language_without_sources_is_one_clear_line():
    with pytest.raises(DownloadError, match="no test sources for 'cobol'"):
        fetch.fetch_language("cobol", "test")


def test_a_wheel_is_unpacked_as_a_zip_file(tmp_path):
    path = tmp_path / "thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("thing/a.py", "x = 1\n")
        wheel.writestr("../outside.py", "x = 2\n")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "in").mkdir()
    target = tmp_path / "in" / "thing-1.0"
    unpack(path, PinnedPackage("thing", "1.0", digest, "MIT", "wheel"), target)
    assert (target / "thing" / "a.py").read_text() == "x = 1\n"
    assert not (tmp_path / "outside.py").exists()
