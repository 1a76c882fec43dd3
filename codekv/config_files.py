"""The configuration files of the user and of a project, read and laid over each other.

A project's file comes with the project, so a stranger may have written it. It decides
about completion in its own project and about nothing else: what it may set is the
table `PROJECT_RULES`. The user can lift that for folders of their own by naming them
under `trust.projects` in the user's own file.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import BaseModel

from codekv.config import Config, Problem, apply, user_config_dir
from codekv.errors import ConfigError
from codekv.files import bounded_patterns, read_regular

if TYPE_CHECKING:
    from collections.abc import Callable

CONFIG_NAMES = ("codekv.toml", "codekv.yaml", "codekv.yml")

# All options with comments take 8 KB. The parsers need time in the square of a line's
# length, which at this size is below a tenth of a second.
MAX_CONFIG_BYTES = 64 << 10

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class _RefusedType:
    """The type of `REFUSED`."""


REFUSED = _RefusedType()
"""What a rule gives when a project's value is not taken."""


def as_it_is(_user: Any, project: Any) -> Any:
    """Take the project's value without a limit."""
    return project


def _not_above(user: Any, project: Any) -> Any:
    return project if project <= user else REFUSED


def _only_true(_user: Any, project: Any) -> Any:
    return project or REFUSED


def _only_false(_user: Any, project: Any) -> Any:
    return REFUSED if project else project


def _added(user: Any, project: Any) -> Any:
    """Keep the user's patterns last, so that a project's cannot undo them."""
    is_undoing = any(text.startswith("!") for text in project)
    return REFUSED if is_undoing else (*bounded_patterns(project), *user)


def _plain_model(_user: Any, project: Any) -> Any:
    """Take a name of the catalog or the store; no path, no address."""
    is_plain = _PLAIN_NAME.fullmatch(project) and not project.endswith(".gguf")
    return project if is_plain else REFUSED


PROJECT_RULES: dict[str, Callable[[Any, Any], Any]] = {
    "model.name": _plain_model,
    "model.offline": _only_true,
    # Numbers that cost memory or computing time may only be lowered: those are the
    # whole machine's.
    "kvcache.max_length": _not_above,
    "kvcache.warm_tokens": _not_above,
    "kvcache.disk": _only_false,
    "kvcache.idle_work": _only_false,
    **dict.fromkeys(
        (
            "kvcache.chunk_size",
            "kvcache.precision",
            "kvcache.reuse",
            "kvcache.repair_tokens",
            "kvcache.repair_tail",
            "kvcache.repair_names",
            "kvcache.max_drift",
            "kvcache.sparse_interval",
            "kvcache.newest_share",
            "kvcache.dynamic_size",
            "kvcache.reset_on_topic_switch",
        ),
        as_it_is,
    ),
    "privacy.exclude": _added,
    "privacy.disabled_languages": _added,
    "privacy.max_file_kb": _not_above,
    "privacy.max_line_kb": _not_above,
    "privacy.log_text": _only_false,
}
"""What a project's file may set, beside all of `[completion]`, and within what limits.

A rule takes the user's value and the project's and gives the one that holds, or
`REFUSED`. An option that is not listed needs the user's consent.
"""


def load(workspace: Path | None = None) -> tuple[Config, tuple[Problem, ...]]:
    """Read the user's and the workspace's files over the defaults."""
    config, problems = _lay_files(Config(), user_config_dir())
    if workspace is None:
        return config, problems
    wanted, more = _lay_files(config, workspace, inside_only=True)
    problems += more
    if _is_trusted(workspace, config.trust.projects):
        return wanted, problems
    config, refused = restrict(config, wanted)
    if refused:
        message = (
            "not taken from a project's file; to allow it, list the folder under "
            f"trust.projects in {user_config_dir() / CONFIG_NAMES[0]}"
        )
        problems += (Problem(str(workspace), ", ".join(refused), message),)
    return config, problems


def restrict(user: Config, wanted: Config) -> tuple[Config, tuple[str, ...]]:
    """Take from `wanted` what a project may set over the user's configuration.

    Returns:
        The configuration that holds, and the options that were not taken.
    """
    refused: list[str] = []
    values = _restrict(Config, user, wanted, "", refused)
    return Config.model_validate(values), tuple(refused)


def read_file(path: Path) -> Any:
    """Read one TOML or YAML file; a byte order mark at its start is skipped.

    Raises:
        ConfigError: It cannot be read or parsed.
    """
    try:
        text = read_regular(path, MAX_CONFIG_BYTES).decode("utf-8-sig")
        if path.suffix == ".toml":
            return tomllib.loads(text)
        return yaml.load(text, _PlainLoader)  # noqa: S506 - a safe loader
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        line = " ".join(str(error).split())[:200]
        raise ConfigError(f"cannot be read ({line}); defaults are used") from error


class _NotPlainError(yaml.YAMLError):
    """YAML that is more than plain values."""


class _PlainLoader(yaml.SafeLoader):
    """Reads plain values only.

    Aliases let a few lines stand for billions of values, and tags call constructors
    that fail in ways of their own, so neither is taken.
    """

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise _NotPlainError("aliases (*name) are not taken")
        if getattr(event, "tag", None) is not None:
            raise _NotPlainError("tags (!name) are not taken")
        return super().compose_node(parent, index)


def _lay_files(
    config: Config, folder: Path, *, inside_only: bool = False
) -> tuple[Config, tuple[Problem, ...]]:
    problems: tuple[Problem, ...] = ()
    for name in CONFIG_NAMES:
        path = folder / name
        try:
            if not path.is_file():
                continue
            values = read_file(_inside(path, folder) if inside_only else path)
        except (ConfigError, OSError) as error:
            problems += (Problem(str(path), "(file)", str(error)),)
            continue
        config, more = apply(config, values, str(path))
        problems += more
    return config, problems


def _inside(path: Path, folder: Path) -> Path:
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ConfigError("a link that leads out of the project; not read")
    return path


def _restrict(
    model: type[BaseModel], user: Any, wanted: Any, prefix: str, refused: list[str]
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        old, new = getattr(user, name), getattr(wanted, name)
        inner, key = field.annotation, prefix + name
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            values[name] = _restrict(inner, old, new, f"{key}.", refused)
            continue
        taken = new if new == old else _rule_of(key)(old, new)
        if taken is REFUSED:
            refused.append(key)
        values[name] = old if taken is REFUSED else taken
    return values


def _rule_of(key: str) -> Callable[[Any, Any], Any]:
    if key.startswith("completion."):
        return as_it_is
    return PROJECT_RULES.get(key, lambda _user, _project: REFUSED)


def _is_trusted(workspace: Path, folders: tuple[str, ...]) -> bool:
    real = workspace.resolve()
    paths = (Path(folder).expanduser() for folder in folders)
    return any(p.is_absolute() and real.is_relative_to(p.resolve()) for p in paths)
