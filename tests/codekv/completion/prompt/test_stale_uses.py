from hypothesis import given
from hypothesis import strategies as st

from codekv.completion.document import CodeDocuments
from codekv.completion.prompt.stale_uses import Definitions, uses
from codekv.structure.parser import Parser
from codekv.testing.model import ByteTokenizer
from codekv.text.snapshot import Snapshot

BEFORE = """def area(width, height):
    return width * height


def price(thing):
    return area(thing.width, thing.height) * 2
"""


def documents() -> CodeDocuments:
    return CodeDocuments(ByteTokenizer(), Parser(), 256)


def snapshot(text: str, version: int) -> Snapshot:
    return Snapshot.from_text("file:///a.py", version, "python", text)


def changed(after: str) -> frozenset[bytes]:
    held, definitions = documents(), Definitions()
    definitions.settle(held.update(snapshot(BEFORE, 1)))
    return definitions.changed(held.update(snapshot(after, 2)))


def test_a_changed_header_touches_its_name_and_a_changed_body_does_not() -> None:
    assert changed(BEFORE.replace("width, height)", "width, height, scale)")) == {
        b"area"
    }
    assert changed(BEFORE.replace("* 2", "* 3")) == frozenset()


def test_renaming_touches_both_names() -> None:
    assert changed(BEFORE.replace("def area", "def size")) == {b"area", b"size"}


def test_nothing_is_touched_before_the_first_exact_prompt() -> None:
    definitions = Definitions()

    assert definitions.changed(documents().update(snapshot(BEFORE, 1))) == frozenset()


def test_uses_are_whole_words() -> None:
    text = b"area + areas + x.area"
    found = uses(tuple(text), lambda token: bytes([token]), [b"area"])

    assert found == (0, 1, 2, 3, 17, 18, 19, 20)


@given(st.lists(st.sampled_from([b"area", b"ar", b"ea", b" ", b"(", b"", b"area x"])))
def test_uses_cover_every_occurrence_however_it_is_cut(pieces) -> None:
    tokens = range(len(pieces))
    found = set(uses(tokens, lambda token: pieces[token], [b"area"]))
    whole = b"".join(pieces)
    at = 0
    for number, piece in enumerate(pieces):
        if piece == b"area":
            before = whole[at - 1 : at]
            after = whole[at + 4 : at + 5]
            alone = not before.isalnum() and not after.isalnum()
            assert (number in found) == alone
        at += len(piece)
