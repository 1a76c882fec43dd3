"""Where a package index keeps a file: PEP 503 and PEP 691, on pip's own settings.

Only addresses are looked up. Nothing is installed, and no code of a package runs.
"""

from __future__ import annotations

import html
import json
import re
import subprocess
import urllib.error
import urllib.parse
from dataclasses import dataclass
from typing import Any

from codekv.errors import DownloadError
from codekv.model.library.fetch import NETWORK_ERRORS, open_url, through_proxy
from codekv.processes import module_command, safe_environment

PYPI = "https://pypi.org/simple/"

_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
_LINK = re.compile(r'<a\s[^>]*href="([^"]+)"', re.IGNORECASE)
# Bytes: a page with more links than any project has is refused.
_MOST_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Indexes:
    """Addresses to ask, in order, and a certificate file to trust besides."""

    urls: tuple[str, ...]
    cert: str | None = None


def configured_indexes() -> Indexes:
    """What pip is set to use here; the public index where pip is not there."""
    command = module_command("pip", "config", "list")
    try:
        run = subprocess.run(  # noqa: S603
            command,
            capture_output=True,
            timeout=20,
            check=False,
            env=safe_environment(),
        )
        listing = run.stdout.decode(errors="replace")
    except (OSError, subprocess.SubprocessError):
        listing = ""
    return read_pip_settings(listing)


def read_pip_settings(listing: str) -> Indexes:
    """Read the output of `pip config list`; later lines win, as in pip."""
    values: dict[str, str] = {}
    for line in listing.splitlines():
        key, _, value = line.partition("=")
        name = key.strip().rpartition(".")[2]
        values[name] = value.strip().strip("'\"").replace("\\n", " ")
    urls = (
        values.get("index-url", PYPI).split()
        + values.get("extra-index-url", "").split()
    )
    return Indexes(tuple(urls), values.get("cert") or None)


def find_file(package: str, file_name: str, indexes: Indexes) -> str:
    """The address of one file of a package.

    Raises:
        DownloadError: No index has it, or none could be asked.
    """
    reasons = []
    for index in indexes.urls:
        page = f"{index.rstrip('/')}/{package}/"
        try:
            with open_url(page, {"Accept": _ACCEPT}, indexes.cert) as answer:
                body = answer.read(_MOST_BYTES)
                kind = answer.headers.get("Content-Type") or ""
                base = answer.url or page
            for url in _links(body, kind, base):
                path = urllib.parse.urlsplit(url).path
                if urllib.parse.unquote(path).rpartition("/")[2] == file_name:
                    return url
            reasons.append(f"{_host(index)} has no {file_name}")
        except NETWORK_ERRORS as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            reasons.append(
                f"{_host(index)}: {' '.join(str(error).split())}{through_proxy(page)}"
            )
    raise DownloadError(f"package index: {'; '.join(reasons)}"[:300])


def _links(body: bytes, kind: str, base: str) -> list[str]:
    if "json" in kind:
        files: list[dict[str, Any]] = json.loads(body)["files"]
        links = [str(entry["url"]) for entry in files]
    else:
        text = body.decode("utf-8", errors="replace")
        links = [html.unescape(link) for link in _LINK.findall(text)]
    joined = [urllib.parse.urljoin(base, link) for link in links]
    return [link.partition("#")[0] for link in joined]


def _host(url: str) -> str:
    return urllib.parse.urlsplit(url).hostname or url
