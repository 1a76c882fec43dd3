"""The calibrated table: it comes back, or there is none."""

import pytest

from codekv.errors import StorageError, UsageError
from codekv.storage.classtable import (
    FILE_NAME,
    ClassTable,
    codec_for,
    load_table,
    save_table,
)
from codekv.storage.presets import BALANCED, SEED, BitPolicy, with_heads

TABLE = ClassTable(
    "abc", with_heads(SEED, ((3, 1), (0, 0))), 0.001, 5.5, ((3, 1), (0, 0))
)


def test_what_is_saved_is_loaded(tmp_path):
    save_table(tmp_path, TABLE)
    assert load_table(tmp_path, "abc") == TABLE
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_another_models_table_is_none(tmp_path):
    save_table(tmp_path, TABLE)
    assert load_table(tmp_path, "abd") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        '{"format": 2}',
        '{"format": 1, "model": "abc"}',
        '{"format": 1, "model": "abc", "policy": {"name": "x"}, "heads": []}',
        '{"format": 1, "model": "abc", "policy": 5, "kl_mean": 0}',
    ],
)
def test_a_damaged_table_is_none(tmp_path, text):
    (tmp_path / FILE_NAME).write_text(text)
    assert load_table(tmp_path, "abc") is None
    assert load_table(tmp_path / "nowhere", "abc") is None


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(StorageError, match="precision auto stays balanced"):
        save_table(tmp_path / "nowhere", TABLE)


def test_names_become_codecs():
    assert codec_for("exact").name == "fp32"
    assert codec_for("int8").name == "int8"
    assert codec_for("small").name == "small"
    assert codec_for("auto").fingerprint == codec_for("balanced").fingerprint
    assert codec_for("auto", TABLE).fingerprint != codec_for("seed").fingerprint
    with pytest.raises(UsageError, match="balanced"):
        codec_for("tiny")


def test_policies_refuse_what_cannot_be_packed():
    with pytest.raises(UsageError):
        BitPolicy("bad", (9,) * 4, (4,) * 4)
    with pytest.raises(UsageError):
        BitPolicy("bad", (4,) * 3, (4,) * 4)
    with pytest.raises(UsageError):
        BitPolicy("bad", (4,) * 4, (4,) * 4, group=0)
    assert BitPolicy.from_dict(BALANCED.to_dict()) == BALANCED
