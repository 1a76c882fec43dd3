import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.structure.anchor import find_anchor
from codekv.structure.parser import Parser
from codekv.text.snapshot import Snapshot

SOURCE = '''\
"""Doc."""
import os
import sys

LIMIT = 3
TABLE = {
    "a": 1,

    "b": 2,
}


@decorator
@other(
    1,
)
def first(a, b=(1, 2)):
    """Doc
of first.
    """
    x = lambda y: y
# a comment at the margin
    if x:
        text = """
def fake():
    pass
"""
        return x

    return a


class Thing(Base):
    """A thing."""

    field = 1

    def method(
        self,
        arg,
    ) -> int:
        def inner():
            return 1
        return inner()

    async def other(self):
        pass


if __name__ == "__main__":
    first(1)
'''


def anchor_line(source: str, marker_line: int, column: int | None = None) -> str:
    lines = source.split("\n")
    column = len(lines[marker_line]) if column is None else column
    cursor = len(
        "\n".join([*lines[:marker_line], lines[marker_line][:column]]).encode()
    )
    tree = Parser().parse(Snapshot("u", 0, "python", source.encode()), None)
    at = find_anchor(tree, cursor)
    data = source.encode()
    assert at == 0 or data[at - 1 : at] == b"\n"
    assert at <= cursor
    return data[at:].split(b"\n")[0].decode()


def line_of(text: str) -> int:
    return next(i for i, line in enumerate(SOURCE.split("\n")) if text in line)


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("import sys", '"""Doc."""'),
        ("LIMIT", "LIMIT = 3"),
        ('"b": 2', "LIMIT = 3"),
        ("def first", "@decorator"),
        ("of first.", "@decorator"),
        ("x = lambda", "@decorator"),
        ("a comment at", "@decorator"),
        ("def fake", "@decorator"),
        ("        return x", "@decorator"),
        ("    return a", "@decorator"),
        ("class Thing", "class Thing(Base):"),
        ("field = 1", "class Thing(Base):"),
        ("        arg,", "    def method("),
        (") -> int", "    def method("),
        ("return 1", "        def inner():"),
        ("return inner()", "    def method("),
        ("        pass", "    async def other(self):"),
        ("    first(1)", 'if __name__ == "__main__":'),
    ],
)
def test_finds_the_enclosing_construct(at, expected):
    assert anchor_line(SOURCE, line_of(at)) == expected


def test_blank_line_inside_a_function_belongs_to_it():
    assert anchor_line(SOURCE, line_of("    return a") - 1) == "@decorator"


def test_blank_line_after_a_function_is_module_level():
    assert anchor_line(SOURCE, line_of("class Thing") - 1) == ""


def test_indented_cursor_at_the_end_of_a_body_belongs_to_it():
    source = "def f():\n    x = 1\n    "
    assert anchor_line(source, 2) == "def f():"


def test_first_body_line_of_a_new_function():
    assert anchor_line("import a\n\ndef f():\n    ", 3) == "def f():"
    assert anchor_line("import a\n\ndef f():\n", 3, 0) == "def f():"
    assert anchor_line("def f():\n    return g(a,\n\n\nx = 1\n", 2, 0) == "def f():"


def test_text_without_grammar_falls_back_to_paragraphs():
    data = b"one\ntwo\n\nthree\nfour"
    tree = Parser().parse(Snapshot("u", 0, "plaintext", data), None)
    assert find_anchor(tree, len(data)) == 9


def test_long_function_gives_a_near_line_that_stays_while_typing():
    body = "".join(f"    value_{i} = {i}\n" for i in range(1000))
    head = ("def f():\n" + body).encode()
    anchors = []
    for typed in range(200):
        data = head + b"    " + b"x" * typed + b"\n"
        tree = Parser().parse(Snapshot("u", 0, "python", data), None)
        anchors.append(find_anchor(tree, len(data) - 1, max_bytes=2048))
    assert len(set(anchors)) <= 2
    assert all(1024 - 64 <= len(head) - a <= 2048 for a in anchors)


@pytest.mark.parametrize("size", [100_000])
@pytest.mark.parametrize("unit", [b"x", b"x\n", b"\n", b" ", b"    x\n", b"(", b"'''"])
def test_repetitive_input_is_answered(unit, size):
    data = unit * (size // len(unit))
    tree = Parser().parse(Snapshot("u", 0, "python", data), None)
    for cursor in (0, size // 2, len(data)):
        at = find_anchor(tree, cursor)
        assert at <= cursor
        assert at == 0 or data[at - 1] == 0x0A


TYPED = (
    "    for item in sorted(things, key=lambda t: (t.a, t['b'])):\n"
    '        if item.name == f"{a}\'s" and not (item.x or [y for y in z]):\n'
    '            result["key"] = call(1, 2,\n'
    "                                 3)\n"
    '        text = """one\n'
    '        two"""\n'
    "    return {k: v for k, v in result.items()}\n"
)


@pytest.mark.parametrize("below", [True, False])
def test_anchor_stays_while_a_body_is_typed(below):
    head = SOURCE[: SOURCE.index("    async def other")] + "    def typed(self):\n"
    tail = SOURCE[SOURCE.index("\n\nif __name__") :] if below else ""
    parser, tree = Parser(), None
    typed = TYPED.replace("\n    ", "\n        ").replace("    for", "        for", 1)
    for n in range(8, len(typed)):
        if typed[n - 1] == "\n" or not typed[:n].rsplit("\n", 1)[-1].strip():
            continue
        snapshot = Snapshot("u", n, "python", (head + typed[:n] + tail).encode())
        tree = parser.parse(snapshot, tree)
        at = find_anchor(tree, len((head + typed[:n]).encode()))
        assert snapshot.data[at:].startswith(b"    def typed"), typed[:n]


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_is_always_a_line_start_at_or_before_the_cursor(data):
    pieces = st.sampled_from(
        [
            "def f(",
            "class A:\n",
            "    ",
            "\t",
            "\n",
            "):\n",
            "x",
            '"""',
            "@d\n",
            "é",
            "}",
        ]
    )
    text = "".join(data.draw(st.lists(pieces, max_size=30))).encode()
    cursor = data.draw(st.integers(0, len(text)))
    language = data.draw(st.sampled_from(["python", "plaintext"]))
    tree = Parser().parse(Snapshot("u", 0, language, text), None)
    at = find_anchor(tree, cursor, data.draw(st.sampled_from([4, 4096])))
    assert at == 0 or text[at - 1] == 0x0A
    assert at <= text.rfind(b"\n", 0, cursor) + 1
