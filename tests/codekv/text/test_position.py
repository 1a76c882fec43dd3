import pytest
from hypothesis import given
from hypothesis import strategies as st

from codekv.text.position import LineIndex

TEXT = st.text(alphabet="ab\n\x0c\u2028\u0085é😀界\t", max_size=30)
ENCODINGS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
UNIT = {"utf-8": 1, "utf-16": 2, "utf-32": 4}


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(text=TEXT)
def test_every_character_border_goes_there_and_back(encoding, text):
    index = LineIndex(text.encode())
    for n in range(len(text) + 1):
        head = text[:n]
        line = head.count("\n")
        column = len(head.split("\n")[-1].encode(ENCODINGS[encoding])) // UNIT[encoding]
        offset = len(head.encode())
        assert index.position(offset, encoding) == (line, column)
        assert index.offset(line, column, encoding) == offset


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(text=TEXT, line=st.integers(-2, 40), column=st.integers(-2, 40))
def test_any_position_gives_a_character_border_within_its_line(
    encoding, text, line, column
):
    data = text.encode()
    index = LineIndex(data)
    offset = index.offset(line, column, encoding)
    data[:offset].decode()
    data[offset:].decode()
    if 0 <= line < index.num_lines:
        assert index.line_start(line) <= offset <= index.line_end(line)
        assert index.line_of(offset) == line


def test_column_past_the_end_stops_before_the_newline():
    index = LineIndex(b"ab\ncd")
    assert index.offset(0, 99, "utf-16") == 2
    assert index.offset(1, 99, "utf-16") == 5


def test_line_past_the_end_is_the_end():
    assert LineIndex(b"ab\ncd").offset(9, 0, "utf-16") == 5


def test_column_inside_a_surrogate_pair_means_its_beginning():
    index = LineIndex("a😀b".encode())
    assert index.offset(0, 2, "utf-16") == 1
    assert index.offset(0, 3, "utf-16") == 5


def test_offset_inside_a_character_means_its_beginning():
    assert LineIndex("é".encode()).position(1, "utf-16") == (0, 0)


def test_form_feed_does_not_end_a_line():
    assert LineIndex(b"a\x0cb\x0bc\n").num_lines == 2


def test_empty_text_has_one_line():
    index = LineIndex(b"")
    assert index.num_lines == 1
    assert index.position(5, "utf-16") == (0, 0)
