import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.completion.shaping.shape import Shape, plan
from codekv.completion.shaping.trim import FILTER_NAMES, TrimContext, finish
from codekv.structure.errors import num_errors
from codekv.structure.parser import Parser
from codekv.text.snapshot import Snapshot


def context_at(source, language="python", eol="\n", **options):
    before, after = source.split("|")
    data = (before + after).encode()
    snapshot = Snapshot("u", 0, language, data, eol)
    tree = Parser().parse(snapshot, None)
    invoked = options.get("invoked", False)
    return TrimContext(tree, plan(tree, len(before.encode()), invoked), **options)


def offered(source, raw, language="python", **options):
    return finish(raw.encode(), context_at(source, language, **options))


def applied(source, raw, language="python", **options):
    """The document after accepting what is offered."""
    context = context_at(source, language, **options)
    result = finish(raw.encode(), context)
    data = context.tree.snapshot.data
    if not result.text:
        return data.decode()
    text = result.text.replace(context.tree.snapshot.eol, "\n").encode()
    return (data[: result.start_byte] + text + data[result.end_byte :]).decode()


F = "def f():\n"


@pytest.mark.parametrize(
    ("source", "raw", "expected"),
    [
        # Brackets and quotes the editor has put right of the cursor.
        ("f(|)\n", "a, b)\n", "f(a, b)\n"),
        ("f(|)\n", "a, b\n", "f(a, b)\n"),
        ("f(|)\n", "g(x)\n", "f(g(x))\n"),
        ("f(|)\n", "g(x))\n", "f(g(x))\n"),
        ("f(|)\n", "g(x)))\n", "f(g(x))\n"),
        ("f([|])\n", "1, 2\n", "f([1, 2])\n"),
        ("f([|])\n", "1, 2])\n", "f([1, 2])\n"),
        ("f([|])\n", "1, 2]\n", "f([1, 2])\n"),
        ('f("|")\n', "abc\n", 'f("abc")\n'),
        ('f("|")\n', 'abc", 1)\n', 'f("abc", 1)\n'),
        ("def f(|):\n", "a, b\n", "def f(a, b):\n"),
        ("def f(|):\n", "a, b):\n", "def f(a, b):\n"),
        ("def f(x)|:\n", " -> int\n", "def f(x) -> int:\n"),
        ("def f|):\n", "oo(a, b\n", "def foo(a, b):\n"),
        ("x = {'a': |}\n", "1\n", "x = {'a': 1}\n"),
        ("x = [f(|)]\n", "1)]\n", "x = [f(1)]\n"),
        ("def f(|self, a):\n", "self):\n", "def f(self, a):\n"),
        ("x = f|\n    a,\n)\n", "oo(a)\n", "x = foo(\n    a,\n)\n"),
        ("def f|\n    a,\n) -> b:\n", "(c) -> [\n", "def f(\n    a,\n) -> b:\n"),
        # Nothing behind which the line below cannot stand, and no half strings.
        ("x = f|\n    a,\n)\n", "oo\n", "x = f\n    a,\n)\n"),
        (F + "    a\n|\n        b\n", "    c\n", F + "    a\n\n        b\n"),
        # Half a step, where the lines below stand on half a step too.
        (
            F + "    while a:\n|\n        c\n      d\n    e\n",
            "      if b:\n",
            F + "    while a:\n      if b:\n        c\n      d\n    e\n",
        ),
        (
            F + "    a\n|\n        b\n",
            "    if c:\n",
            F + "    a\n    if c:\n        b\n",
        ),
        ("x = |\n", '"a b\n', "x = \n"),
        ("f(|a) == [\n    1\n]\n", "b.c) == [\n", "f(b.ca) == [\n    1\n]\n"),
        ("def f(|a) -> b: ...\n", "x) -> y[z]: ...\n", "def f(xa) -> b: ...\n"),
        (
            "x = [\n    f[1, T|]],\n    2,\n]\n",
            "[a]],\n",
            "x = [\n    f[1, T[a]],\n    2,\n]\n",
        ),
        # Missing at the line's end.
        ("x = f(|\n", "a, 'b')\n", "x = f(a, 'b')\n"),
        # Closed below, so not closed again.
        ("x = f(\n    a,\n    |\n)\n", "b)\n", "x = f(\n    a,\n    b\n)\n"),
        ("x = f(|\n    b)\n", "a,\n    b)\n", "x = f(a,\n    b)\n"),
        # Rest of the line, and the line below, are not repeated.
        ("x = |foo(y)\n", "bar + foo(y)\n", "x = bar + foo(y)\n"),
        # Nothing that leaves a bracket open in front of it.
        ("x = |foo(y)\n", "bar(foo(y)\n", "x = foo(y)\n"),
        ("x = a\n|\nreturn z\n", "y = b\nreturn z\n", "x = a\ny = b\nreturn z\n"),
        ("x = a\n|\nreturn z\n", "return z\n", "x = a\n\nreturn z\n"),
        (F + "    |\n    return z\n", "return z\n", F + "    \n    return z\n"),
        (F + "    |\n    return z\n", "    return z\n", F + "    \n    return z\n"),
        # A line may be like an earlier one.
        ("a.append(1)\n|\nb()\n", "a.append(1)\n", "a.append(1)\na.append(1)\nb()\n"),
        # Nothing but closers, white space, or what is there.
        ("f(a|)\n", ")\n", "f(a)\n"),
        ("f(a|\n", ")\n", "f(a\n"),
        ("x = 1\n|\n", "    \n\n", "x = 1\n\n"),
        ("x = 1|\n", "\n\n\n\n\n", "x = 1\n"),
        # Special tokens and half characters.
        ("x = |\n", "foo<|fim_middle|>bar\n", "x = foo\n"),
        ("x = |\n", "foo<|endoftext|>", "x = foo\n"),
        # Stray spaces.
        ("x = |\n", " foo\n", "x = foo\n"),
        ("x.|\n", " foo\n", "x.foo\n"),
        ("x =|\n", " foo\n", "x = foo\n"),
        ("x = '|'\n", " foo\n", "x = ' foo'\n"),
        # Before a line: a line of its own, or the beginning of that line.
        ("|x = 1\n", "y = 2\n", "y = 2\nx = 1\n"),
        (F + "    |x = 1\n", "y = 2\n", F + "    y = 2\n    x = 1\n"),
        (F + "|    x = 1\n", "    y = 2\n", F + "    y = 2\n    x = 1\n"),
        ("|foo()\n", "y = ", "y = foo()\n"),
        ("|foo()\n", "foo()\n", "foo()\n"),
        (
            "if a:\n|if b:\n    x = 1\n",
            "    x = 1\n",
            "if a:\n    x = 1\nif b:\n    x = 1\n",
        ),
        ("x = {\n|    }\n", "    'a': 1\n", "x = {\n    'a': 1\n    }\n"),
        ("x = [|for y in z]\n", "y for y in z]\n", "x = [y for y in z]\n"),
        ("x = [a| for y in z]\n", ".b for y in z]\n", "x = [a.b for y in z]\n"),
        # The typed line once more.
        ("value = foo|\n", "value = foo(1)\n", "value = foo(1)\n"),
    ],
)
def test_what_is_already_there(source, raw, expected):
    assert applied(source, raw) == expected


@pytest.mark.parametrize(
    ("source", "raw", "expected"),
    [
        # The first line: three spaces too many, one too few, a stray one.
        (F + "    x = 1\n    |", "   y = 2\n", F + "    x = 1\n    y = 2"),
        (F + "    x = 1\n|\n", "     y = 2\n", F + "    x = 1\n    y = 2\n"),
        (F + "    x = 1\n|\n", "   y = 2\n", F + "    x = 1\n    y = 2\n"),
        (F + "    x = 1\n|\n", "    y = 2\n", F + "    x = 1\n    y = 2\n"),
        (F + "    x = 1\n|\n", "y = 2\n", F + "    x = 1\ny = 2\n"),
        # Bodies: two, three, four and eight spaces, tabs.
        ("if a:\n  b\n\n" + F + "|\n", "    x = 1\n    y = 2\n",
         "if a:\n  b\n\n" + F + "  x = 1\n  y = 2\n"),
        ("if a:\n   b\n\ndef f():|\n", "\n    if x:\n        y\n    z\n",
         "if a:\n   b\n\ndef f():\n   if x:\n      y\n   z\n"),
        ("if a:\n        b\n\ndef f():|\n", "\n    if x:\n        y\n    z\n",
         "if a:\n        b\n\ndef f():\n        if x:\n                y\n        z\n"),
        ("if a:\n\tb\n\ndef f():|\n", "\n    if x:\n        y\n    z\n",
         "if a:\n\tb\n\ndef f():\n\tif x:\n\t\ty\n\tz\n"),
        ("if a:\n\tb\n\ndef f():\n\t|\n", "if x:\n\t\ty\n\tz\n",
         "if a:\n\tb\n\ndef f():\n\tif x:\n\t\ty\n\tz\n"),
        ("if a:\n    b\n\ndef f():|\n", "\n\tif x:\n\t\ty\n\tz\n",
         "if a:\n    b\n\ndef f():\n    if x:\n        y\n    z\n"),
        # Text of strings, and arguments that are lined up, stay.
        ("def f():|\n", '\n    x = """\n a\n"""\n    y = g(1,\n          2)\n',
         'def f():\n    x = """\n a\n"""\n    y = g(1,\n          2)\n'),
    ],
)  # fmt: skip
def test_indentation_fits_the_file(source, raw, expected):
    assert applied(source, raw) == expected


@pytest.mark.parametrize(
    ("source", "raw", "expected"),
    [
        ("function f() {|\n}\n", "\n  a();\n}\n", "function f() {\n  a();\n}\n"),
        ("function f() {\n  |\n}\n", "a();\n}\n}\n", "function f() {\n  a();\n}\n"),
        ("function f() {|", "\n  a();\n}\n\ng();", "function f() {\n  a();\n}"),
        ("f(() => {|})\n", "\n  a();\n})\n", "f(() => {\n  a();\n})\n"),
        ("if (a) {\n  b();\n  |\n}\n", "}\n", "if (a) {\n  b();\n  \n}\n"),
        ("if (|) {\n}\n", "a === b\n", "if (a === b) {\n}\n"),
        ("x = |;\n", "f(1)\n", "x = f(1);\n"),
        ("x = |;\n", "f(1);\n", "x = f(1);\n"),
        ("if (a)\n|\nb();\n", "  c();\n", "if (a)\n  c();\nb();\n"),
        (
            "f(() => {\n  a();\n|\n});\n",
            "   b();\n",
            "f(() => {\n  a();\n  b();\n});\n",
        ),
        ("const s = `|`;\n", "a ${b}\n", "const s = `a ${b}`;\n"),
    ],
)
def test_braces(source, raw, expected):
    assert applied(source, raw, "javascript") == expected


@pytest.mark.parametrize("eol", ["\r\n", "\r"])
def test_line_ends_are_the_documents(eol):
    result = offered("def f():|\n", "\r\n    a\r\n    b\r\n", eol=eol)
    assert result.text == f"{eol}    a{eol}    b"


def test_whole_block_that_would_break_the_file_is_cut_back():
    result = offered("def f():|\n\n\nx = 1\n", "\n    a = 1\n    b = ('\n", is_cut=True)
    assert result.text == "\n    a = 1"


def test_half_line_at_the_length_limit_is_dropped():
    result = offered("def f():|\n", "\n    a = 1\n    b = foo.ba", is_cut=True)
    assert result.text == "\n    a = 1"
    assert "half-line" in result.filters
    assert offered("x = |\n", "foo.ba", is_cut=True).text == "foo.ba"


def test_a_lone_bracket_is_an_answer_when_asked_for():
    assert offered("f(a|\n", ")\n", invoked=True).text == ")"


def test_inside_a_word_nothing_is_offered():
    result = offered("foo|bar\n", "x\n")
    assert (result.text, result.filters) == ("", ("inside-word",))


def test_half_a_character_is_dropped():
    context = context_at("x = '|'\n")
    assert finish("é".encode() + "界".encode()[:2], context).text == "é'"


def test_unchanged_text_names_no_filter():
    assert offered("x = |\n", "foo").filters == ()


def test_repetition_is_cut():
    assert offered("x = [|\n", "0, " * 40).text.count("0") <= 2


RAW = st.lists(
    st.sampled_from(
        ["a", " = ", "f(", ")", "[", "]", "{", "}", "'", '"', "\n", "    ", "\t", "  ",
         "if b:\n", "return z\n", ":", ",", ";", "é", "<|fim_pad|>", "\r\n", "# c"]
    ),
    max_size=25,
).map("".join)  # fmt: skip
PLACES = [
    ("python", "def f(a):\n    |\n    return z\n"),
    ("python", "def f(a):\n    |\n"),
    ("python", "def f(|):\n    return z\n"),
    ("python", "x = g(|)\n"),
    ("python", "x = ['a|']\n"),
    ("python", "x = |foo(y)\n"),
    ("python", "x = (\n    |\n)\n"),
    ("python", 'def f():\n    """|"""\n'),
    ("python", "if a:\n\tb\n\nif c:\n\t|"),
    ("javascript", "function f() {\n  |\n}\n"),
    ("javascript", "const a = f(|);\n"),
    ("javascript", "f(() => {|});\n"),
    ("c", "int f(void) {\n\t|\n}\n"),
    ("plaintext", "one (|)\n"),
]


@given(st.sampled_from(PLACES), RAW, st.booleans(), st.booleans())
@settings(max_examples=400, deadline=None)
def test_promises_hold_for_any_text(place, raw, is_cut, invoked):
    language, source = place
    context = context_at(source, language, is_cut=is_cut, invoked=invoked)
    result = finish(raw.encode(), context)
    data = context.tree.snapshot.data
    assert set(result.filters) <= {*FILTER_NAMES, "inside-word"}
    assert result.start_byte == context.plan.cursor_byte
    assert result.end_byte in (
        result.start_byte,
        len(data[: result.start_byte]) + len(data[result.start_byte :].split(b"\n")[0]),
    )
    assert "\r" not in result.text
    assert "<|" not in result.text
    if not result.text:
        return
    rest = data[result.end_byte :].split(b"\n")[0]
    assert rest.strip() or result.text == result.text.rstrip()
    typed_line = data[: result.start_byte].rsplit(b"\n", 1)[-1]
    if rest.strip() and not typed_line.strip():
        return
    below = data[result.end_byte :].split(b"\n")[1:2]
    typed = data[: result.start_byte].rsplit(b"\n")[-1]
    lines = (typed.decode() + result.text).split("\n")
    if below and below[0].strip(b"})]; "):
        assert below[0].decode() not in lines[1:]
    if not invoked:
        assert result.text.strip(")]}>\"'`,;: \t\n")
    if context.plan.shape is Shape.BLOCK and not context.tree.has_error:
        after = (
            data[: result.start_byte] + result.text.encode() + data[result.end_byte :]
        )
        tree = Parser().parse(Snapshot("u", 1, language, after), None)
        assert num_errors(tree) == 0


@given(st.sampled_from(PLACES), RAW)
@settings(max_examples=200, deadline=None)
def test_trimming_twice_changes_nothing_more(place, raw):
    language, source = place
    context = context_at(source, language)
    # A heap of quotes can be read in more than one way.
    raw = raw.replace("'", "").replace('"', "")
    once = finish(raw.encode(), context)
    if once.text:
        again = finish(once.text.encode(), context)
        # One may keep what the other writes again: the file is the same.
        assert with_answer(context, again) == with_answer(context, once)


def with_answer(context, found):
    data = context.tree.snapshot.data
    return data[: found.start_byte] + found.text.encode() + data[found.end_byte :]


def test_the_first_sentence_of_a_long_docstring_is_one_by_itself():
    raw = '"""A b.\n\n    C d e'
    assert offered("a = 1\n|\n", raw, is_cut=True).text == '"""A b."""'
    assert offered("a = 1\n|\n", '"""A b c\n d', is_cut=True).text == ""


def test_the_page_of_rules_lists_every_filter_in_order():
    page = (Path(__file__).parents[4] / "docs/design/text-rules.md").read_text("utf-8")
    listed = re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)
    assert tuple(listed) == FILTER_NAMES
