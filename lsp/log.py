"""A log that never holds what a person types.

Our own messages name objects and counts; those of libraries may quote documents and
so may exceptions, so both are reduced to where they come from, unless the user wants
to see text.
"""

from __future__ import annotations

import logging
import sys
import traceback
from typing import TYPE_CHECKING

from codekv.errors import CodekvError

if TYPE_CHECKING:
    from pathlib import Path

    from codekv.config import Config

_LIBRARIES = ("pygls", "lsprotocol", "cattrs", "asyncio")
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_MARK = "codekv-log"


class RedactingFormatter(logging.Formatter):
    """Formats records without arguments of libraries and texts of exceptions."""

    def __init__(self, shows_text: bool = False) -> None:
        super().__init__(_FORMAT)
        self._shows_text = shows_text

    def format(self, record: logging.LogRecord) -> str:
        """Format one record; the record itself is not changed."""
        if self._shows_text:
            return super().format(record)
        copy = logging.makeLogRecord(record.__dict__)
        copy.exc_text = None
        if record.name.partition(".")[0] in _LIBRARIES:
            copy.msg, copy.args = str(record.msg), None
        return super().format(copy)

    def formatException(self, ei: object) -> str:  # noqa: N802 - logging's name
        """Tell where it happened and what kind it was, not what it quotes."""
        if self._shows_text or not isinstance(ei, tuple):
            return super().formatException(ei)  # type: ignore[arg-type]
        kind, error, trace = ei
        frames = traceback.extract_tb(trace)
        lines = [f"  {frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        # Our own errors name objects, never text.
        about = f": {error}" if isinstance(error, CodekvError) else ""
        return "\n".join([*lines, f"{getattr(kind, '__name__', kind)}{about}"])


def configure_logging(config: Config) -> None:
    """Send the log to standard error and, if wanted, to a file; may be called again."""
    server = config.server
    root = logging.getLogger()
    formatter = RedactingFormatter(config.privacy.log_text)
    for handler in [h for h in root.handlers if h.get_name() == _MARK]:
        root.removeHandler(handler)
        handler.close()
    for handler in _handlers(server.log_file):
        handler.set_name(_MARK)
        handler.setFormatter(formatter)
        root.addHandler(handler)
    level = server.log_level.upper()
    root.setLevel(logging.WARNING)
    for name in ("codekv", "lsp"):
        logging.getLogger(name).setLevel(level)
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)


def _handlers(log_file: str | Path | None) -> list[logging.Handler]:
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    if log_file:
        try:
            handlers.append(logging.FileHandler(log_file, encoding="utf-8"))
        except OSError as error:
            logging.getLogger(__name__).warning("no log file: %s", error.strerror)
    return handlers
