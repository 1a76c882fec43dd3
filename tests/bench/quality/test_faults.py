import pytest

from bench.quality.faults import faults, unit
from bench.traces.cursors import Cursor
from codekv.completion.api import Item


def judge(source: str, text: str, *, language="python", end=0, wanted="") -> tuple:
    """`source` has a bar at the cursor; `end` bytes behind it are replaced."""
    before, after = (part.encode() for part in source.split("|"))
    at = len(before)
    whole = before + wanted.encode() + after
    cursor = Cursor("k", "u", language, before + after, at, wanted.encode(), whole)
    return faults(cursor, Item("c", text, at, at + end))


BODY = "def price(item):\n    if item:\n        look(item)\n|\n    return total\n"


@pytest.mark.parametrize(
    ("source", "text", "fault"),
    [
        ("x = call(|first, second)\n", "first", "repeats-rest"),
        ("x = call(|first, second)\n", "zero, first, second", "repeats-rest"),
        (BODY, "    return total", "repeats-below"),
        (BODY, "    item = 1\n    return total", "repeats-below"),
        (BODY, "\titem = 1", "tabs"),
        (BODY, "    item = 1\n\titem = 2", "tabs"),
        (BODY, "      item = 1", "indent-unit"),
        (BODY, "    item = 1\n     item = 2", "indent-unit"),
        (BODY, "            item = 1", "indent-level"),
        (BODY, "    item = (1", "brackets"),
        (BODY, "    item = 1)", "brackets"),
        (BODY, "    item = 'a", "quotes"),
        (BODY, "    item = 1<|endoftext|>", "special-token"),
        ("if a:\n\tb = 1\n|\n\tc = 1\n", "    d = 1", "tabs"),
    ],
)
def test_a_planted_fault_is_found(source, text, fault) -> None:
    assert fault in judge(source, text)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (BODY, "    item = 1"),
        (BODY, "        look(item)"),
        (BODY, "    item = call(first,\n                second)"),
        (BODY, "    text = '''\n  any width\n'''"),
        (BODY, "    for each in item:"),
        ("x = call(|first, second)\n", "zero, "),
        ("x = call(a, |\n", "b)"),
        ("|\n", "x = 1"),
        ("x = {\n    'a': [\n|\n    ],\n}\n", "        1,"),
        ("if a:\n\tb = 1\n|\n\tc = 1\n", "\td = 1"),
    ],
)
def test_a_faultless_text_is_let_through(source, text) -> None:
    assert judge(source, text) == ()


def test_closers_that_are_replaced_must_be_given_back() -> None:
    assert judge("x = call(a, |)\n", "b)", end=1) == ()
    assert "brackets" in judge("x = call(a, |)\n", "b", end=1)


def test_what_the_author_repeated_may_be_repeated() -> None:
    source = "log(item)\n|\nlog(item)\n"
    assert judge(source, "log(item)", wanted="log(item)") == ()
    assert judge(source, "log(item)") == ("repeats-below",)


def test_a_brace_that_opens_a_body_is_no_fault() -> None:
    source = "function f(a) {\n  |\n}\n"
    assert judge(source, "if (a) {", language="javascript") == ()
    assert "brackets" in judge(source, "g({ a:", language="javascript")


def test_faults_of_the_file_itself_do_not_count() -> None:
    broken = "x = (((\n\n|\n"
    assert judge(broken, "y = 1") == ()


@pytest.mark.parametrize(
    ("source", "step"),
    [
        ("if a:\n  b\n", b"  "),
        ("if a:\n    b\n", b"    "),
        ("if a:\n\tb\n", b"\t"),
        ("f() {\n        b\n}\n", b"        "),
        ("a\n", b""),
    ],
)
def test_unit_of_indentation(source, step) -> None:
    assert unit(source.encode()) == step
