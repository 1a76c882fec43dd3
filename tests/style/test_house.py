"""What a reader has to carry: one name for one thing, a reason for every number."""

import ast

import pytest

from bench.micro.house import (
    ROOT,
    SourceModule,
    bare_numbers,
    language_places,
    logical_lines,
    main,
    names_in_use_twice,
    read_modules,
)


def module(text):
    return SourceModule("a.py", text, ast.parse(text))


def test_every_class_name_means_one_thing():
    packages = ("codekv", "lsp", "bench", "grammars")
    assert names_in_use_twice(read_modules(ROOT, packages)) == {}


def test_numbers_have_reasons():
    packages = ("codekv", "lsp", "bench")
    places = [p for each in read_modules(ROOT, packages) for p in bare_numbers(each)]
    assert places == [], "give the new number its reason"


def test_names_in_use_twice_are_found_with_their_modules():
    one = SourceModule("a.py", "", ast.parse("class Cut: pass\nclass Only: pass"))
    two = SourceModule("b.py", "", ast.parse("class Cut: pass"))
    assert names_in_use_twice([one, two]) == {"Cut": ["a.py", "b.py"]}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("LIMIT = 40\n", 1),
        ("LIMIT = 40\n'''Lines on a screen.'''\n", 0),
        ("LIMIT = 40  # lines on a screen\n", 0),
        ("# Lines on a screen.\nLIMIT = 40\n", 0),
        ("SIZES = (8, 16)\n", 1),
        ("LIMIT: float = -2.5 * 10\n", 1),
        ("NAME = 'x'\nFLAG = True\nNONE = 0\n", 0),
        ("def f():\n    limit = 40\n", 0),
    ],
)
def test_a_number_needs_a_comment_or_a_docstring(text, count):
    assert len(list(bare_numbers(module(text)))) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("x = language == 'python'\n", 1),
        ("_PYTHON_HEADER = 1\n", 1),
        ("'''A docstring may speak of python.'''\n", 0),
        ("import pathlib\ngoes = 1\n", 0),
    ],
)
def test_places_that_name_a_language_are_found(text, count):
    assert len(list(language_places(module(text)))) == count


def test_lines_are_logical_ones():
    text = "'''Doc.'''\ndef f(\n    a,\n    b,\n):\n    '''Doc.'''\n    return a; b\n"
    assert logical_lines(module(text)) == 3


def test_the_figures_are_printed_side_by_side(capsys, tmp_path):
    assert main([str(ROOT), str(ROOT)]) == 0
    shown = capsys.readouterr().out
    assert "logical lines" in shown
    assert "class names in use twice" in shown
    assert main([str(tmp_path)]) == 2
