"""Changes out of a local git repository, read without running anything of it.

A repository's own configuration may name programs (hooks, file system monitors,
external diffs, text converters, remote helpers). Only plumbing that prints objects is
called, with those switched off, so that a hostile repository is only data.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from bench.traces.changes import MAX_FILES, language_of, make_change, readable
from codekv.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bench.traces.changes import AuthoredChange

TIMEOUT_S = 60.0
"""No single question to git about a local repository takes longer."""

_OFF = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "protocol.allow=never",
    "diff.external=",
    "core.attributesFile=/dev/null",
)


def commits(repository: Path, limit: int) -> Iterator[AuthoredChange]:
    """Read the newest commits that change source files, merges left out.

    Args:
        repository: A work tree or a bare repository.
        limit: Look at no more commits than this.

    Raises:
        UsageError: It is not a git repository, or git is not installed.
    """
    listed = _git(repository, "rev-list", "--no-merges", f"--max-count={limit}", "HEAD")
    for commit in listed.decode().split():
        change = _change(repository, commit)
        if change is not None:
            yield change


def _change(repository: Path, commit: str) -> AuthoredChange | None:
    raw = _git(
        repository, "diff-tree", "-r", "-z", "--no-commit-id", "--diff-filter=M", commit
    )
    fields = raw.decode("utf-8", "replace").split("\0")[:-1]
    # Each file: ":mode mode blob blob M", then its path.
    pairs = list(zip(fields[::2], fields[1::2], strict=True))
    if len(pairs) > MAX_FILES:
        return None
    texts = []
    for about, path in pairs:
        if language_of(path) is None:
            continue
        old, new = (
            readable(_git(repository, "cat-file", "blob", blob))
            for blob in about.split()[2:4]
        )
        if old is not None and new is not None:
            texts.append((path, old, new))
    return make_change(repository.name, commit[:12], texts)


def _git(repository: Path, *words: str) -> bytes:
    """Ask git; nothing of the user's or the system's configuration is read."""
    settings = [part for setting in _OFF for part in ("-c", setting)]
    # `--no-replace-objects`: the history as it was written, not as it is shown.
    command = [
        "git",
        "--no-pager",
        "--no-replace-objects",
        "-C",
        str(repository),
        *settings,
    ]
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
    }
    try:
        done = subprocess.run(
            [*command, *words],
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        raise UsageError(
            "git is not installed; replay needs it to read commits"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise UsageError(
            f"{repository}: git did not answer in {TIMEOUT_S:.0f} s"
        ) from error
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UsageError(f"{repository}: {lines[-1] if lines else 'git failed'}")
    return done.stdout
