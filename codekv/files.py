"""Read small files of a folder that strangers may have filled; write files whole.

A name in such a folder can stand for a pipe, a device or a file of many gigabytes.
Reading one of those would wait for ever or use up the memory, so only regular files
below a limit are read.
"""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# Without this flag, opening a named pipe waits until somebody writes to it. Windows
# has neither the flag nor pipes among its files.
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

# A long ignore file has some hundred lines.
MAX_IGNORE_BYTES = 64 << 10
# Ignore files of large projects hold some hundred; each is tried on each path.
MAX_PATTERNS = 1000
# `**/name/**/*.o` has two, as the stars at its start say what holds without them.
MAX_STARS = 2

_STARS = re.compile(r"\*+")
_ANYWHERE = re.compile(r"^!?/?(?:\*\*/)*")


def read_regular(path: Path, max_bytes: int) -> bytes:
    """Read a regular file of at most `max_bytes` bytes; links are followed.

    Raises:
        OSError: It is missing, unreadable, too large, or no regular file.
    """
    # Before opening too: opening a device can set it in motion.
    _check(path, path.stat(), max_bytes)
    descriptor = os.open(path, _OPEN_FLAGS)
    with os.fdopen(descriptor, "rb") as file:
        # Again, because the name may stand for another file by now.
        _check(path, os.fstat(descriptor), max_bytes)
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise OSError(f"larger than {max_bytes} bytes")
    return data


def write_whole(path: Path, text: str) -> None:
    """Write a text file so that its readers see the old one or the whole new one.

    Raises:
        OSError: It cannot be written; the old file is as it was.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text, "utf-8")
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def read_ignore_file(path: Path) -> tuple[str, ...]:
    """Read the patterns of a project's `.gitignore` or the like; none if unreadable."""
    try:
        text = read_regular(path, MAX_IGNORE_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ()
    return bounded_patterns(text.splitlines())


def bounded_patterns(lines: Iterable[str]) -> tuple[str, ...]:
    """Keep a stranger's patterns from taking for ever to match.

    Matching takes time in the power of the number of stars: six of them against a name
    of 120 letters take 15 seconds. A pattern with more than `MAX_STARS` is cut behind
    the last star that is allowed, so it keeps out all that it kept out before and more;
    one that lets files in again is dropped instead.
    """
    patterns: list[str] = []
    for line in lines:
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        start = len(text) - len(_ANYWHERE.sub("", text, count=1))
        stars = list(_STARS.finditer(text, start))
        if len(stars) > MAX_STARS:
            if text.startswith("!"):
                continue
            text = text[: stars[MAX_STARS - 1].end()]
        patterns.append(text)
    return tuple(patterns[:MAX_PATTERNS])


def _check(path: Path, found: os.stat_result, max_bytes: int) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(f"{path.name} is no regular file")
    if found.st_size > max_bytes:
        raise OSError(f"larger than {max_bytes} bytes")
