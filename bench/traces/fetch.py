"""Fetches the real packages that the full benchmark edits, pinned by hash.

Downloads source distributions with pip and unpacks them into the cache folder.
Nothing of them is installed or imported here.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from codekv.config import cache_dir
from codekv.errors import DownloadError
from codekv.processes import module_command, safe_environment

PINS = Path(__file__).parents[1] / "trace-sources.toml"
TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class PinnedPackage:
    """One pinned source distribution."""

    name: str
    version: str
    sha256: str
    licence: str


def pinned(path: Path = PINS) -> tuple[PinnedPackage, ...]:
    """Read the list of pinned sources."""
    table = tomllib.loads(path.read_text("utf-8"))
    return tuple(
        PinnedPackage(row["name"], row["version"], row["sha256"], row["licence"])
        for row in table["source"]
    )


def sources_dir() -> Path:
    """Where unpacked sources lie; may be deleted at any time."""
    return cache_dir() / "bench" / "sources"


def fetch(source: PinnedPackage, folder: Path | None = None) -> Path:
    """Make one source's files available; does nothing if they are there.

    Returns:
        The folder of its files.

    Raises:
        DownloadError: It did not arrive, or its hash is not the pinned one.
    """
    target = (folder or sources_dir()) / f"{source.name}-{source.version}"
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        archive = _download(source, Path(name))
        unpack(archive, source, target)
    return target


def unpack(archive: Path, source: PinnedPackage, target: Path) -> None:
    """Check an archive's hash and unpack it; `target` appears whole or not at all.

    Raises:
        DownloadError: The hash is not the pinned one, or the archive is hostile.
    """
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != source.sha256:
        raise DownloadError(
            f"{archive.name}: sha256 is {found}, pinned is {source.sha256}; not used"
        )
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(partial, filter="data")
        inner = [path for path in partial.iterdir() if path.is_dir()]
        inner[0].replace(target)
    except (tarfile.TarError, OSError, IndexError) as error:
        raise DownloadError(f"{archive.name}: cannot be unpacked ({error})") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def fetch_all() -> tuple[Path, ...]:
    """Fetch every pinned source."""
    return tuple(fetch(source) for source in pinned())


def _download(source: PinnedPackage, folder: Path) -> Path:
    wanted = f"{source.name}=={source.version}"
    flags = ["--no-binary", ":all:", "--no-deps", "--quiet", "--dest", str(folder)]
    try:
        done = subprocess.run(
            module_command("pip", "download", *flags, wanted),
            env=safe_environment(),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DownloadError(f"{wanted}: nothing came within {TIMEOUT_S} s") from error
    found = sorted(folder.glob("*.tar.gz"))
    if done.returncode != 0 or not found:
        lines = [line for line in done.stderr.splitlines() if "ERROR" in line]
        why = lines[-1] if lines else "pip gave no reason"
        raise DownloadError(f"{wanted}: not fetched ({why}); check the network")
    return found[0]
