"""One file per feature; each registers its handlers on a server."""

from lsp.features import (
    commands,
    configuration,
    inline,
    larger_model,
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
    larger_model.register,
)
"""Completion as list entries is not here: only some clients get it."""
