import hashlib
import io
import json
import zipfile
from dataclasses import dataclass

import pytest

from codekv.model.library.catalog import CatalogEntry
from codekv.model.library.download import Sources
from codekv.model.library.package_index import Indexes
from codekv.model.library.pieces import Wheel
from codekv.testing.models import write_tiny_gguf
from codekv.testing.site import Site


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A data folder of its own; nothing real is touched."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "share" / "codekv"


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory):
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_tiny_gguf(path)
    return path


@dataclass
class Published:
    """A tiny model on a hub and, in two wheels, on a package index."""

    site: Site
    entry: CatalogEntry
    hub_path: str
    wheel_paths: tuple[str, ...]
    gguf: bytes

    @property
    def hub_and_index(self) -> Sources:
        return Sources(self.site.url, self.only_index.indexes)

    @property
    def only_index(self) -> Sources:
        return Sources(None, Indexes((f"{self.site.url}/simple/",)))


def make_wheel(member: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("evil/__init__.py", "raise SystemExit('was imported')")
        archive.writestr(member, content)
    return buffer.getvalue()


@pytest.fixture
def published(tiny_gguf):
    gguf = tiny_gguf.read_bytes()
    half = len(gguf) // 2
    with Site() as site:
        wheels = []
        paths = []
        for number, piece in enumerate((gguf[:half], gguf[half:])):
            package, name = f"piece-{number}", f"piece_{number}-1.0-py3-none-any.whl"
            content = make_wheel("data/part.bin", piece)
            digest = hashlib.sha256(content).hexdigest()
            wheels.append(Wheel(package, name, len(content), digest, "data/part.bin"))
            paths.append(f"/files/{name}")
            site.files[f"/files/{name}"] = content
            page = f"/simple/{package}/"
            if number:
                link = f'<a href="../../files/{name}#sha256={digest}">{name}</a>'
                site.files[page] = f"<html>{link}</html>".encode()
                site.kinds[page] = "text/html"
            else:
                files = [{"url": f"{site.url}/files/{name}", "filename": name}]
                site.files[page] = json.dumps({"files": files}).encode()
                site.kinds[page] = "application/vnd.pypi.simple.v1+json"
        hub_path = "/org/tiny-GGUF/resolve/main/tiny.gguf"
        site.files[hub_path] = gguf
        entry = CatalogEntry(
            name="tiny",
            aliases=(),
            about="a tiny model",
            license="Apache-2.0",
            file_name="tiny.gguf",
            num_bytes=len(gguf),
            sha256=hashlib.sha256(gguf).hexdigest(),
            hub_repo="org/tiny-GGUF",
            wheels=tuple(wheels),
        )
        yield Published(site, entry, hub_path, tuple(paths), gguf)
