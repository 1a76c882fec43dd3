"""Language ids to grammars and compiled queries.

Everything that differs between languages is data: `language.toml` and the `.scm` files
in the language's folder, above what its block style says (`blocks/`). Knows no
documents and no trees.
"""

from __future__ import annotations

import functools
import importlib
import re
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any, Literal

from tree_sitter import Language, Query

from grammars.tables import language_tables, query_path, style_signs, style_table

BlockStyle = Literal["braces", "indentation", "keywords", "lines"]

# A text shows its style in its first hundred lines; the guess is made at every
# keystroke and takes half a millisecond for so many bytes.
_SAMPLE = 1 << 12
# Prose has a line here and there that ends with a colon or a semicolon; code of any
# style has many. Chosen by hand, from README files and programs.
_MIN_SIGNS = 3
_MIN_SHARE = 0.1
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
    join: re.Pattern[bytes]

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

    def joins(self, text: bytes) -> bool:
        """Whether a text goes on with the expression before it: an operator, a dot."""
        return self.join.match(text[:_MAX_LINE]) is not None

    def is_join(self, word: bytes) -> bool:
        """Whether a word is nothing but an operator between expressions."""
        return self.join.fullmatch(word[:_MAX_LINE]) is not None

    def opens_body(self, line: bytes) -> bool:
        """Whether an indented body must follow this line."""
        return self.opener.search(line[-_MAX_LINE:]) is not None


@dataclass(frozen=True, slots=True)
class Template:
    """Strings that hold code.

    Attributes:
        prefix: What stands before their quote, as a pattern; empty if all strings
            with these quotes hold code.
        quotes: What they begin and end with.
        code: What begins code in them, as a pattern; its last byte is the bracket.
        literal: What looks so and is text, as a pattern; or empty.
    """

    prefix: bytes
    quotes: tuple[bytes, ...]
    code: bytes
    literal: bytes


@dataclass(frozen=True, slots=True)
class OutlineStyle:
    """How a definition is written whose body is left out.

    Attributes:
        elided: Behind a function's header.
        begins: Behind a class's header.
        ends: On a line of its own behind a class's members; empty for no line.
        step: In front of each member.
    """

    elided: bytes
    begins: bytes
    ends: bytes
    step: bytes


@dataclass(frozen=True, eq=False, slots=True)
class Grammar:
    """One language: its parser tables and the rules that go with it.

    Attributes:
        name: The folder's name; empty for a language known by its block style alone.
        ending: What the names of its files mostly end with, the dot included.
        language: The parser's tables; None for a language known by block style alone.
        kin: The first language of those that say `like` one another; their files may
            use each other's definitions.
        block: How bodies are told: by braces, indentation, keywords or not at all.
        lines: Patterns for single lines.
        opaque: Node types whose lines are text rather than code.
        comment: What starts a comment that ends with its line.
        quotes: What strings on one line begin and end with.
        long_quotes: The same for strings that may run over several lines.
        template: Strings that hold code, if the language has any.
        raw: A string whose end depends on its beginning, as a pattern; or empty.
        literal: What is passed over whole when brackets and quotes are looked for, such
            as character literals and escapes, as a pattern; or empty.
        remark: What a comment of several lines begins and ends with, if there are any.
        can_nest: A named function may stand inside another one.
        outline: How a definition is written whose body is left out.
        has_imports: Its files may use one another's definitions (`imports.scm`).
    """

    name: str
    ending: str
    kin: str
    block: BlockStyle
    language: Language | None
    lines: LineRules
    opaque: frozenset[str]
    comment: bytes
    quotes: tuple[bytes, ...]
    long_quotes: tuple[bytes, ...]
    template: Template | None
    raw: bytes
    literal: bytes
    remark: tuple[bytes, ...]
    can_nest: bool
    outline: OutlineStyle
    has_imports: bool

    @property
    def is_indented(self) -> bool:
        """Whether indentation alone ends a body."""
        return self.block == "indentation"

    def comment_line(self, text: str) -> str:
        """Write a comment with its line end; empty if the language has no comments."""
        if self.comment:
            return f"{self.comment.decode()} {text}\n"
        if not self.remark:
            return ""
        begin, end = self.remark
        return f"{begin.decode()} {text} {end.decode()}\n"

    def query(self, kind: str) -> Query:
        """Compile `<language>/<kind>.scm`; compiled once per process."""
        return _query(self.name, kind)


def grammar_for(language: str, file_name: str = "") -> Grammar | None:
    """Find the grammar of a language id, else of a file name.

    Returns:
        None for a language without a grammar; `guessed_grammar` may know its style.
    """
    name = _names().get(language.lower())
    if name is None:
        base = file_name.rsplit("/", 1)[-1].lower()
        name = next((n for pattern, n in _patterns() if fnmatch(base, pattern)), None)
    return _grammar(name) if name else None


def guessed_grammar(data: bytes) -> Grammar | None:
    """Guess rules for a text of an unknown language, from its lines alone.

    The block style with the most lines that show it is taken, with the comment leader
    that the most lines begin with.

    Returns:
        A grammar without parser tables and queries; None for a text that shows no
        block style, such as prose.
    """
    lines = [line for line in data[:_SAMPLE].split(b"\n") if line.strip()]
    lines = [line[:_MAX_LINE].lstrip() for line in lines]
    counts = {
        style: sum(sign.match(line) is not None for line in lines)
        for style, sign in style_signs().items()
    }
    best = max(counts, key=lambda style: counts[style])
    if counts[best] < max(_MIN_SIGNS, _MIN_SHARE * len(lines)):
        return None
    leaders = {
        # Directives and attributes may begin with the same signs, but no space follows.
        leader: sum(line.startswith(f"{leader} ".encode()) for line in lines)
        for leader in (style_table(best)["comment"], *_leaders())
    }
    common = max(leaders, key=lambda leader: leaders[leader])
    return _style_grammar(best, common)


def language_id(file_name: str) -> str:
    """Guess an editor's language id from a file name; empty if there is no guess."""
    grammar = grammar_for("", file_name)
    return language_tables()[grammar.name]["ids"][0] if grammar else ""


def language_ids() -> tuple[str, ...]:
    """Editors' ids of all languages that have a grammar."""
    return tuple(_names())


def grammar_names() -> tuple[str, ...]:
    """Names of all languages that have a grammar."""
    return tuple(language_tables())


@functools.cache
def _leaders() -> tuple[str, ...]:
    """What comments begin with, over all languages."""
    return tuple(
        dict.fromkeys(t["comment"] for t in language_tables().values() if t["comment"])
    )


@functools.cache
def _names() -> dict[str, str]:
    return {i: name for name, table in language_tables().items() for i in table["ids"]}


@functools.cache
def _patterns() -> list[tuple[str, str]]:
    return [
        (p, name) for name, table in language_tables().items() for p in table["files"]
    ]


@functools.cache
def _grammar(name: str) -> Grammar:
    return _made(name, language_tables()[name], _language(name))


@functools.cache
def _style_grammar(style: str, comment: str) -> Grammar:
    table = style_table(style) | {"kin": "", "files": [""], "comment": comment}
    return _made("", table, None)


def _made(name: str, table: dict[str, Any], language: Language | None) -> Grammar:
    return Grammar(
        name=name,
        ending=table["files"][0].removeprefix("*"),
        kin=table["kin"],
        block=table["block"],
        language=language,
        lines=LineRules(
            function=re.compile(table["function"].encode()),
            container=re.compile(table["class"].encode()),
            lead=re.compile(table["lead"].encode()),
            skip=re.compile(table["skip"].encode()),
            opener=re.compile(table["opener"].encode()),
            join=re.compile(table["join"].encode()),
        ),
        opaque=frozenset(table["opaque"]),
        comment=table["comment"].encode(),
        quotes=tuple(text.encode() for text in table["quotes"]),
        long_quotes=tuple(text.encode() for text in table["long"]),
        template=_template(table.get("template")),
        raw=table.get("raw", "").encode(),
        literal=table.get("literal", "").encode(),
        remark=tuple(text.encode() for text in table["remark"]),
        can_nest=table["nested"],
        outline=OutlineStyle(**{k: v.encode() for k, v in table["outline"].items()}),
        has_imports=bool(name) and query_path(name, "imports").exists(),
    )


def _template(table: dict[str, Any] | None) -> Template | None:
    if table is None:
        return None
    return Template(
        table.get("prefix", "").encode(),
        tuple(text.encode() for text in table["quotes"]),
        table["code"].encode(),
        table.get("literal", "").encode(),
    )


@functools.cache
def _language(name: str) -> Language:
    table = language_tables()[name]
    module = importlib.import_module(table["package"])
    return Language(getattr(module, table["entry"])())


@functools.cache
def _query(name: str, kind: str) -> Query:
    return Query(_language(name), query_path(name, kind).read_text("utf-8"))
