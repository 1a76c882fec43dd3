from hypothesis import given
from hypothesis import strategies as st

from codekv.completion.answers import Answers, accepted
from codekv.completion.api import AnswerSource, Completion, Item, Request, Selected
from codekv.completion.popup import as_if_selected, with_selection
from codekv.text.snapshot import Snapshot


def request(data: bytes, cursor: int, version: int = 0, eol="\n") -> Request:
    return Request(Snapshot("a.py", version, "python", data, eol), cursor)


def offer(before: str, after: str, text: str, replaced: int = 0):
    answers = Answers()
    asked = request((before + after).encode(), len(before.encode()))
    cursor = asked.cursor_byte
    item = Item("c1", text, cursor, cursor + replaced)
    answers.note(asked, Completion(items=(item,)))
    return answers, asked


@given(st.text(max_size=10), st.text(max_size=10), st.text(min_size=2, max_size=12))
def test_typing_along_the_offer_returns_its_rest(before, after, text) -> None:
    before, after, text = (s.replace("\r", "") for s in (before, after, text))
    answers, _ = offer(before, after, text)
    for end in range(len(text)):
        data = (before + text[:end] + after).encode("utf-8", "replace")
        cursor = len((before + text[:end]).encode("utf-8", "replace"))
        found = answers.find(request(data, cursor, end + 1))
        if text[end:].strip() and text.isascii():
            assert found is not None
            assert found.items[0].text == text[end:]
            assert found.source is AnswerSource.TYPED_THROUGH
            assert found.items[0].start_byte == cursor


def test_another_way_or_another_place_ends_the_offer() -> None:
    answers, _ = offer("x = ", "\n", "foo(1)")

    assert answers.find(request(b"x = g\n", 5, 1)) is None
    assert answers.find(request(b"x = f\ny", 5, 1)) is None
    assert answers.find(request(b"y = f\n", 5, 1)) is None
    assert answers.find(request(b"x = foo(1)\n", 10, 1)) is None


def test_backspace_into_the_offer_brings_it_back() -> None:
    answers, _ = offer("x = ", "\n", "foo(1)")
    answers.find(request(b"x = foo\n", 7, 1))
    found = answers.find(request(b"x = f\n", 5, 2))

    assert found is not None
    assert found.text == "oo(1)"


def test_auto_closed_brackets_stay_replaced() -> None:
    answers, _ = offer("print(", ")\n", "'hi')", replaced=1)
    found = answers.find(request(b"print('h)\n", 8, 1))

    assert found is not None
    item = found.items[0]
    assert (item.text, item.start_byte, item.end_byte) == ("i')", 8, 9)


def test_rest_keeps_the_documents_line_ends() -> None:
    answers = Answers()
    asked = request(b"if x:\n\n", 6, 0, "\r\n")
    item = Item("c1", "    a\r\n    b", 6, 6)
    answers.note(asked, Completion(items=(item,)))
    found = answers.find(request(b"if x:\n    a\n", 11, 1, "\r\n"))

    assert found is not None
    assert found.text == "\r\n    b"


def test_accepting_gives_the_document_the_editor_will_have() -> None:
    asked = request(b"print()\n", 6)
    snapshot, cursor = accepted(asked.snapshot, Item("c", "1)", 6, 7))

    assert snapshot.data == b"print(1)\n"
    assert cursor == 8


def test_selected_entry_is_extended_over_its_range() -> None:
    asked = Request(
        Snapshot("a.py", 0, "python", b"pri\n"), 3, selected=Selected(0, 3, "print")
    )
    inner = as_if_selected(asked)
    assert inner.snapshot.data == b"print\n"
    assert inner.cursor_byte == 5

    found = with_selection(Completion(items=(Item("c", "(x)", 5, 5),)), asked)
    item = found.items[0]
    assert (item.text, item.start_byte, item.end_byte) == ("print(x)", 0, 3)
