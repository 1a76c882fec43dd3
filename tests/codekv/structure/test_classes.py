from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.structure.classes import COMMENT, INDENT, NAME, OTHER, token_classes
from codekv.structure.parser import Parser
from codekv.text.snapshot import Snapshot


def classes_of(tokens, language="python"):
    data = "".join(tokens).encode()
    ends, at = [], 0
    for token in tokens:
        at += len(token.encode())
        ends.append(at)
    tree = Parser().parse(Snapshot("u", 0, language, data), None)
    return list(token_classes(tree, ends))


def test_classes_of_a_small_function():
    tokens = ["def", " f", "(a", "):", "\n   ", ' """', "Say.", '"""', "\n", "    "]
    kinds = [OTHER, NAME, NAME, NAME, INDENT, COMMENT, COMMENT, COMMENT, INDENT, INDENT]
    tokens += ["return", " a", " # why", "\n", "\n"]
    kinds += [OTHER, OTHER, COMMENT, INDENT, INDENT]
    assert classes_of(tokens) == kinds


def test_only_the_first_statement_is_a_docstring():
    tokens = ["def f():\n", '    "one"\n', '    "two"\n', "x = ", '"three"', "\n"]
    assert classes_of(tokens) == [OTHER, COMMENT, OTHER, OTHER, OTHER, INDENT]


def test_signature_lines_keep_their_indentation():
    tokens = ["def f(", "\n", "    ", "a", ",", "\n", ")", ":\n    pass"]
    assert classes_of(tokens)[1:7] == [INDENT, INDENT, NAME, NAME, INDENT, NAME]


def test_text_without_grammar_has_only_indentation():
    tokens = ["# a", "\n", "  ", "b", " ", "c"]
    assert classes_of(tokens, "plaintext") == [
        OTHER,
        INDENT,
        INDENT,
        OTHER,
        OTHER,
        OTHER,
    ]


def slow_classes(data, ends, byte_classes):
    found, start = [], 0
    for end in ends:
        visible = [i for i in range(start, end) if data[i : i + 1] not in b" \t\n"]
        at = visible[0] if visible else end - 1
        found.append(byte_classes[at] if end > start else OTHER)
        start = end
    return found


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_token_takes_the_class_of_its_first_visible_byte(data):
    pieces = st.sampled_from(
        ["def f(é):\n", "\t", "    ", '"""d"""\n', "# c\n", "x", "\n"]
    )
    text = "".join(data.draw(st.lists(pieces, max_size=20))).encode()
    ends = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=30)))
    ends.append(len(text))
    tree = Parser().parse(Snapshot("u", 0, "python", text), None)
    singles = token_classes(tree, range(1, len(text) + 1))
    assert list(token_classes(tree, ends)) == slow_classes(text, ends, singles)
