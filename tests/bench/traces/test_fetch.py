import hashlib
import io
import tarfile

import pytest

from bench.traces.fetch import PinnedPackage, pinned, unpack
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
