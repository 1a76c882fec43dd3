"""Run the real language server over a scripted service.

`python -m codekv.testing SCRIPT.json [HOST:PORT [TOKEN]]`
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from codekv.testing.service import ScriptedService, ServiceScript
from lsp.run import run_stdio, run_tcp

if TYPE_CHECKING:
    from codekv.completion.api import CompletionService
    from codekv.config import Config
    from lsp.host import ServiceFactory


def main(arguments: list[str]) -> int:
    """Serve until the client or an interrupt ends it."""
    script = ServiceScript.from_json(Path(arguments[0]).read_text("utf-8"))

    def load() -> ServiceFactory:
        time.sleep(script.import_ms / 1000)

        def factory(config: Config, workspace: Path | None) -> CompletionService:
            return ScriptedService(script, config, workspace)

        return factory

    if len(arguments) > 1:
        token = arguments[2] if len(arguments) > 2 else None  # noqa: PLR2004
        return run_tcp(load, arguments[1], token)
    return run_stdio(load)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
