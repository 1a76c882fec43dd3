"""Start a Python of our own without running anybody else's files.

`python -m` puts the working folder in front of the import path, and an empty or
relative entry of `PYTHONPATH` does the same. Where that folder is a user's project, a
file of it called `logging.py` would run in place of the standard library's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def module_command(module: str, *arguments: str) -> tuple[str, ...]:
    """Give the command line that runs an installed module with this interpreter."""
    return (sys.executable, "-P", "-m", module, *arguments)


def safe_environment(**changes: str) -> dict[str, str]:
    """Copy the environment, without relative entries of the import path."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    absolute = os.pathsep.join(path for path in paths if Path(path).is_absolute())
    safe = {"PYTHONSAFEPATH": "1", "PYTHONPATH": absolute}
    return {**os.environ, **safe, **changes}
