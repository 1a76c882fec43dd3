"""Every option, its default and its limits; validated once, at the edge.

Sources, later ones win: defaults, the user's `codekv.toml` (or `.yaml`), the
project's `codekv.toml` (or `.yaml`), what the editor sends; `codekv.config_files`
reads the files. Unknown keys and bad values are reported as `Problem`s and the default
is kept, so that one typing mistake never switches completion off.
"""

from __future__ import annotations

import difflib
import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError

if TYPE_CHECKING:
    from collections.abc import Iterator

Precision = Literal[
    "auto", "exact", "balanced", "small", "seed", "heads", "fp32", "fp16", "int8"
]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


class FimMarkers(_Section):
    """The texts of a model's fill-in-the-middle tokens, when the table lacks them."""

    prefix: str
    suffix: str
    middle: str
    stop: tuple[str, ...] = ()


class ModelConfig(_Section):
    """Which model answers, and on what."""

    name: str = "auto"
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    compute: Literal["auto", "int8", "fp32", "bf16", "fp16"] = "auto"
    runtime: Literal["auto", "native", "own", "transformers"] = "auto"
    threads: int = Field(default=0, ge=0, le=256)
    fim: FimMarkers | None = None
    offline: bool = False


class PurgeStrategy(_Section):
    """When stored blocks are purged by importance, and how much stays."""

    interval: int = Field(default=10, ge=0)
    keep_ratio: float = Field(default=0.7, gt=0.0, le=1.0)
    importance: Literal["attention", "recency", "cost"] = "cost"


class KvCacheConfig(_Section):
    """How keys and values are kept and reused."""

    max_length: int = Field(default=1536, ge=128, le=131072)
    chunk_size: int = Field(default=256, ge=16, le=4096)
    precision: Precision = "auto"
    reuse: Literal["exact", "moved"] = "moved"
    repair_tokens: int = Field(default=16, ge=0, le=256)
    repair_tail: int = Field(default=24, ge=0, le=256)
    repair_names: bool = False
    max_drift: int = Field(default=512, ge=0)
    sparse_interval: int = Field(default=0, ge=0, le=1024)
    newest_share: float = Field(default=0.8, gt=0.0, le=1.0)
    dynamic_size: bool = False
    live_documents: int = Field(default=4, ge=1, le=64)
    memory_mb: int = Field(default=512, ge=16)
    disk: bool = True
    disk_mb: int = Field(default=2048, ge=0)
    disk_coding: Literal["plain", "zstd", "huffman", "differences"] = "plain"
    idle_work: bool = True
    warm_tokens: int = Field(default=32768, ge=0, le=1048576)
    reset_on_topic_switch: bool = False
    purge_strategy: PurgeStrategy = PurgeStrategy()


class CompletionConfig(_Section):
    """What is offered, how long it may be, and how long it may take."""

    latency_budget_ms: int = Field(default=300, ge=20, le=60000)
    max_tokens: int = Field(default=48, ge=1, le=1024)
    max_lines: int = Field(default=12, ge=1, le=200)
    multiline: Literal["auto", "never", "always"] = "auto"
    suffix_tokens: int = Field(default=256, ge=0, le=8192)
    healing: bool = True
    drafting: bool = True
    syntax_choice: bool = True
    candidates: int = Field(default=3, ge=1, le=8)
    typed_through: bool = True
    speculate: bool = True
    file_name: bool = True
    other_files: bool = False
    min_confidence: float = Field(default=0.0, ge=0.0, le=1.0)
    debounce_ms: int | Literal["auto"] = "auto"
    deadline: Literal["off", "soft", "hard"] = "off"
    eco: Literal["auto", "always", "never"] = "auto"


class PrivacyConfig(_Section):
    """What must never reach a prompt, a log or the disk."""

    exclude: tuple[str, ...] = ()
    disabled_languages: tuple[str, ...] = ()
    max_file_kb: int = Field(default=1024, ge=1)
    max_line_kb: int = Field(default=20, ge=1)
    log_text: bool = False


class ServerConfig(_Section):
    """The language server's own options."""

    log_level: Literal["debug", "info", "warning", "error"] = "warning"
    log_file: str | None = None
    metrics_file: str | None = None
    metrics_port: int = Field(default=0, ge=0, le=65535)
    tcp_token: str | None = None


class TrustConfig(_Section):
    """What the user allows others; read from the user's own file only."""

    projects: tuple[str, ...] = ()


class Config(_Section):
    """All options; immutable. `Config()` is the default configuration."""

    model: ModelConfig = ModelConfig()
    kvcache: KvCacheConfig = KvCacheConfig()
    completion: CompletionConfig = CompletionConfig()
    privacy: PrivacyConfig = PrivacyConfig()
    server: ServerConfig = ServerConfig()
    trust: TrustConfig = TrustConfig()


@dataclass(frozen=True, slots=True)
class Problem:
    """One value that was not taken, in one line a user can act on."""

    source: str
    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.source}: {self.key}: {self.message}"


def data_dir() -> Path:
    """Where models live; `CODEKV_DATA_DIR` overrides it."""
    chosen = os.environ.get("CODEKV_DATA_DIR")
    return (
        Path(chosen)
        if chosen
        else Path(platformdirs.user_data_dir("codekv", appauthor=False))
    )


def cache_dir() -> Path:
    """Where stored blocks live; may be deleted at any time.

    `CODEKV_CACHE_DIR` overrides it: measurements must not mix with a user's blocks.
    """
    chosen = os.environ.get("CODEKV_CACHE_DIR")
    return (
        Path(chosen)
        if chosen
        else Path(platformdirs.user_cache_dir("codekv", appauthor=False))
    )


@contextmanager
def cache_dir_at(path: Path) -> Iterator[None]:
    """Use another cache folder in this process and its children for a while."""
    before = os.environ.get("CODEKV_CACHE_DIR")
    os.environ["CODEKV_CACHE_DIR"] = str(path)
    try:
        yield
    finally:
        del os.environ["CODEKV_CACHE_DIR"]
        if before is not None:
            os.environ["CODEKV_CACHE_DIR"] = before


def user_config_dir() -> Path:
    """Where the user's own `codekv.toml` lives."""
    return Path(platformdirs.user_config_dir("codekv", appauthor=False))


def apply(base: Config, values: Any, source: str) -> tuple[Config, tuple[Problem, ...]]:
    """Lay `values` (nested mappings) over `base`, leaving out what is not valid.

    Returns:
        The new configuration, and one problem per key that was not taken.
    """
    if values is None:
        return base, ()
    if not isinstance(values, dict):
        problem = Problem(source, "(top)", f"expected a table, got {_kind(values)}")
        return base, (problem,)
    merged = _merge(base.model_dump(), values)
    problems: list[Problem] = []
    # Each round removes at least one offending key, so this ends.
    while True:
        try:
            return Config.model_validate(merged), tuple(problems)
        except ValidationError as error:
            for fault in error.errors():
                path = _key_path(merged, fault["loc"])
                problems.append(_problem(source, path, fault))
                _reset(merged, path, base)


def _merge(base: dict[str, Any], values: dict[Any, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in values.items():
        old = merged.get(str(key))
        both = isinstance(old, dict) and isinstance(value, dict)
        merged[str(key)] = _merge(old, value) if both and old is not None else value
    return merged


def _key_path(merged: dict[str, Any], loc: tuple[int | str, ...]) -> tuple[str, ...]:
    """Cut pydantic's location to the keys that exist in the user's mapping."""
    node: Any = merged
    path: list[str] = []
    for part in loc:
        if not isinstance(node, dict) or part not in node:
            break
        path.append(str(part))
        node = node[part]
    return tuple(path)


def _problem(source: str, path: tuple[str, ...], fault: Any) -> Problem:
    key = ".".join(path)
    if fault["type"] == "extra_forbidden":
        known = _known_keys(path[:-1])
        close = difflib.get_close_matches(path[-1], known, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        return Problem(source, key, f"unknown key, ignored{hint}")
    got = repr(fault["input"])[:60]
    return Problem(source, key, f"{fault['msg']}, got {got}; the default is kept")


def _known_keys(path: tuple[str, ...]) -> list[str]:
    node: Any = Config
    for part in path:
        field = node.model_fields.get(part)
        annotation = field.annotation if field else None
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return []
        node = annotation
    return list(node.model_fields)


def _reset(merged: dict[str, Any], path: tuple[str, ...], base: Config) -> None:
    """Put the base's value back at `path`, or remove a key it does not have."""
    good: Any = base.model_dump()
    node = merged
    for part in path[:-1]:
        node = node[part]
        good = good.get(part, {}) if isinstance(good, dict) else {}
    if isinstance(good, dict) and path[-1] in good:
        node[path[-1]] = good[path[-1]]
    else:
        del node[path[-1]]


def _kind(value: Any) -> str:
    return "a list" if isinstance(value, list) else type(value).__name__
