from pathlib import Path

import pytest

from grammars import registry
from grammars.registry import (
    grammar_for,
    grammar_names,
    guessed_grammar,
    language_id,
)

FOLDER = Path(registry.__file__).parent
NAMES = grammar_names()


@pytest.mark.parametrize("name", NAMES)
def test_every_language_has_its_queries_and_a_fixture(name):
    grammar = grammar_for(name)
    assert grammar is not None
    kinds = ["segments", "classes"] + ["imports"] * grammar.has_imports
    for kind in kinds:
        assert grammar.query(kind).pattern_count > 0
        assert grammar.query(kind) is grammar.query(kind)
    assert list((Path(__file__).parent / "languages" / name).glob("sample.*"))


def test_every_folder_belongs_to_a_language():
    folders = {p.name for p in FOLDER.iterdir() if (p / "segments.scm").exists()}
    assert folders <= set(NAMES)


@pytest.mark.parametrize(
    ("language", "file", "name"),
    [
        ("python", "", "python"),
        ("Python", "a.js", "python"),
        ("javascriptreact", "", "javascript"),
        ("typescriptreact", "", "tsx"),
        ("", "file:///x/A.TSX", "tsx"),
        ("", "file:///x/a.hpp", "cpp"),
        ("unknown", "a.rs", "rust"),
        ("unknown", "Makefile", None),
        ("", "", None),
    ],
)
def test_languages_are_found_by_id_then_by_file_name(language, file, name):
    grammar = grammar_for(language, file)
    assert (grammar.name if grammar else None) == name


def test_language_ids_of_file_names():
    assert language_id("a/b.py") == "python"
    assert language_id("a.tsx") == "typescriptreact"
    assert language_id("LICENSE") == ""


@pytest.mark.parametrize("name", NAMES)
def test_line_patterns_are_fast_on_any_line(name):
    rules = grammar_for(name).lines
    for unit in (b"a", b" ", b"(", b"a ", b"a(", b"<", b"a,", b"::", b"\t*"):
        line = unit * 50_000
        rules.begins_function(line)
        rules.begins_container(line)
        rules.is_lead(line)
        rules.is_skipped(line)
        rules.opens_body(line)


def test_what_takes_nothing_from_other_files_is_no_program():
    assert {n for n in NAMES if not grammar_for(n).has_imports} == {
        "css",
        "html",
        "json",
        "markdown",
        "toml",
        "yaml",
    }


@pytest.mark.parametrize("name", NAMES)
def test_block_styles_are_guessed_from_lines_alone(name):
    (sample,) = (Path(__file__).parent / "languages" / name).glob("sample.*")
    grammar, guess = grammar_for(name), guessed_grammar(sample.read_bytes())
    if grammar.block == "lines" or name == "json":
        return
    # A shell script has braces and closing words alike.
    assert guess.block in {grammar.block, "keywords" if name == "bash" else ""}
    assert guess.comment == grammar.comment or not grammar.comment
    assert guess.language is None


@pytest.mark.parametrize("text", [b"", b"Dear all,\n\nsee below:\n\n- a;\n- b\n" * 9])
def test_prose_has_no_block_style(text):
    assert guessed_grammar(text) is None


def test_comments_are_written_as_the_language_has_them():
    assert grammar_for("python").comment_line("a") == "# a\n"
    assert grammar_for("html").comment_line("a") == "<!-- a -->\n"
    assert grammar_for("json").comment_line("a") == ""
