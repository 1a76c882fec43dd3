"""Fetch one file over HTTP: resumable, verified, never half there under its name.

Bytes go to `NAME.part`; a later run continues it; the name itself appears only after
the hash is right.
"""

from __future__ import annotations

import base64
import http.client
import ssl
import threading
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Protocol

from codekv.errors import DownloadError
from codekv.model.library.store import disk_errors, sha256_of

if TYPE_CHECKING:
    from pathlib import Path

# Bytes between two reports of progress: a few a second on a slow line.
_CHUNK = 1 << 18
# A line that gives nothing for so long is better asked anew.
_TIMEOUT_S = 20.0
# Tries in a row that bring nothing; any byte that arrives starts the count anew.
_ATTEMPTS = 4

NETWORK_ERRORS = (OSError, http.client.HTTPException, ValueError)
"""What a failing connection raises; a full disk is told apart by `disk_errors`."""


class DownloadProgress(Protocol):
    """Who wants to know how far a pull is."""

    def start(self, label: str, total: int, done: int) -> None:
        """A file begins, `done` of its `total` bytes being here already."""

    def advance(self, num_bytes: int) -> None:
        """Bytes of the current file arrived; negative if they have to come again."""

    def say(self, line: str) -> None:
        """One line for the user."""


class Quiet:
    """A `DownloadProgress` that tells nobody."""

    def start(self, label: str, total: int, done: int) -> None:
        """Ignore it."""

    def advance(self, num_bytes: int) -> None:
        """Ignore it."""

    def say(self, line: str) -> None:
        """Ignore it."""


@dataclass(frozen=True, slots=True)
class FetchTarget:
    """A file that is wanted: where it goes and what it must be."""

    path: Path
    num_bytes: int
    sha256: str

    @property
    def part(self) -> Path:
        """Where its bytes gather."""
        return self.path.with_name(self.path.name + ".part")

    def is_here(self) -> bool:
        """Whether the whole file is here; a wrong one is deleted."""
        if not self.path.is_file():
            return False
        same_size = self.path.stat().st_size == self.num_bytes
        if same_size and sha256_of(self.path) == self.sha256:
            return True
        self.path.unlink()
        return False

    def accept(self, digest: str) -> None:
        """Give the gathered bytes their name if they are the right ones.

        Raises:
            DownloadError: They are not; they are deleted.
        """
        if self.part.stat().st_size != self.num_bytes or digest != self.sha256:
            self.part.unlink()
            line = f"{self.path.name} does not match its pinned SHA-256; it was deleted"
            raise DownloadError(f"{line}, run the command again")
        self.part.replace(self.path)


def fetch(
    url: str, target: FetchTarget, progress: DownloadProgress, cert: str | None = None
) -> None:
    """Bring `target` here from `url`, continuing what an earlier run left.

    Args:
        url: http, https or file.
        target: The file; nothing happens if it is here already.
        progress: Told about bytes.
        cert: Certificates to trust besides the system's.

    Raises:
        DownloadError: The source failed or sent something else.
        StorageError: The disk is full or cannot be written.
    """
    if target.is_here():
        return
    done = target.part.stat().st_size if target.part.is_file() else 0
    progress.start(target.path.name, target.num_bytes, min(done, target.num_bytes))
    _gather(url, target, progress, cert)
    if done and sha256_of(target.part) != target.sha256:
        # What an earlier run left may be at fault: once more from the start.
        progress.advance(-target.part.stat().st_size)
        target.part.unlink()
        _gather(url, target, progress, cert)
    target.accept(sha256_of(target.part))


def _gather(
    url: str, target: FetchTarget, progress: DownloadProgress, cert: str | None
) -> None:
    """Connect again as long as each connection brings something."""
    fruitless = 0
    reason = "it ended early"
    while fruitless < _ATTEMPTS:
        before = target.part.stat().st_size if target.part.is_file() else 0
        try:
            if _continue(url, target, progress, cert):
                return
        except urllib.error.HTTPError as error:
            reason = f"it answered {error.code}"
            error.close()
            if error.code < 500:
                break
        except DownloadError:
            raise
        except NETWORK_ERRORS as error:
            reason = " ".join(str(error).split()) or type(error).__name__
        here = target.part.stat().st_size if target.part.is_file() else 0
        fruitless = 0 if here > before else fruitless + 1
    host = urllib.parse.urlsplit(url).hostname or url
    reason += through_proxy(url)
    line = f"{host} did not deliver {target.path.name} ({reason})"
    raise DownloadError(f"{line}; run the command again to continue")


def open_url(
    url: str, headers: dict[str, str], cert: str | None, timeout: float = _TIMEOUT_S
) -> Any:
    """Open a URL, with the credentials it may carry; the answer is a context."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https", "file"):
        raise DownloadError(f"{url} is not a web address")
    if parts.username:
        pair = f"{parts.username}:{parts.password or ''}"
        secret = base64.b64encode(urllib.parse.unquote(pair).encode()).decode()
        headers = headers | {"Authorization": f"Basic {secret}"}
        host = parts.netloc.rpartition("@")[2]
        url = urllib.parse.urlunsplit(parts._replace(netloc=host))
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - checked
    context = ssl.create_default_context()
    if cert:
        context.load_verify_locations(cafile=cert)
    return urllib.request.urlopen(request, timeout=timeout, context=context)  # noqa: S310


def through_proxy(url: str) -> str:
    """Name the proxy that a request to `url` goes through, for an error's end.

    A proxy that is dead or refuses is not where the user looks first. Credentials in
    its address are left out.
    """
    parts = urllib.parse.urlsplit(url)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if not proxy or urllib.request.proxy_bypass(parts.hostname or ""):
        return ""
    return (
        f"; through the proxy {urllib.parse.urlsplit(proxy).netloc.rpartition('@')[2]}"
    )


def is_reachable(url: str, limit_s: float) -> bool:
    """Whether a server answers at all, known within `limit_s`.

    Resolving a name has no timeout of its own, so it happens on a thread that is left
    behind when time is up.
    """
    answered: list[bool] = []

    def ask() -> None:
        try:
            with open_url(url, {"Range": "bytes=0-0"}, None, limit_s) as answer:
                answered.append((answer.status or 200) < 500)
        except urllib.error.HTTPError as error:
            error.close()
            answered.append(error.code < 500)
        except NETWORK_ERRORS:
            answered.append(False)

    thread = threading.Thread(target=ask, daemon=True, name="codekv-reach")
    thread.start()
    thread.join(limit_s)
    return bool(answered and answered[0])


def _continue(
    url: str, target: FetchTarget, progress: DownloadProgress, cert: str | None
) -> bool:
    """Fetch what is missing; False if the connection ended early."""
    with disk_errors(target.path.parent):
        target.path.parent.mkdir(parents=True, exist_ok=True)
        part = target.part.open("ab")
    with part:
        have = part.tell()
        if have >= target.num_bytes:
            return True
        headers = {"Range": f"bytes={have}-"} if have else {}
        with open_url(url, headers, cert) as answer:
            if have and answer.status != 206:
                # The source cannot continue: begin again.
                progress.advance(-have)
                have = 0
                part.truncate(0)
            part.seek(have)
            return _copy(answer, part, target, progress) >= target.num_bytes


def _copy(
    answer: Any, part: IO[bytes], target: FetchTarget, progress: DownloadProgress
) -> int:
    have = part.tell()
    # One byte more than wanted is read, so that a longer file is noticed.
    while have <= target.num_bytes:
        chunk = answer.read(min(_CHUNK, target.num_bytes + 1 - have))
        if not chunk:
            break
        with disk_errors(target.path.parent):
            part.write(chunk)
        have += len(chunk)
        progress.advance(len(chunk))
    with disk_errors(target.path.parent):
        part.flush()
    return have
