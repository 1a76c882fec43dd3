"""What the editor says about options, laid over the configuration files.

Layers, later ones win: files, `initializationOptions`, what was pushed, what was
pulled for a folder. Knows the shapes in which editors send settings; what an option
means and which values are valid is `codekv.config`'s business.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import Any

from codekv.config import Config, Problem, apply

SECTION = "codekv"
# What `initializationOptions` may hold beside options of ours.
_FOREIGN = frozenset({"token", "editorInfo", "editorPluginInfo"})


@dataclass(slots=True)
class EditorSettings:
    """All layers of one client.

    Attributes:
        files: The configuration that the files give.
        initial: What came with the initialize request.
        pushed: What came last by notification.
        pulled: What the client answered when asked, by folder; "" is all the rest.
    """

    files: Config = field(default_factory=Config)
    file_problems: tuple[Problem, ...] = ()
    initial: dict[str, Any] = field(default_factory=dict)
    pushed: dict[str, Any] = field(default_factory=dict)
    pulled: dict[str, dict[str, Any]] = field(default_factory=dict)
    _reported: frozenset[str] = frozenset()
    _cache: dict[str, Config] = field(default_factory=dict)

    def for_folder(self, folder: str = "") -> Config:
        """Give the configuration that holds in a folder; "" for no folder."""
        config = self._cache.get(folder)
        if config is None:
            config, _ = self._merge(folder)
            self._cache[folder] = config
        return config

    def forget_merged(self) -> None:
        """Note that a layer has changed."""
        self._cache.clear()

    def new_problems(self) -> tuple[str, ...]:
        """Tell, once, which values were not taken."""
        problems = list(self.file_problems)
        for folder in self.pulled or {"": {}}:
            problems += self._merge(folder)[1]
        lines = tuple(dict.fromkeys(map(str, problems)))
        fresh = tuple(line for line in lines if line not in self._reported)
        self._reported = frozenset(lines)
        return fresh

    def _merge(self, folder: str) -> tuple[Config, list[Problem]]:
        problems: list[Problem] = []
        config = self.files
        layers = (
            ("initializationOptions", self.initial),
            ("settings", self.pushed),
            ("settings", self.pulled.get(folder) or self.pulled.get("", {})),
        )
        for source, values in layers:
            config, more = apply(config, values, source)
            problems += more
        return config, problems


def initial_values(options: Any) -> dict[str, Any]:
    """Find our options in `initializationOptions`."""
    if not isinstance(options, dict):
        return {}
    if isinstance(options.get(SECTION), dict):
        return _cleaned(options[SECTION])
    return _cleaned({k: v for k, v in options.items() if k not in _FOREIGN})


def token_of(options: Any) -> str | None:
    """Find the password of a remote client in `initializationOptions`."""
    token = options.get("token") if isinstance(options, dict) else None
    return token if isinstance(token, str) else None


def pushed_values(settings: Any) -> dict[str, Any] | None:
    """Find our options in a configuration notification.

    Returns:
        None if the notification only says that something has changed.
    """
    if not isinstance(settings, dict):
        return None
    if SECTION in settings:
        section = settings[SECTION]
        return _cleaned(section) if isinstance(section, dict) else None
    return _cleaned(settings) if _is_ours(settings) else {}


def pulled_values(section: Any) -> dict[str, Any]:
    """Find our options in an answer to `workspace/configuration`.

    Plain values beside the sections belong to the editor's extension.
    """
    if not isinstance(section, dict):
        return {}
    return _cleaned({k: v for k, v in section.items() if isinstance(v, dict)})


def _is_ours(settings: dict[str, Any]) -> bool:
    """Whether a bare table is meant for this server: some editors send all tables."""
    known = list(Config.model_fields)
    return any(difflib.get_close_matches(str(key), known, 1) for key in settings)


def _cleaned(table: dict[str, Any]) -> dict[str, Any]:
    """Drop nulls, which in settings say "not set", and unfold dotted keys."""
    result: dict[str, Any] = {}
    for key, value in table.items():
        if value is None:
            continue
        head, _, rest = str(key).partition(".")
        entry = _cleaned({rest: value}) if rest else value
        if isinstance(entry, dict):
            below = _cleaned(entry)
            old = result.get(head)
            result[head] = {**old, **below} if isinstance(old, dict) else below
        else:
            result[head] = entry
    return result
