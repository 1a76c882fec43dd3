from hypothesis import given
from hypothesis import strategies as st

from codekv.endpoint.questions import HttpQuestion
from codekv.endpoint.texts import MAX_DOCUMENTS, KnownTexts, lay_over

LINES = [f"value_{i} = compute({i}, other_{i * 7 % 13})\n" for i in range(400)]
FILE = "".join(LINES)


def window(lines, row, column, above=60, below=20):
    """What a client sends that shows some lines around its cursor."""
    top, line = max(0, row - above), lines[row]
    before = "".join(lines[top:row]) + line[:column]
    after = line[column:] + "".join(lines[row + 1 : row + 1 + below])
    return HttpQuestion(before, after)


def test_the_first_text_is_a_document_and_the_next_one_its_next_version():
    texts = KnownTexts(lambda _: None)
    one = texts.place(HttpQuestion("def f(", "\n"))
    two = texts.place(HttpQuestion("def f(a", "\n"))
    assert one.snapshot.uri == two.snapshot.uri
    assert (one.snapshot.version, two.snapshot.version) == (1, 2)
    assert two.snapshot.data == b"def f(a\n"
    assert two.cursor_byte == len(b"def f(a")


def test_asking_again_is_no_new_version():
    texts = KnownTexts(lambda _: None)
    one = texts.place(HttpQuestion("x = ", ""))
    assert texts.place(HttpQuestion("x = ", "")).snapshot == one.snapshot


def test_another_text_is_another_document():
    texts = KnownTexts(lambda _: None)
    one = texts.place(HttpQuestion(FILE[:2000], ""))
    two = texts.place(HttpQuestion('package main\n\nimport (\n\t"fmt"\n)\n', ""))
    assert one.snapshot.uri != two.snapshot.uri


@given(st.lists(st.integers(0, 399), min_size=1, max_size=12), st.integers(0, 20))
def test_windows_of_one_file_put_the_file_together(rows, column):
    """Overlapping windows become one document that agrees with the file."""
    texts = KnownTexts(lambda _: None)
    uris = set()
    row = rows[0]
    for step in rows[1:]:
        question = window(LINES, row, column)
        placement = texts.place(question)
        uris.add(placement.snapshot.uri)
        data = placement.snapshot.data.decode()
        assert data in FILE
        assert data[: placement.cursor_byte].endswith(question.before)
        assert data[placement.cursor_byte :].startswith(question.after)
        row = min(399, max(0, row + step % 31 - 15))
    assert len(uris) <= 1


def test_the_text_above_a_window_that_moves_down_stays():
    texts = KnownTexts(lambda _: None)
    first = texts.place(window(LINES, 50, 3))
    assert first.snapshot.data.startswith(LINES[0].encode())
    for row in range(51, 120):
        placement = texts.place(window(LINES, row, 3))
    assert placement.snapshot.data.startswith(LINES[0].encode())
    assert placement.snapshot.uri == first.snapshot.uri


def test_typing_in_a_moving_window_keeps_the_document():
    texts, lines = KnownTexts(lambda _: None), list(LINES)
    uris = set()
    for row in range(100, 140):
        lines.insert(row, "\n")
        for typed in ("a", "ab", "ab = 1"):
            lines[row] = typed + "\n"
            placement = texts.place(window(lines, row, len(typed)))
            uris.add(placement.snapshot.uri)
            assert placement.snapshot.data.decode() in "".join(lines)
    assert len(uris) == 1


def test_a_path_that_differs_is_another_document():
    texts = KnownTexts(lambda _: None)
    one = texts.place(HttpQuestion("x = 1\n" * 9, "", path="a.py"))
    two = texts.place(HttpQuestion("x = 1\n" * 9, "", path="b.py"))
    assert one.snapshot.uri != two.snapshot.uri
    assert one.snapshot.language == "python"


def test_old_documents_are_closed():
    closed = []
    texts = KnownTexts(closed.append)
    for number in range(MAX_DOCUMENTS + 3):
        texts.place(HttpQuestion(f"{number}" * 40, "", path=f"{number}.py"))
    assert len(closed) == 3


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=60))
def test_a_window_is_never_altered(known, before, after):
    laid = lay_over(known, before, after)
    if laid is not None:
        data, cursor = laid
        assert data[:cursor].endswith(before)
        assert data[cursor:].startswith(after)
