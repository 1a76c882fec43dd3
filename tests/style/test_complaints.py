import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
TABLE = (TESTS.parent / "docs" / "complaints.md").read_text("utf-8")
ROWS = re.findall(r"^\| (\d+) \| (.+?) \| (.+) \|$", TABLE, re.MULTILINE)


def test_every_complaint_has_one_row():
    assert [int(number) for number, _, _ in ROWS] == list(range(1, 67))


@pytest.mark.parametrize(("number", "complaint", "answer"), ROWS)
def test_every_named_test_exists(number, complaint, answer):
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", answer)
    assert named or number == "62", f"{complaint}: no test and no reason known here"
    for path, name in named:
        source = (TESTS / path).read_text("utf-8")
        assert f"def {name}(" in source, f"{path} has no {name}"
