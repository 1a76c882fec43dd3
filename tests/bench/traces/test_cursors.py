from bench.traces.corpus import make_file
from bench.traces.cursors import KINDS, cursors

SOURCE = b'''import os


def price(item, rate):
    """The price of an item."""
    if item is None:
        return lookup(rate, default(item))
    return round(item.price * rate, 2)


def total(cart):
    return sum(price(each, 1.0) for each in cart)
'''
FILES = tuple(
    make_file(f"file:///{name}.py", name, "python", SOURCE) for name in ("a", "b")
)


def test_what_was_cut_out_stands_at_the_cursor() -> None:
    found = list(cursors(FILES, tuple(KINDS), 60, seed=1))

    assert {cursor.kind for cursor in found} == set(KINDS)
    for cursor in found:
        at = cursor.cursor_byte
        assert cursor.data[:at] + cursor.wanted + cursor.data[at:] == cursor.whole


def test_the_same_seed_gives_the_same_cursors() -> None:
    one = list(cursors(FILES, ("next-line",), 10, seed=1))

    assert one == list(cursors(FILES, ("next-line",), 10, seed=1))
    assert one != list(cursors(FILES, ("next-line",), 10, seed=2))
    assert len({(cursor.uri, cursor.cursor_byte) for cursor in one}) == len(one)


def test_a_next_line_is_asked_for_at_the_start_of_an_empty_line() -> None:
    for cursor in cursors(FILES, ("next-line",), 10, seed=1):
        at = cursor.cursor_byte
        assert cursor.data[at - 1 : at + 1] == b"\n\n"
        assert b"\n" not in cursor.wanted
        assert cursor.wanted.strip()
