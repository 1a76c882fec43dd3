"""A code-completion engine whose KV cache follows the structure of the code.

Usable without any editor; `lsp` and `bench` sit on top of it. The rooms and the
direction of imports are in `codekv/README.md`. What a program may rely on is listed in
`__all__`, explained in `docs/api.md`, and imported when it is first used.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codekv.completer import Completer, complete
    from codekv.completion.api import Completion, Item
    from codekv.config import Config
    from codekv.errors import CodekvError

__all__ = ["CodekvError", "Completer", "Completion", "Config", "Item", "complete"]

# Has to stand before anything imports torch. The OpenMP library of torch lets a thread
# that waits for the others spin for milliseconds, which multiplies the time of a step
# by three and more when a build or an editor uses the same cores. This many turns
# cover the gaps within a step; then the thread sleeps.
os.environ.setdefault("GOMP_SPINCOUNT", "2000")

__version__ = "0.1.0"

_PLACES = {
    "CodekvError": "codekv.errors",
    "Completer": "codekv.completer",
    "Completion": "codekv.completion.api",
    "Config": "codekv.config",
    "Item": "codekv.completion.api",
    "complete": "codekv.completer",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is used: commands must not wait for all of it."""
    if name not in _PLACES:
        raise AttributeError(f"module 'codekv' has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
