"""Where a measurement of one part goes: the terminal, and a file if one is named."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.host import facts

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEMA = 1


def give(report: dict[str, Any], arguments: Sequence[str]) -> None:
    """Print a report as one line of JSON; write it to the file that is named."""
    text = json.dumps({"schema": SCHEMA} | report | {"host": facts()})
    if arguments:
        Path(arguments[0]).write_text(text + "\n", "utf-8")
    sys.stdout.write(text + "\n")
