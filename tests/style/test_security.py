import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text("utf-8")
ROWS = re.findall(r"^\| (?!promise|---)(.+?) \| (.+) \|$", PAGE, re.M)


def named(cell):
    """Yield the files and functions of a cell; `::name` goes on in the file before."""
    file = ""
    for text in re.findall(r"`([^`]+)`", cell):
        path, _, function = text.partition("::")
        file = path or file
        yield ROOT / file, function


def test_the_page_has_promises():
    assert len(ROWS) > 10


@pytest.mark.parametrize(("promise", "tests"), ROWS, ids=[row[0][:40] for row in ROWS])
def test_a_promise_names_tests_that_exist(promise, tests):
    found = list(named(tests))
    assert found, promise
    for path, function in found:
        assert path.is_file(), path
        text = path.read_text("utf-8")
        pattern = rf"def {function}\(" if function else r"def test_"
        assert re.search(pattern, text), f"{path}: {function}"
