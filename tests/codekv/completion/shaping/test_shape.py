import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.completion.shaping.shape import Shape, plan
from codekv.structure.lines import body_unit
from codekv.structure.parser import Parser
from codekv.text.snapshot import Snapshot


def plan_at(source, language="python", **options):
    before, after = source.split("|")
    data = (before + after).encode()
    tree = Parser().parse(Snapshot("u", 0, language, data), None)
    found = plan(tree, len(before.encode()), **options)
    return found, data[found.cursor_byte : found.end_byte].decode()


@pytest.mark.parametrize(
    ("language", "source", "shape", "replaced"),
    [
        ("python", "foo|bar = 1\n", "none", ""),
        ("python", "x = foo.|\n", "line", ""),
        ("python", "x = foo(|)\n", "line", ")"),
        ("python", "x = foo(bar[|]):  \n", "line", "]):  "),
        ("python", "x = |foo(y)\n", "line", ""),
        ("python", "x = 'a|'\n", "line", "'"),
        ("python", "def f():|\n", "block", ""),
        ("python", "def f():\n    |\n", "block", ""),
        ("python", "def f():\n    |\n\ndef g():\n    pass\n", "block", ""),
        ("python", "def f():\n    |\n    return 1\n", "line", ""),
        ("python", 'def f():\n    """Doc.\n    more\n    """\n    |\n', "block", ""),
        ("python", "def f():\n    # why\n    |\n", "block", ""),
        ("python", "def f():\n    x = 1\n    |\n", "line", ""),
        ("python", "def f():\n|\n", "block", ""),
        ("python", "f = lambda x:|\n", "line", ""),
        ("python", "if a:\n    b()\nelse:\n    |\nc()\n", "block", ""),
        ("python", "x = {'a': |}\n", "line", "}"),
        ("python", "x = {\n    |\n}\n", "line", ""),
        ("javascript", "function f() {|\n}\n", "block", ""),
        ("javascript", "function f() {\n  |\n}\n", "block", ""),
        ("javascript", "function f() {\n  |\n  return 1;\n}\n", "line", ""),
        ("go", "func f() {\n\t|\n}\n", "block", ""),
        ("rust", "fn f() {\n    |\n}\n", "block", ""),
        ("java", "class A {\n    void f() {\n        |\n    }\n}\n", "block", ""),
        ("c", "int f(void)\n{\n    |\n}\n", "block", ""),
        ("cpp", "class A {\n  int f() {\n    |\n  }\n};\n", "block", ""),
        ("javascript", "function f() {\n  |\n\nfunction g() {\n}\n", "block", ""),
        ("cpp", "namespace a {\n|\nint f() {\n}\n}\n", "line", ""),
        ("cpp", "A::A(int x)\n      : x_(x) {\n  |\n}\n", "block", ""),
        ("plaintext", "a |\n", "line", ""),
    ],
)
def test_shape(language, source, shape, replaced):
    found, rest = plan_at(source, language)
    assert (found.shape.value, rest) == (shape, replaced)


def test_inside_a_word_only_when_invoked():
    assert plan_at("foo|bar")[0].reason == "inside-word"
    assert plan_at("foo|bar", invoked=True)[0].shape is Shape.LINE
    assert plan_at("größ|er")[0].shape is Shape.NONE


def test_multiline_setting_overrules():
    source = "def f():\n    |\n"
    assert plan_at(source, multiline="never")[0].shape is Shape.LINE
    assert plan_at("x = |\n", multiline="always")[0].shape is Shape.BLOCK


@pytest.mark.parametrize(
    ("language", "source", "base", "line_depth", "wanted"),
    [
        ("python", "x = foo(|\n", "(", 0, 0),
        ("python", "x = foo(|\n    a,\n)\n", "(", 0, 1),
        ("python", "x = foo(|)\n", "(", 0, 0),
        ("python", "x = foo(\n    |\n)\n", "(", 1, 1),
        ("python", "x = foo(\n    a,\n    |", "(", 1, 0),
        ("python", "x = '|'\n", "'", 0, 0),
        ("python", "x = '|a(' + b)\n", "'", 0, 2),
        (
            "python",
            'def f():\n    """Doc|\n    (more\n    """\n    g(1)\n',
            '"""',
            0,
            1,
        ),
        ("javascript", "function f() {\n  if (a) {\n    |\n  }\n}\n", "{{", 2, 2),
        ("javascript", "class A {\n  f() {\n    |\n  }\n}\n", "{", 1, 1),
        ("javascript", "class A {\n  f() {\n    |\n}\n", "{", 1, 0),
    ],
)
def test_brackets_around_the_cursor(language, source, base, line_depth, wanted):
    found, _ = plan_at(source, language)
    assert b"".join(found.base).decode() == base
    assert (found.line_depth, found.wanted) == (line_depth, wanted)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        (b"", None),
        (b"def f():\n  x\n  if a:\n    y\n", b"  "),
        (b"def f():\n   x\n   if a:\n      y\n", b"   "),
        (b"def f():\n    x\n", b"    "),
        (b"def f():\n        x\n", b"        "),
        (b"def f():\n\tx\n\tif a:\n\t\ty\n", b"\t"),
    ],
)
def test_unit_of_indentation(text, unit):
    assert body_unit(text) == unit


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_text_has_a_plan(data):
    pieces = st.sampled_from(
        ["def f(", "):\n", "{", "}", "    ", "\n", "'", '"""', "#", "é", "x", "if a:\n"]
    )
    text = "".join(data.draw(st.lists(pieces, max_size=25))).encode()
    cursor = len(text.decode()[: data.draw(st.integers(0, 60))].encode())
    language = data.draw(st.sampled_from(["python", "javascript", "c", "plaintext"]))
    tree = Parser().parse(Snapshot("u", 0, language, text), None)
    found = plan(tree, cursor)
    assert found.cursor_byte == cursor <= found.end_byte <= len(text)
    assert b"\n" not in text[found.cursor_byte : found.end_byte]
