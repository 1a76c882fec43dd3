"""Language ids to grammars and compiled queries.

Everything that differs between languages is data: `languages.toml` and the `.scm`
files in the language's folder. Knows no documents and no trees.
"""

from __future__ import annotations

import functools
import importlib
import re
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from tree_sitter import Language, Query

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class LineRules:
    """What single lines tell about structure when the tree cannot be trusted.

    Every pattern is matched against a line without its indentation.
    """

    function: re.Pattern[bytes]
    container: re.Pattern[bytes]
    lead: re.Pattern[bytes]
    skip: re.Pattern[bytes]
    opener: re.Pattern[bytes]


@dataclass(frozen=True, eq=False, slots=True)
class Grammar:
    """One language: its parser tables and the rules that go with it.

    Attributes:
        name: The table's name in `languages.toml`; also the folder's.
        lines: Patterns for single lines.
        opaque: Node types whose lines are text rather than code.
        comment: What starts a comment that ends with its line.
        is_indented: Indentation alone ends a body.
    """

    name: str
    language: Language
    lines: LineRules
    opaque: frozenset[str]
    comment: bytes
    is_indented: bool

    def query(self, kind: str) -> Query:
        """Compile `<language>/<kind>.scm`; compiled once per process."""
        return _query(self.name, kind)


def grammar_for(language: str, file_name: str = "") -> Grammar | None:
    """Find the grammar of a language id, else of a file name.

    Returns:
        None for a language without a grammar; its text has no known structure.
    """
    name = _names().get(language.lower())
    if name is None:
        base = file_name.rsplit("/", 1)[-1].lower()
        name = next((n for pattern, n in _patterns() if fnmatch(base, pattern)), None)
    return _grammar(name) if name else None


def language_id(file_name: str) -> str:
    """Guess an editor's language id from a file name; empty if there is no guess."""
    grammar = grammar_for("", file_name)
    return _tables()[grammar.name]["ids"][0] if grammar else ""


def grammar_names() -> tuple[str, ...]:
    """Names of all languages that have a grammar."""
    return tuple(_tables())


@functools.cache
def _tables() -> dict[str, dict[str, Any]]:
    return tomllib.loads((_FOLDER / "languages.toml").read_text("utf-8"))


@functools.cache
def _names() -> dict[str, str]:
    return {i: name for name, table in _tables().items() for i in table["ids"]}


@functools.cache
def _patterns() -> list[tuple[str, str]]:
    return [(p, name) for name, table in _tables().items() for p in table["files"]]


@functools.cache
def _grammar(name: str) -> Grammar:
    table = _tables()[name]
    return Grammar(
        name=name,
        language=_language(name),
        lines=LineRules(
            function=re.compile(table["function"].encode()),
            container=re.compile(table["class"].encode()),
            lead=re.compile(table["lead"].encode()),
            skip=re.compile(table["skip"].encode()),
            opener=re.compile(table["opener"].encode()),
        ),
        opaque=frozenset(table["opaque"]),
        comment=table["comment"].encode(),
        is_indented=table["indented"],
    )


@functools.cache
def _language(name: str) -> Language:
    table = _tables()[name]
    module = importlib.import_module(table["package"])
    return Language(getattr(module, table["entry"])())


@functools.cache
def _query(name: str, kind: str) -> Query:
    folder = _tables()[name].get("queries", name)
    source = (_FOLDER / folder / f"{kind}.scm").read_text("utf-8")
    return Query(_language(name), source)
