from hypothesis import given
from hypothesis import strategies as st

from codekv.testing.editor import index_of, num_units
from lsp.convert import index_of_units, join_surrogates, num_units_of

ENCODINGS = st.sampled_from(["utf-8", "utf-16", "utf-32"])
LINES = st.text(st.sampled_from(list("ab é字𝄞😀\f\u2028\x85\ud800\udc00")), max_size=12)


@given(LINES, st.integers(-2, 60), ENCODINGS)
def test_columns_agree_with_counting_one_character_at_a_time(line, column, encoding):
    wanted = index_of(line, {"line": 0, "character": column}, encoding)
    assert index_of_units(line, column, encoding) == wanted


@given(LINES, ENCODINGS)
def test_counts_agree_with_counting_one_character_at_a_time(line, encoding):
    assert num_units_of(line, encoding) == num_units(line, encoding)


@given(LINES, ENCODINGS)
def test_every_border_of_a_character_survives_the_way_there_and_back(line, encoding):
    for index in range(len(line) + 1):
        column = num_units_of(line[:index], encoding)
        assert index_of_units(line, column, encoding) == index


def test_halves_of_a_character_become_one():
    assert join_surrogates("a\ud834\udd1eb") == "a𝄞b"
    assert join_surrogates("a\ud834b") == "a\ud834b"
