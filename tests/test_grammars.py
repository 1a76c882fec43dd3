from pathlib import Path

import pytest

from grammars import registry
from grammars.registry import grammar_for, grammar_names, language_id

FOLDER = Path(registry.__file__).parent
NAMES = grammar_names()


@pytest.mark.parametrize("name", NAMES)
def test_every_language_has_its_queries_and_a_fixture(name):
    grammar = grammar_for(name)
    assert grammar is not None
    for kind in ("segments", "classes", "imports"):
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
