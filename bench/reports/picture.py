"""A report as a picture: its HTML page as a real browser draws it.

`python -m bench.reports.picture REPORT.json PICTURE.png` writes the top of the page;
needs Chromium or Chrome (`CHROMIUM` names another binary). Nothing is fetched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench.reports.compare import load
from bench.reports.html import render
from codekv.errors import CodekvError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDTH, HEIGHT = 1040, 1180
"""Pixels: the page's width, and its first three plots."""

TIMEOUT_S = 120
"""A browser that starts on a busy machine takes some ten seconds."""


def browser() -> str:
    """The browser's binary.

    Raises:
        UsageError: There is none.
    """
    found = os.environ.get("CHROMIUM") or next(
        filter(None, map(shutil.which, NAMES)), None
    )
    if found is None:
        raise UsageError("no browser found; install chromium, or name one in CHROMIUM")
    return found


def browse(page: Path, *flags: str) -> str:
    """Open a page without a network and give what the browser prints.

    Raises:
        CodekvError: The browser failed or did not end in time.
    """
    with tempfile.TemporaryDirectory() as profile:
        command = [
            browser(),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--disable-background-networking",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={profile}",
            *flags,
            page.absolute().as_uri(),
        ]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise CodekvError(f"{command[0]}: {type(error).__name__}") from error
    return done.stdout


def shoot(report: Path, picture: Path, size: tuple[int, int] = (WIDTH, HEIGHT)) -> None:
    """Draw a report's page; `size` is in pixels.

    Raises:
        CodekvError: It is no report, or the browser failed.
    """
    text = render(load(report))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(text, "utf-8")
        width, height = size
        target = picture.absolute()
        browse(page, f"--window-size={width},{height}", f"--screenshot={target}")
    if not picture.is_file():
        raise CodekvError(f"{picture}: the browser drew nothing")


def main(arguments: Sequence[str]) -> int:
    """Command line."""
    try:
        if len(arguments) not in {2, 3}:
            raise UsageError(
                "usage: python -m bench.reports.picture "
                "REPORT.json PICTURE.png [HEIGHT]"
            )
        height = int(arguments[2]) if arguments[2:] else HEIGHT
        shoot(Path(arguments[0]), Path(arguments[1]), (WIDTH, height))
    except (CodekvError, ValueError) as error:
        sys.stderr.write(f"codekv: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
