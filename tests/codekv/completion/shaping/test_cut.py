"""Where unfinished texts are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codekv.completion.shaping.cut import sensible_cut
from codekv.structure.balance import balance
from grammars.registry import grammar_for

PYTHON = grammar_for("python")


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("", ""),
        ("val", ""),
        ("value ", "value"),
        ("value + oth", "value"),
        ("value + other ", "value + other"),
        ("call(one, two", ""),
        ("call(one, two)", "call(one, two)"),
        ("call(one, two).ne", ""),
        ("x = call(one, two", "x"),
        ("x = call(one) + 1", "x = call(one)"),
        ("one, two, thr", "one, two"),
        ("one, two)", "one, two)"),
        ("one, 'two", "one"),
        ("one, 'two words', thr", "one, 'two words'"),
        ("self.items", ""),
        ("self.items ", "self.items"),
        ("3.1", ""),
        ("a[0", ""),
        ("a[0] ", "a[0]"),
        ("first\n    second\n    thi", "first\n    second"),
        ("größe + x", "größe"),
    ],
)
def test_a_text_is_cut_at_its_last_sensible_end(text, cut) -> None:
    assert sensible_cut(PYTHON, b"", text.encode()).decode() == cut


@pytest.mark.parametrize(
    ("head", "text", "cut"),
    [
        (b"x = 'some ", b"words and ", b""),
        (b"x = 'some ", b"words' + one ", b"words' + one"),
        (b"print(", b"one, two, th", b"one, two"),
    ],
)
def test_the_line_before_the_text_counts(head, text, cut) -> None:
    assert sensible_cut(PYTHON, head, text) == cut


TEXTS = st.text(st.sampled_from("ab1 .,()[]{}'\"\\\n=ä#:")).map(str.encode)


@given(TEXTS, TEXTS, st.sampled_from([PYTHON, grammar_for("rust"), None]))
def test_a_cut_begins_the_text_and_leaves_nothing_open(head, text, grammar) -> None:
    head = head.replace(b"\n", b"")
    cut = sensible_cut(grammar, head, text)

    assert text.startswith(cut)
    assert cut == cut.rstrip()
    rest = text[len(cut) :]
    if cut and cut[-1:] not in b")]}'\"":
        assert rest[:1] not in b"ab1."
    if not balance(grammar, head).opened:
        assert not balance(grammar, cut).opened


@given(TEXTS)
def test_more_text_never_takes_back_what_was_offered(text) -> None:
    shorter = [sensible_cut(PYTHON, b"", text[:end]) for end in range(len(text))]
    whole = sensible_cut(PYTHON, b"", text)
    assert all(text.startswith(cut) for cut in shorter)
    assert len(whole) <= len(text)
