import pytest

from codekv.files import write_whole


def test_a_file_is_replaced_as_a_whole_and_nothing_else_stays(tmp_path):
    path = tmp_path / "report.json"
    write_whole(path, "old")
    write_whole(path, "new")
    assert path.read_text("utf-8") == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file_and_no_part(tmp_path):
    path = tmp_path / "report.json"
    write_whole(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "new \udc80")
    assert path.read_text("utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]
