import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.testing.editor import apply_edit, index_of, line_starts, position_of
from codekv.text.snapshot import Snapshot
from lsp.convert import join_surrogates
from lsp.documents import (
    Change,
    DocumentPlace,
    DocumentStore,
    OpenDocument,
    TextSpan,
    split_lines,
)

PIECES = ["a", "b c", "é", "字", "𝄞", "\n", "\r\n", "\r", "\f", "\v", "\x85", "\u2028"]
ENCODINGS = ["utf-8", "utf-16", "utf-32"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
PLACES = st.builds(DocumentPlace, st.integers(0, 9), st.integers(0, 14))
EDITS = st.lists(st.tuples(PLACES, PLACES, TEXTS), max_size=6)


def document(text, encoding="utf-16"):
    made = OpenDocument("file:///a.py", "python", encoding)
    made.replace_all(text)
    return made


def as_json(place):
    return {"line": place.line, "character": place.character}


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(max_examples=200, deadline=None)
@given(text=TEXTS, edits=EDITS)
def test_any_edits_give_what_an_editor_has(encoding, text, edits):
    ours, theirs = document(text, encoding), text
    for first, second, new_text in edits:
        ends = sorted((first, second))
        span = {"start": as_json(ends[0]), "end": as_json(ends[1])}
        theirs = apply_edit(theirs, span, new_text, encoding)
        ours.apply(Change(TextSpan(*ends), new_text))
        ours.revision += 1
        assert ours.text() == theirs
        assert ours.lines == split_lines(theirs)
        assert ours.snapshot() == Snapshot.from_text(
            "file:///a.py", ours.revision, "python", theirs
        )


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(max_examples=200, deadline=None)
@given(text=TEXTS, place=PLACES)
def test_positions_become_offsets_of_the_snapshot_and_come_back(encoding, text, place):
    ours = document(text, encoding)
    index = index_of(text, as_json(place), encoding)
    plain = Snapshot.from_text("", 0, "", text[:index])
    offset = ours.byte_of(place)
    assert offset == len(plain.data)
    back = position_of(text, index, encoding)
    assert ours.place_of(offset) == DocumentPlace(back["line"], back["character"])


@given(TEXTS)
def test_lines_are_split_where_the_protocol_splits_them(text):
    starts = line_starts(text)
    ends = [*starts[1:], len(text)]
    assert split_lines(text) == [text[a:b] for a, b in zip(starts, ends, strict=True)]


def test_a_reversed_range_is_the_same_range():
    ours = document("abc")
    ours.apply(Change(TextSpan(DocumentPlace(0, 2), DocumentPlace(0, 1)), "-"))
    assert ours.text() == "a-c"


def test_a_position_past_the_text_is_its_end():
    ours = document("a\nbc")
    assert ours.byte_of(DocumentPlace(99, 99)) == 4
    assert ours.byte_of(DocumentPlace(0, 99)) == 1
    assert ours.byte_of(DocumentPlace(-1, 3)) == 0


def test_an_edit_between_carriage_return_and_line_feed_makes_a_pair():
    ours = document("a\rb\n")
    ours.apply(Change(TextSpan(DocumentPlace(1, 0), DocumentPlace(1, 1)), ""))
    assert ours.lines == ["a\r\n", ""]


def test_halves_of_a_character_typed_apart_become_one_character():
    ours = document("x\ud834y")
    ours.apply(Change(TextSpan(DocumentPlace(0, 2), DocumentPlace(0, 2)), "\udd1e"))
    assert ours.text() == join_surrogates("x\ud834\udd1ey") == "x𝄞y"


def test_a_lone_half_takes_one_column_and_one_byte():
    ours = document("é\ud834z")
    assert ours.byte_of(DocumentPlace(0, 2)) == 3
    assert ours.place_of(3) == DocumentPlace(0, 2)
    assert ours.snapshot().data == "é?z".encode()


def test_a_document_opened_again_never_has_an_old_revision():
    store = DocumentStore()
    first = store.open("u", "python", 7, "a")
    store.close("u")
    second = store.open("u", "python", 1, "b")
    assert second.revision > first.revision
    assert store.change("u", 2, [Change(None, "c")]).revision > first.revision + 1


def test_a_change_of_an_unknown_document_is_told_from_others():
    assert DocumentStore().change("u", 1, []) is None


def test_a_missed_change_is_mended_by_the_whole_text():
    store = DocumentStore()
    store.open("u", "python", 1, "a")
    store.lose("u")
    assert not store.get("u").in_sync
    store.change("u", 3, [Change(None, "b")])
    assert store.get("u").in_sync


def test_typing_in_a_megabyte_costs_little_per_key():
    text = "    value = compute(first, second)  # é\n" * 28_000
    ours = document(text)
    best = float("inf")
    for column in range(10):
        started = time.perf_counter()
        place = DocumentPlace(14_000, 4 + column)
        ours.apply(Change(TextSpan(place, place), "x"))
        ours.revision += 1
        ours.snapshot()
        ours.byte_of(DocumentPlace(14_000, 5 + column))
        best = min(best, time.perf_counter() - started)
    assert len(text.encode()) > 1_000_000
    assert best < 0.03, "ten milliseconds on an idle machine"
