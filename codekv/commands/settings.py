"""Options given on a command line as `section.key=value`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from codekv.config import Config, apply
from codekv.errors import UsageError
from codekv.model.library.choice import settle_name

if TYPE_CHECKING:
    from collections.abc import Iterable


def with_settings(config: Config, pairs: Iterable[str]) -> Config:
    """Lay `section.key=value` pairs over a configuration.

    Where `model.name` is `auto`, the model that this stands for takes its place, so
    that a report names what was measured.

    Raises:
        UsageError: A pair is malformed, its key unknown or its value invalid.
    """
    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"{pair!r}: write an option as section.key=value")
        node = values
        *path, last = key.split(".")
        for part in path:
            node = node.setdefault(part, {})
        node[last] = yaml.safe_load(text)
    config, problems = apply(config, values, "command line")
    if problems:
        raise UsageError(str(problems[0]))
    return settle_name(config)
