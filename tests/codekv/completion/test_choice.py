import pytest

from codekv.completion.choice import Choice, choose, starts
from codekv.completion.trim import TrimContext, finish
from codekv.structure.parser import Parser
from codekv.structure.shape import plan
from codekv.text.snapshot import Snapshot


def context_at(source, language="python"):
    before, after = source.split("|")
    data = (before + after).encode()
    tree = Parser().parse(Snapshot("u", 0, language, data), None)
    return TrimContext(tree, plan(tree, len(before.encode())))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f():\n    if a:\n        b()\n|\n", (b"", b"    ", b"        ")),
        ("def f():\n    if a:\n        b()\n    |\n", (b"", b"    ")),
        ("if a:\n\tif b:\n\t\tc()\n|\n", (b"", b"\t", b"\t\t")),
        ("def f():\n    if a:\n|\n", ()),
        ("x = 1\n|\n", ()),
        ("x = |\n", ()),
        ('x = """\n|\n"""\n', ()),
    ],
)
def test_starts_are_where_a_statement_may_begin(source, expected):
    assert starts(context_at(source)) == expected


def test_no_starts_without_grammar():
    assert starts(context_at("a\n  b\n|\n", "plaintext")) == ()


def pick(source, *texts_and_scores):
    context = context_at(source)
    choices = [Choice(finish(t.encode(), context), s) for t, s in texts_and_scores]
    return choose(context, choices)


def test_the_text_that_parses_wins_over_the_likelier_one():
    source = "def f():\n    if a:\n        b()\n|\n    else:\n        c()\n"
    assert pick(source, ("x = 1", -0.1), ("        x = 1", -0.5)) == 1


def test_among_texts_that_parse_the_likelier_one_wins():
    source = "def f():\n    if a:\n        b()\n|\n"
    assert pick(source, ("    x = 1", -0.6), ("        x = 1", -0.5)) == 1
    assert pick(source, ("    x = 1", -0.5), ("        x = 1", -0.5)) == 0


def test_on_a_broken_file_probability_decides():
    source = "def f(:\n    if a:\n        b()\n|\n    else:\n        c()\n"
    assert pick(source, ("x = 1", -0.1), ("        x = 1", -0.5)) == 0


def test_some_text_wins_over_none():
    assert pick("def f():\n    |\n", (")", -0.1), ("return 1", -2.0)) == 1
