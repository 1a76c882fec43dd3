from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.text.edit import Edit, Revision, edit_of, find_edit

TEXT = st.text(alphabet="ab\né😀界", max_size=12)


def slow_edit(old: str, new: str) -> Edit | None:
    if old == new:
        return None
    shorter = min(len(old), len(new))
    head = 0
    while head < shorter and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    end = len(old[len(old) - tail :].encode())
    return Edit(
        len(old[:head].encode()), len(old.encode()) - end, len(new.encode()) - end
    )


@given(TEXT, TEXT)
@settings(max_examples=500)
def test_equals_a_character_by_character_comparison(old, new):
    assert find_edit(old.encode(), new.encode()) == slow_edit(old, new)


@given(TEXT, TEXT, TEXT)
@settings(max_examples=100)
def test_works_across_chunks(head, middle, tail):
    pad = "0123456789é" * 20_000
    old, new = pad + head + tail + pad, pad + middle + tail + pad
    assert find_edit(old.encode(), new.encode()) == slow_edit_of_middle(
        pad, head + tail, middle + tail
    )


def slow_edit_of_middle(pad, old, new):
    # The padding starts and ends with characters that the middles cannot contain.
    inner = slow_edit(old, new)
    if inner is None:
        return None
    by = len(pad.encode())
    return Edit(inner.start_byte + by, inner.old_end_byte + by, inner.new_end_byte + by)


def test_moved_maps_what_lies_outside_the_edit():
    edit = Edit(3, 5, 9)
    assert edit.moved(3) == 3
    assert edit.moved(4) is None
    assert edit.moved(5) == 9
    assert edit.moved(7) == 11


@given(TEXT, TEXT, TEXT)
def test_a_revision_answers_for_its_own_texts_alone(old, new, other):
    before, after, third = (text.encode() for text in (old, new, other))
    revision = Revision.between(before, after)
    assert edit_of(revision, before, after) == find_edit(before, after)
    assert edit_of(revision, third, after) == find_edit(third, after)
    assert edit_of(None, before, third) == find_edit(before, third)
