import re
from dataclasses import replace
from itertools import accumulate

import pytest

from codekv.completion.shaping.choice import (
    Choice,
    again,
    begun,
    breaks,
    choose,
    starts,
)
from codekv.completion.shaping.shape import plan
from codekv.completion.shaping.trim import TrimContext, finish
from codekv.structure.parser import Parser
from codekv.testing.model import ByteTokenizer
from codekv.text.snapshot import Snapshot
from codekv.tokens.tokenizer import Encoding


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
        ("def f():\n    if a:\n|\n", (b"        ",)),
        ("x = 1\n|\n", (b"",)),
        ("def f():\n    x = [\n        a,\n|\n    ]\n", ()),
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


@pytest.mark.parametrize(
    ("source", "texts", "best"),
    [
        # Nothing opens the line below.
        ("if a:\n    b()\n|\n    c()\n", ("d()", "    d()"), 1),
        ("if a:\n    b()\n|\n    c()\n", ("# d", "d()"), 0),
        ("if a:\n    b()\n|\n    c()\n", ("if d:", "    d()"), 0),
        # A body that is still to come is a lesser fault.
        ("if a:\n    b()\n|\nc()\n", ("    if d:", "d()"), 1),
        ("if a:\n    b()\n|\n    c()\n", ("d()", "    if d:"), 1),
        ("if a:\n    b()\n|\n    c()\n", ("d(1,\n  2)", "    d()"), 1),
    ],
)
def test_indentation_that_nothing_opens_costs(source, texts, best):
    assert (
        pick(source, *((text, -0.5 - i / 10) for i, text in enumerate(texts))) == best
    )


def test_a_text_that_is_far_likelier_may_break_the_file():
    source = "if a:\n    b()\n|\nc()\n"
    assert pick(source, ("    if d:", -1.0), ("d()", -6.0)) == 0


class Words(ByteTokenizer):
    """Joins a space to the letter behind it, and spaces before that."""

    def encode(self, data):
        parts = re.findall(rb" +(?= \w)| ?\w|\s", data)
        ends = tuple(accumulate(map(len, parts)))
        return Encoding(tuple(range(len(parts))), ends)


def test_forced_white_space_leaves_the_word_its_space():
    context = context_at("if a:\n    b()\n|\nc()\n")
    found = begun(context, b"\n", Words())

    assert [(start.tokens, start.lead) for start in found] == [
        ((0,), b""),
        ((0, 1), b" "),
    ]


@pytest.mark.parametrize(
    ("source", "depths"),
    [
        ("def f():\n    a()\n|\n        b()\n", {0, 4}),
        ("def f():\n    if a:\n        b()\n|\n            c()\n", {0, 4, 8}),
        ("def f():\n    if a:\n        b()\n    |\n        c()\n", None),
        ("def f():\n    a()\n|\n    b()\n", None),
        ("def f():\n    if a:\n        b()\n|\n    else:\n        c()\n", None),
    ],
)
def test_where_only_a_header_will_do_second_choices_are_tried(source, depths):
    found = begun(context_at(source), b"\n", ByteTokenizer())
    headers = {len(start.tokens) - 1 for start in found if start.rank}

    assert headers == (depths or set())
    assert not any(start.allowance for start in found if depths)


def test_what_is_as_deep_as_the_line_below_has_an_allowance():
    source = "def f():\n    if a:\n        b()\n|\n        c()\n"
    found = begun(context_at(source), b"\n", ByteTokenizer())

    assert [start.allowance > 0 for start in found] == [False, False, True]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("    d()", False), ("d()", True), ("    d(", True), ("", True)],
)
def test_what_breaks_a_file(text, expected):
    context = context_at("if a:\n    b()\n|\n    c()\n")
    trimmed = replace(finish(text.encode(), context), text=text)
    assert breaks(context, trimmed) is expected


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("def f():\n|\n    b()\n", "    # why", True),
        ("def f():\n    # how\n|\n    b()\n", "    # why", False),
        ("def f():\n|\n    b()\n", "    # why\n    a()", False),
        ("def f():\n|\n    b()\n", "    a()  # why", False),
        ("function f() {\n|\n    b()\n}\n", "    // why", True),
    ],
)
def test_a_comment_where_none_goes_on_is_a_fault(source, text, expected):
    language = "javascript" if "function" in source else "python"
    context = context_at(source, language)
    trimmed = replace(finish(text.encode(), context), text=text)
    assert breaks(context, trimmed) is expected


DOCUMENTED = 'def f():\n    """Say\n    why.\n    """\n|\ndef g():\n    return 1\n'


@pytest.mark.parametrize(
    ("text", "expected"), [("    return 2", False), ("x = f()", True)]
)
def test_a_body_with_nothing_but_its_documentation_wants_more(text, expected):
    context = context_at(DOCUMENTED)
    trimmed = replace(finish(text.encode(), context), text=text)
    assert breaks(context, trimmed) is expected
    found = begun(context, b"", ByteTokenizer())
    assert [start.allowance > 0 for start in found] == [False, True]


def test_a_body_with_a_statement_may_be_left():
    source = DOCUMENTED.replace("|", "    a = 1\n|")
    context = context_at(source)
    assert not breaks(context, replace(finish(b"x", context), text="x = f()"))
    assert not any(start.allowance for start in begun(context, b"", ByteTokenizer()))


def test_a_text_that_breaks_something_has_others():
    source = "def f():\n    if a:\n        b()\n|\n    c()\n"
    context = context_at(source)
    first = replace(finish(b"    if d:", context), text="    if d:")
    found = again(context, b"", ByteTokenizer(), first)

    assert [(len(start.tokens), start.rank) for start in found] == [
        (0, 0),
        (4, 0),
        (8, 0),
        (4, 1),
        (4, 2),
        (4, 3),
    ]


def test_nothing_breaks_a_broken_file():
    context = context_at("if a(:\n    b()\n|\n    c()\n")
    assert not breaks(context, finish(b"d()", context))


def test_on_a_broken_file_probability_decides():
    source = "def f(:\n    if a:\n        b()\n|\n    else:\n        c()\n"
    assert pick(source, ("x = 1", -0.1), ("        x = 1", -0.5)) == 0


def test_some_text_wins_over_none():
    assert pick("def f():\n    |\n", (")", -0.1), ("return 1", -2.0)) == 1
