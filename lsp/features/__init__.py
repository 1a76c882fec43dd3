"""One file per feature; each registers its handlers on a server."""

from lsp.features import (
    commands,
    configuration,
    inline,
    lifecycle,
    notebook,
    status,
    sync,
)

FEATURES = (
    lifecycle.register,
    configuration.register,
    sync.register,
    notebook.register,
    inline.register,
    commands.register,
    status.register,
)
"""Completion as list entries is not here: only some clients get it."""
