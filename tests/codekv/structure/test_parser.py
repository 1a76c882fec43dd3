from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.structure.parser import Parser
from codekv.text.snapshot import Snapshot

SOURCE = '''\
import os

class Größe:
    """Maß 😀"""

    def einheit(self, ä=(1, 2), *rest):
        if ä:
            return f"{self!r:>{ä}}" + 'x'
        for i in range(10):
            print(i, "界")

@wrap
def last(): pass
'''
PIECES = [
    "(", ")", "[", "]", "\n", "    ", "def f(x):\n", "'", '"""', "#", ":", "é", "😀",
    "class A:", "x = ", "if ", "\\", "f'{", "}", "",
]  # fmt: skip


def nodes(tree):
    found = []
    cursor = tree.tree.walk()
    while True:
        node = cursor.node
        found.append(
            (cursor.depth, node.type, node.start_byte, node.end_byte,
             tuple(node.start_point), tuple(node.end_point), node.is_missing)
        )  # fmt: skip
        if cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return found


EDITS = st.lists(
    st.tuples(
        st.floats(0, 1), st.sampled_from([0, 0, 1, 3, 40]), st.sampled_from(PIECES)
    ),
    min_size=1,
    max_size=12,
)


@given(EDITS)
@settings(max_examples=80, deadline=None)
def test_incremental_tree_equals_fresh_tree(edits):
    parser, text = Parser(), SOURCE
    tree = parser.parse(Snapshot("u", 0, "python", text.encode()), None)
    for version, (where, removed, piece) in enumerate(edits, 1):
        at = int(where * len(text))
        text = text[:at] + piece + text[at + removed :]
        snapshot = Snapshot("u", version, "python", text.encode())
        before = nodes(tree)
        previous, tree = tree, parser.parse(snapshot, tree)
        assert nodes(previous) == before
        assert nodes(tree) == nodes(parser.parse(snapshot, None))


def test_text_of_an_unknown_language_has_no_tree():
    tree = Parser().parse(Snapshot("file:///a.xyz", 0, "klingon", b"qapla'"), None)
    assert tree.tree is None
    assert not tree.has_error


def test_language_is_found_by_file_name_when_the_id_is_unknown():
    tree = Parser().parse(Snapshot("file:///a/b.PY", 0, "", b"x = 1"), None)
    assert tree.grammar is not None
    assert tree.grammar.name == "python"


def test_change_of_language_starts_from_nothing():
    parser = Parser()
    plain = parser.parse(Snapshot("u", 0, "plaintext", b"x = 1"), None)
    tree = parser.parse(Snapshot("u", 1, "python", b"x = 1"), plain)
    assert tree.tree is not None
