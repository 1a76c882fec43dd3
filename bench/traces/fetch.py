"""Fetches the real packages that benchmarks edit, pinned by hash.

Each registry's own client downloads the archive, which is checked and unpacked into
the cache folder. Nothing of it is installed or imported here.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import TypeAdapter

from codekv.config import cache_dir
from codekv.errors import DownloadError
from codekv.processes import module_command, safe_environment

if TYPE_CHECKING:
    from collections.abc import Sequence

Kind = Literal["sdist", "wheel", "npm", "debian"]
Use = Literal["tune", "test"]

PINS = Path(__file__).parents[1] / "trace-sources.toml"
LANGUAGE_PINS = Path(__file__).parents[1] / "language-sources.toml"

TIMEOUT_S = 300
"""The largest archive has 4 MB; a slow line takes a minute for it."""


@dataclass(frozen=True, slots=True)
class PinnedPackage:
    """One pinned archive.

    Attributes:
        languages: Ids of the files in it that count.
        use: Whether rules were made by looking at it.
    """

    name: str
    version: str
    sha256: str
    licence: str
    kind: Kind = "sdist"
    languages: tuple[str, ...] = ("python",)
    use: Use = "tune"


def pinned(path: Path = PINS) -> tuple[PinnedPackage, ...]:
    """Read a list of pinned sources."""
    table = tomllib.loads(path.read_text("utf-8"))
    return TypeAdapter(tuple[PinnedPackage, ...]).validate_python(table["source"])


def sources_dir() -> Path:
    """Where unpacked sources lie; may be deleted at any time."""
    return cache_dir() / "bench" / "sources"


def languages_dir() -> Path:
    """Where the sources of the evaluations by language lie."""
    return cache_dir() / "bench" / "languages"


def fetch(source: PinnedPackage, folder: Path | None = None) -> Path:
    """Make one source's files available; does nothing if they are there.

    Returns:
        The folder of its files.

    Raises:
        DownloadError: It did not arrive, or its hash is not the pinned one.
    """
    name = source.name.replace("/", "_")
    target = (folder or sources_dir()) / f"{name}-{source.version}"
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        archive = _download(source, Path(temporary))
        unpack(archive, source, target)
    return target


def fetch_all() -> tuple[Path, ...]:
    """Fetch every pinned source of the traces."""
    return tuple(fetch(source) for source in pinned())


def fetch_language(language: str, use: Use) -> tuple[Path, ...]:
    """Fetch the sources on which one language is judged or tuned.

    Raises:
        DownloadError: There is none for this language, or it did not arrive.
    """
    every = pinned(LANGUAGE_PINS)
    chosen = [s for s in every if language in s.languages and s.use == use]
    own = [s for s in pinned() if language in s.languages and s.use == use]
    if not chosen and not own:
        known = ", ".join(sorted({name for s in every for name in s.languages}))
        raise DownloadError(f"no {use} sources for {language!r}; known: {known}")
    folders = [fetch(source, languages_dir()) for source in chosen]
    return (*folders, *(fetch(source) for source in own))


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
        _extract(archive, source.kind, partial)
        # A source archive has all its files in one folder.
        inner = [path for path in partial.iterdir() if path.is_dir()]
        is_whole = source.kind in ("wheel", "debian")
        (partial if is_whole else inner[0]).replace(target)
    except (tarfile.TarError, zipfile.BadZipFile, OSError, IndexError) as error:
        raise DownloadError(f"{archive.name}: cannot be unpacked ({error})") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _extract(archive: Path, kind: Kind, target: Path) -> None:
    """Unpack without following links or names that lead out of `target`."""
    if kind == "wheel":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(target)
    elif kind == "debian":
        # `--fsys-tarfile` runs none of the package's scripts.
        words = ["dpkg-deb", "--fsys-tarfile", str(archive)]
        with tempfile.TemporaryFile() as plain:
            subprocess.run(words, stdout=plain, timeout=TIMEOUT_S, check=True)
            plain.seek(0)
            with tarfile.open(fileobj=plain) as tar:
                tar.extractall(target, members=_files(tar), filter="data")
    else:
        with tarfile.open(archive) as tar:
            tar.extractall(target, filter="data")


def _files(tar: tarfile.TarFile) -> list[tarfile.TarInfo]:
    """Plain files only: a Debian package links to places outside itself."""
    return [member for member in tar.getmembers() if member.isfile()]


def _command(source: PinnedPackage, folder: Path) -> tuple[Sequence[str], str]:
    """The client's command line, and the pattern of the file that it leaves."""
    flags = ("--no-deps", "--quiet", "--dest", str(folder))
    wanted = f"{source.name}=={source.version}"
    if source.kind == "sdist":
        words = (*flags, "--no-binary", ":all:", wanted)
        return module_command("pip", "download", *words), "*.tar.gz"
    if source.kind == "wheel":
        words = (*flags, "--only-binary", ":all:", wanted)
        return module_command("pip", "download", *words), "*.whl"
    if source.kind == "npm":
        package = f"{source.name}@{source.version}"
        return ["npm", "pack", "--ignore-scripts", "--silent", package], "*.tgz"
    return ["apt-get", "download", f"{source.name}={source.version}"], "*.deb"


def _download(source: PinnedPackage, folder: Path) -> Path:
    wanted = f"{source.name} {source.version}"
    command, pattern = _command(source, folder)
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            cwd=folder,
            env=safe_environment(),
        )
    except FileNotFoundError as error:
        raise DownloadError(
            f"{wanted}: needs {command[0]}, which is missing"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise DownloadError(f"{wanted}: nothing came within {TIMEOUT_S} s") from error
    found = sorted(folder.glob(pattern))
    if done.returncode != 0 or not found:
        lines = [line for line in done.stderr.splitlines() if "ERR" in line.upper()]
        why = lines[-1] if lines else f"{command[0]} gave no reason"
        raise DownloadError(f"{wanted}: not fetched ({why}); check the network")
    return found[0]
