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


# Longer lines are data or generated; patterns could take very long on them.
_MAX_LINE = 600


@dataclass(frozen=True, slots=True)
class LineRules:
    """What single lines tell about structure when the tree cannot be trusted.

    Every question is about one line of bytes, with or without its indentation.
    """

    function: re.Pattern[bytes]
    container: re.Pattern[bytes]
    lead: re.Pattern[bytes]
    skip: re.Pattern[bytes]
    opener: re.Pattern[bytes]

    def begins_function(self, line: bytes) -> bool:
        """Whether a named function or method begins here."""
        return self.function.match(line.lstrip()[:_MAX_LINE]) is not None

    def begins_container(self, line: bytes) -> bool:
        """Whether a class or another named container of functions begins here."""
        return self.container.match(line.lstrip()[:_MAX_LINE]) is not None

    def is_lead(self, line: bytes) -> bool:
        """Whether this is a decorator or attribute of the header below."""
        return self.lead.match(line.lstrip()[:_MAX_LINE]) is not None

    def is_skipped(self, line: bytes) -> bool:
        """Whether the indentation of this line says nothing about structure."""
        return self.skip.match(line.lstrip()[:_MAX_LINE]) is not None

    def opens_body(self, line: bytes) -> bool:
        """Whether an indented body must follow this line."""
        return self.opener.search(line[-_MAX_LINE:]) is not None


@dataclass(frozen=True, eq=False, slots=True)
class Grammar:
    """One language: its parser tables and the rules that go with it.

    Attributes:
        name: The table's name in `languages.toml`; also the folder's.
        lines: Patterns for single lines.
        opaque: Node types whose lines are text rather than code.
        comment: What starts a comment that ends with its line.
        quotes: What strings on one line begin and end with.
        long_quotes: The same for strings that may run over several lines.
        raw: A string whose end depends on its beginning, as a pattern; or empty.
        remark: What a comment of several lines begins and ends with, if there are any.
        is_indented: Indentation alone ends a body.
        can_nest: A named function may stand inside another one.
    """

    name: str
    language: Language
    lines: LineRules
    opaque: frozenset[str]
    comment: bytes
    quotes: tuple[bytes, ...]
    long_quotes: tuple[bytes, ...]
    raw: bytes
    remark: tuple[bytes, ...]
    is_indented: bool
    can_nest: bool

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


def language_ids() -> tuple[str, ...]:
    """Editors' ids of all languages that have a grammar."""
    return tuple(_names())


def grammar_names() -> tuple[str, ...]:
    """Names of all languages that have a grammar."""
    return tuple(_tables())


@functools.cache
def _tables() -> dict[str, dict[str, Any]]:
    tables = tomllib.loads((_FOLDER / "languages.toml").read_text("utf-8"))
    for name, table in tables.items():
        # A language may take over what it does not say itself from an earlier one.
        tables[name] = tables.get(table.get("like"), {}) | {"queries": name} | table
    return tables


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
        quotes=tuple(text.encode() for text in table["quotes"]),
        long_quotes=tuple(text.encode() for text in table["long"]),
        raw=table.get("raw", "").encode(),
        remark=tuple(text.encode() for text in table["remark"]),
        is_indented=table["indented"],
        can_nest=table["nested"],
    )


@functools.cache
def _language(name: str) -> Language:
    table = _tables()[name]
    module = importlib.import_module(table["package"])
    return Language(getattr(module, table["entry"])())


@functools.cache
def _query(name: str, kind: str) -> Query:
    source = (_FOLDER / _tables()[name]["queries"] / f"{kind}.scm").read_text("utf-8")
    return Query(_language(name), source)
