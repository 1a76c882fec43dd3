import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.completion.shaping.shape import plan
from codekv.completion.shaping.stop import StopChecker, repetition
from codekv.structure.parser import Parser
from codekv.text.snapshot import Snapshot


def checker_at(source, language="python", **options):
    before, after = source.split("|")
    data = (before + after).encode()
    tree = Parser().parse(Snapshot("u", 0, language, data), None)
    return StopChecker(tree, plan(tree, len(before.encode())), **options)


def kept(source, text, language="python", **options):
    """What is left of `text` when it is fed byte by byte until it is complete."""
    checker = checker_at(source, language, **options)
    data = text.encode()
    for n in range(1, len(data) + 1):
        if checker.feed(data[:n]):
            return data[: checker.end(data[:n])].decode()
    return None


FUNCTION = "    a = 1\n    return a\n"


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("x = |\n", "1\ny = 2\n", "1"),
        ("x = foo(|\n", "a,\n    b)\ny = 2\n", "a,\n    b)"),
        ("x = foo(|\n    b)\n", "a,\n    c)\n", "a,"),
        ("x = foo(\n    |\n    b)\n", "a,\n    c)\n", "a,"),
        ("x = foo(\n    a,\n    |", "b,\n    c,\n", "b,"),
        ("x = foo(|)\n", "a)\ny\n", "a)"),
        ("x = 1|\n", "\ny = 2\nz = 3\n", "\ny = 2"),
        ("x = {|\n", "\n    'a': 1,\n}\ny\n", "\n    'a': 1,\n}"),
        ("|\n", "if x:\n    y\n", "if x:"),
        ("def f():\n|", FUNCTION + "\n\ndef g():\n", FUNCTION + "\n"),
        ("def f():\n    |", FUNCTION[4:] + "x = 1\n", FUNCTION[4:-1]),
        ("def f():|", "\n" + FUNCTION + "f()", "\n" + FUNCTION[:-1]),
        ("class A:\n    def f(self):\n        |", "x()\n    def g", "x()"),
        ("def f():\n    |", "x = [\n  1,\n    ]\n    return x\n\ny", None),
        ("def f():\n    |", 'x = """\na\n"""\n    y\nz', 'x = """\na\n"""\n    y'),
        ("def f():\n    |\nx = 1\n", "a()\nx", "a()"),
        ("x = a\n|\nreturn z\n", "return z\n", ""),
        ("x = a\ny.app|\ny.append(1)\n", "end(1)\n", ""),
        ("def f():\n    |", "a\n    b\n    c\n    d\n", "a\n    b\n    c"),
    ],
)
def test_python_ends(source, text, expected):
    lines = {"max_lines": 3} if text.endswith("    d\n") else {}
    if expected is None:
        assert kept(source, text + "\n").startswith("x = [\n  1,\n    ]\n    return x")
    else:
        assert kept(source, text, **lines) == expected


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("  x = |\n", "1;\n  y = 2;\n", "1;"),
        ("|\n", "if (x) {\n  y\n}\n", "if (x) {"),
        ("function f() {|", "\n  a();\n}\n\ng()", "\n  a();\n}"),
        ("function f() {|\n}\n", "\n  a();\n}\n", "\n  a();"),
        ("function f() {\n  |\n}\n", "a();\n}\n", "a();"),
        ("a.b(() => {\n  |", "c();\n});\nd();\n", "c();\n});"),
        ("if (a) {\n  |", "b();\n} else {\n  c();\n}\n", "b();\n}"),
        ("f(|\n", "{\n", "{"),
    ],
)
def test_braces_end(source, text, expected):
    assert kept(source, text, "javascript") == expected


def test_body_that_is_not_indented():
    source = "namespace a {\n\n|\n\n}  // namespace a\n"
    assert kept(source, "class B;\n\n}  // namespace a\n", "cpp") == "class B;\n"


def test_directives_and_labels_do_not_end_a_block():
    text = "a();\n#ifdef X\n  b();\n#endif\nout:\n  c();\n}\n"
    assert kept("int f(void) {\n  |\n}\n", text, "c") == text[:-3]


def test_text_goes_on_while_it_is_incomplete():
    assert kept("x = foo(|\n", "a,\n    b,\n    c") is None
    assert kept("def f():\n    |", "a = 1\n    b = 2\n") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"a b " * 6, b"a b "),
        (b"x = 0, " + b"0, " * 20, b"x = 0,"),
        (b"foo(1)\nfoo(1)\nfoo(1)\n", b"foo(1)"),
        (b"a(1)\nb(2)\na(1)\nb(2)\na(1)\nb(2)\n", b"a(1)\nb(2)"),
        (b"# " + b"-" * 70, None),
        (b"# " + b"-" * 200, b"# -"),
        (b"}\n}\n}\n", None),
        (b"aaaa bbbb cccc", None),
        (b" " * 200, None),
    ],
)
def test_repetition(text, expected):
    end = repetition(text)
    assert (None if end is None else text[:end]) == expected


def test_a_decorator_is_not_a_statement():
    checker = checker_at("a = 1|\n", "python")
    assert checker.end(b"\n\n@b\n") is None
    assert checker.end(b"\n\n@b\ndef c():\n") == len("\n\n@b\ndef c():")


@pytest.mark.parametrize("text", [b"\n" * 4, b"\n" * 4 + b"a", b"\n" * 4 + b"a\n"])
def test_nothing_follows_many_blank_lines(text):
    assert checker_at("def f():\n    |", "javascript").end(text) == 0


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_a_text_once_complete_stays_complete(data):
    pieces = st.sampled_from(
        ["a", "(", ")", "{", "}", "\n", "    ", "if b:\n", "'", "x = 1\n", "return\n"]
    )
    source = data.draw(st.sampled_from(["def f():\n    |", "x = f(|)\n", "a\n|\nb\n"]))
    language = data.draw(st.sampled_from(["python", "javascript", "plaintext"]))
    checker = checker_at(source, language)
    text = "".join(data.draw(st.lists(pieces, max_size=30))).encode()
    for n in range(len(text)):
        end = checker.end(text[:n])
        if end is not None:
            assert 0 <= end <= n
            later = checker.end(text)
            assert later is not None or repetition(text[:n]) is not None
            break
