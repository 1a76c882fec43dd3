import ast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from codekv.completion.shaping.levels import fits
from grammars.registry import grammar_for

PYTHON = grammar_for("python")


def fit(source):
    """Where `|` begins the text and a second one ends it."""
    before, text, below = source.split("|")
    return fits(PYTHON, before.encode(), text.encode(), below.encode())


@pytest.mark.parametrize(
    "source",
    [
        "if a:\n|    b\n|    c\n",
        "if a:\n    b\n|c\n|d\n",
        "if a:\n    if b:\n        c\n|    d\n|e\n",
        "a\n|b\n|c\n",
        "a = |1|\nb\n",
        "a\n|if b:\n|    c\n",
        "a\n|if b:|\n    c\n",
        # A header whose body is still to come.
        "a\n|if b:\n|c\n",
        # Brackets, strings, remarks and blank lines have no level.
        "a\n|b(\n        c,\n  d)\n|e\n",
        'a\n|b = """\n  c\n"""\n|d\n',
        "a\n|    # b\n\n   \nc\n|d\n",
        "if (a and\n        b):\n|    c\n|d\n",
        "a = b + \\\n    c\n|d\n|e\n",
        # What was wrong before, and what is wrong far below, is another's.
        "  a\n|  b\n|",
        "a\n|b\n|c\n    d\n",
        "if a:\n|    b\n|    c\n        d\ne\n",
    ],
)
def test_fits(source):
    assert fit(source)


@pytest.mark.parametrize(
    "source",
    [
        "a\n|    b\n|c\n",
        "a\n|b\n|    c\n",
        "a\n|b|\n    c\n",
        "if a:\n        b\n|    c\n|d\n",
        "if a:\n|        b\n|        c\n    d\n",
        "class a:\n    b\n|    def c():\n|            d\n        e\n",
    ],
)
def test_does_not_fit(source):
    assert not fit(source)


LINES = st.lists(
    st.tuples(
        st.sampled_from([0, 2, 4]), st.sampled_from(["a", "if a:", "b = (", ")"])
    ),
    min_size=3,
    max_size=7,
)


@given(LINES, st.data())
@example([(0, "if a:"), (4, "a"), (2, "a")], None)
@settings(max_examples=300, deadline=None)
def test_what_python_takes_fits(lines, data):
    source = "".join(f"{' ' * columns}{line}\n" for columns, line in lines)
    try:
        ast.parse(source)
    except SyntaxError:
        return
    at = [0, *(n + 1 for n, char in enumerate(source) if char == "\n")]
    cuts = sorted(data.draw(st.sampled_from(at)) for _ in range(2)) if data else at[:2]
    whole = source.encode()
    assert fits(PYTHON, whole[: cuts[0]], whole[cuts[0] : cuts[1]], whole[cuts[1] :])
