"""Which documents stay out of everything: prompts, caches, logs, the disk.

Decides by name, by language, by size and, for files that hold nothing but secrets, by
content. Reads one file, the workspace's `.codekvignore`, when it is made; after that
it is a function of its arguments.
"""

from __future__ import annotations

import os
import re
from enum import StrEnum
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pathspec

from codekv.completion.privacy.content import SecretFinder, is_generated
from codekv.files import read_ignore_file

if TYPE_CHECKING:
    from pathlib import Path

    from codekv.config import PrivacyConfig
    from codekv.text.snapshot import Snapshot

IGNORE_FILE = ".codekvignore"

_DATA_SUFFIXES = ("json", "yml", "yaml", "xml", "ini", "toml", "properties", "txt")

SECRET_NAMES = (
    *(".env", ".env.*", "*.env", ".envrc"),
    *("!.env.example", "!.env.sample", "!.env.template", "!.env.dist"),
    *("*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.ppk", "*.crt", "*.cer", "*.der"),
    *("*.jks", "*.keystore", "*.kdbx", "*.ovpn", "*.gpg", "*.asc"),
    *("*.tfvars", "*.tfstate", "*.tfstate.*"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*"),
    *(f"*credentials*.{suffix}" for suffix in _DATA_SUFFIXES),
    *(f"*secret*.{suffix}" for suffix in _DATA_SUFFIXES),
    *("service-account*.json", "service_account*.json"),
    *(".netrc", "_netrc", ".pgpass", ".my.cnf", ".htpasswd", ".git-credentials"),
    *(".npmrc", ".yarnrc", ".pypirc", ".dockercfg", "**/.docker/config.json"),
    *(".vault-token", ".vault_pass*", "kubeconfig", "**/.kube/config"),
    *(".ssh/", ".gnupg/", ".aws/", ".azure/"),
)
"""In `.gitignore` syntax, matched without regard to case; later ones win.

Programs are not among them: `credentials.py` is code like any other.
"""

GENERATED_NAMES = (
    *("*.min.js", "*.min.css", "*.bundle.js", "*.map", "*.snap"),
    *("*_pb2.py", "*_pb2_grpc.py", "*.pb.go", "*.pb.cc", "*.pb.h", "*.g.dart"),
    *("*.lock", "package-lock.json", "pnpm-lock.yaml"),
)
"""Written by programs; in the syntax and order of `SECRET_NAMES`."""

_ARMOURED = re.compile(
    rb"\s*(?:-----BEGIN [A-Z0-9 ]*PRIVATE KEY|PuTTY-User-Key-File-|"
    rb"-----BEGIN PGP PRIVATE KEY)"
)
_SECRET_ASSIGNMENT = re.compile(
    rb"^\s*(?:export\s+)?\w*(?:SECRET|TOKEN|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY|"
    rb"PRIVATE_?KEY)\w*\s*[:=]\s*\S{8,}",
    re.IGNORECASE | re.MULTILINE,
)
_ANY_ASSIGNMENT = re.compile(rb"\s*(?:#.*|;.*|\[.*\]|(?:export\s+)?[\w.]+\s*[:=].*)?")
_PLAIN_LANGUAGES = frozenset(
    {"", "plaintext", "text", "dotenv", "ini", "properties", "conf", "shellscript"}
    | {"sh", "yaml", "toml", "config"}
)
# Markers stand near the top; reading more would cost more than a keystroke.
_NUM_CONTENT_BYTES = 1 << 16


class ExclusionReason(StrEnum):
    """Why a document gets no completions."""

    SECRET = "excluded-secret"  # noqa: S105 - a reason, no password
    EXCLUDED = "excluded"
    LANGUAGE = "excluded-language"
    TOO_LARGE = "too-large"
    LONG_LINE = "long-line"
    BINARY = "binary"
    GENERATED = "generated"


class Privacy:
    """The rules of one configuration in one workspace."""

    def __init__(self, config: PrivacyConfig, workspace: Path | None = None) -> None:
        self._config = config
        root = "" if workspace is None else workspace.as_posix().lower()
        self._root = root.strip("/") + "/"
        self._secrets = _spec(SECRET_NAMES)
        # The user's own patterns come last, so that `!name` lets a file in again.
        self._generated = _spec(GENERATED_NAMES)
        lines = read_ignore_file(workspace / IGNORE_FILE) if workspace else ()
        built_in = (*GENERATED_NAMES, *SECRET_NAMES)
        self._all = _spec((*lines, *built_in, *config.exclude))
        self._finder = SecretFinder()
        self._languages = {each.lower() for each in config.disabled_languages}

    def silence(self, snapshot: Snapshot) -> ExclusionReason | None:
        """Tell why a document must stay out, or None if it need not."""
        by_name = self.silence_of_path(path_of(snapshot.uri))
        if by_name is not None:
            return by_name
        if snapshot.language in self._languages:
            return ExclusionReason.LANGUAGE
        if len(snapshot.data) > self._config.max_file_kb * 1024:
            return ExclusionReason.TOO_LARGE
        return self._silence_of_text(snapshot.data, snapshot.language)

    def _silence_of_text(self, data: bytes, language: str) -> ExclusionReason | None:
        if b"\0" in data:
            return ExclusionReason.BINARY
        if _has_line_over(data, self._config.max_line_kb * 1024):
            return ExclusionReason.LONG_LINE
        if holds_only_secrets(data, language) or self._finder.has_secret(data):
            return ExclusionReason.SECRET
        return ExclusionReason.GENERATED if is_generated(data) else None

    def silence_of_path(self, path: str) -> ExclusionReason | None:
        """Tell why a file must not even be read, or None if it may."""
        name = self._inside(path.lower())
        if not self._all.match_file(name):
            return ExclusionReason.SECRET if self._leads_to_secret(path) else None
        if self._secrets.match_file(name):
            return ExclusionReason.SECRET
        is_generated_name = self._generated.match_file(name)
        return (
            ExclusionReason.GENERATED if is_generated_name else ExclusionReason.EXCLUDED
        )

    def _leads_to_secret(self, path: str) -> bool:
        """Whether a harmless name is a link to a file with a telling one."""
        if "\0" in path:
            return False
        real = os.path.realpath(path)
        is_link = os.path.normpath(path) != real
        return is_link and self._secrets.match_file(self._inside(real.lower()))

    def _inside(self, path: str) -> str:
        """Give the path as seen from the workspace, or from its root."""
        return path.lstrip("/").removeprefix(self._root)


def path_of(uri: str) -> str:
    """Give the path part of a uri of any scheme; fragments and queries are none."""
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme else uri


def holds_only_secrets(data: bytes, language: str) -> bool:
    """Whether a text is a key or a list of passwords, whatever its name is.

    A program in which some literal looks like a key is not such a text.
    """
    if _ARMOURED.match(data):
        return True
    head = data[:_NUM_CONTENT_BYTES]
    if language not in _PLAIN_LANGUAGES or not _SECRET_ASSIGNMENT.search(head):
        return False
    return all(_ANY_ASSIGNMENT.fullmatch(line) for line in head.split(b"\n"))


def _has_line_over(data: bytes, limit: int) -> bool:
    start = 0
    while start + limit < len(data):
        end = data.rfind(b"\n", start, start + limit + 1)
        if end < 0:
            return True
        start = end + 1
    return False


def _spec(lines: tuple[str, ...]) -> pathspec.GitIgnoreSpec:
    patterns = [line.lower() for line in lines if _is_pattern(line)]
    return pathspec.GitIgnoreSpec.from_lines(patterns)


def _is_pattern(line: str) -> bool:
    """Whether a line can be used; a user's mistake must not cost the other lines."""
    try:
        pathspec.GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
