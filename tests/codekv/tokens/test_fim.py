import pytest

from codekv.tokens.fim import FAMILIES, find_fim


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_is_found_in_its_own_vocabulary(family):
    markers = FAMILIES[family]
    texts = [markers.prefix, markers.suffix, markers.middle, *markers.stop]
    names = {text: token for token, text in enumerate(texts)}
    fim = find_fim(names, None)
    assert fim is not None
    assert (fim.prefix, fim.suffix, fim.middle) == (0, 1, 2)
    assert fim.stop == tuple(range(len(texts)))


def test_a_vocabulary_without_markers_completes_left_to_right():
    assert find_fim({"<|endoftext|>": 0, "def": 1}, None) is None


def test_two_of_three_markers_are_not_enough():
    assert find_fim({"<fim_prefix>": 0, "<fim_suffix>": 1}, None) is None
