import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.structure.lines import opaque_start
from codekv.structure.parser import Parser
from codekv.text.snapshot import Snapshot

PIECES = {
    "python": [b'"""', b"x = 1\n", b"# c\n", b"'a'", b"f'{x}'", b"def f():\n ", b"("],
    "javascript": [b"/*", b"*/", b"`", b"${a}", b"// c\n", b"x = 1;", b"{", b"}"],
    "rust": [b'r#"', b'"#', b"/* /* */", b"*/", b"// a\n", b"fn f() {}\n"],
}


def opaque_upwards(tree, offset):
    """The slow twin: from the smallest node up to the root."""
    node = tree.tree.root_node.descendant_for_byte_range(offset, offset)
    found = None
    while node is not None:
        is_inside = node.start_byte < offset < node.end_byte
        if node.type in tree.grammar.opaque and is_inside:
            found = node.start_byte
        node = node.parent
    return found


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(PIECES)), st.data())
def test_texts_inside_strings_and_comments_are_found_from_above(language, data) -> None:
    pieces = data.draw(st.lists(st.sampled_from(PIECES[language]), max_size=20))
    snapshot = Snapshot("a", 0, language, b"".join(pieces))
    tree = Parser().parse(snapshot, None)
    for offset in range(len(snapshot.data) + 1):
        assert opaque_start(tree, offset) == opaque_upwards(tree, offset)


@pytest.mark.parametrize("depth", [50, 1000])
def test_strings_are_found_however_deep_they_are(depth) -> None:
    text = b"(" * depth + b"'a b'" + b")" * depth
    tree = Parser().parse(Snapshot("a", 0, "javascript", text), None)

    assert opaque_start(tree, depth + 2) == depth
    assert opaque_start(tree, depth) is None
