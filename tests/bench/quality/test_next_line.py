import json

import pytest

from bench.quality.calibrate import calibration
from bench.quality.infilling import InfilledText as Filled
from bench.quality.infilling import Row, evaluate, score
from bench.quality.next_line import fault_summary, judge, judged, summary
from bench.traces.cursors import Cursor
from codekv.completion.api import Completion, Item
from codekv.config import Config
from codekv.testing.service import ScriptedAnswer, ScriptedService, ServiceScript

BEFORE, AFTER = b"def f(a):\n    b = a\n", b"\n    return b\n"
WANTED = b"    b += 1"
CURSOR = Cursor(
    "next-line",
    "file:///f.py",
    "python",
    BEFORE + AFTER,
    len(BEFORE),
    WANTED,
    BEFORE + WANTED + AFTER,
)


def answer(text: str, score: float | None = -0.1) -> Completion:
    at = len(BEFORE)
    return Completion(items=(Item("c", text, at, at, score),) if text else ())


@pytest.mark.parametrize(
    ("text", "exact", "indented", "parses"),
    [
        ("    b += 1", True, True, True),
        ("    b += 1  ", True, True, True),
        ("    b += 2", False, True, True),
        ("b += 1", False, False, False),
        ("", False, False, True),
    ],
)
def test_an_answer_is_held_against_the_author(text, exact, indented, parses) -> None:
    found = judge(CURSOR, answer(text))

    assert (found.exact, found.indented, found.parses) == (exact, indented, parses)


def test_replaced_closers_are_no_part_of_the_answer() -> None:
    data = b"x = call(a, )\n"
    cursor = Cursor("k", "u", "python", data, 12, b"b", b"x = call(a, b)\n")
    item = Item("c", "b)", 12, 13)

    assert judge(cursor, Completion(items=(item,))).exact


async def test_a_service_is_asked_at_every_cursor() -> None:
    service = ScriptedService(
        ServiceScript((ScriptedAnswer("    b += 1"), ScriptedAnswer("b(("))), Config()
    )
    service.start()
    await service.ready()
    found = [each async for each in judged(service, [CURSOR, CURSOR])]
    await service.close()
    rates, checked = summary(found), fault_summary(found)

    assert (rates["rows"], rates["exact_match"], rates["parses"]) == (2, 0.5, 0.5)
    assert checked["faults"]["brackets"] == 1
    assert [row["text"] for row in checked["faulty"]] == ["b(("]
    json.dumps([rates, checked])


def test_summary_of_nothing_is_zero() -> None:
    assert summary([])["exact_match"] == 0
    assert fault_summary([])["changed"] == 0


def test_calibration_keeps_what_is_sure_enough() -> None:
    table = calibration([(0.9, True), (0.55, False), (0.35, True), (None, False)])
    rows = {row["threshold"]: row for row in table}

    assert rows[0.0]["kept"] == 1.0
    assert rows[0.5]["kept"] == pytest.approx(2 / 3)
    assert rows[0.5]["exact_match"] == 0.5
    assert rows[0.9] == {
        "threshold": 0.9,
        "kept": pytest.approx(1 / 3),
        "exact_match": 1.0,
        "exact_match_withheld": 0.5,
    }


ROW = Row(
    "t/1",
    "f",
    "def f(a):\n",
    "    return b\n",
    "    b = a + 1\n",
    "def check(f):\n    assert f(1) == 2\n",
)


def test_a_hole_is_judged_by_its_tests() -> None:
    right, wrong = score(ROW, Filled("    b = 1 + a")), score(ROW, Filled("    b = a"))
    broken = score(ROW, Filled("b = ("))

    assert (right.passed, right.exact, right.parses) == (True, False, True)
    assert (wrong.passed, wrong.parses) == (False, True)
    assert (broken.passed, broken.parses) == (False, False)


@pytest.mark.parametrize(("mode", "asked"), [("fresh", 1), ("cached", 3)])
async def test_cached_types_the_text_in_three_bursts(mode, asked) -> None:
    service = ScriptedService(
        ServiceScript((ScriptedAnswer("    b = a + 1"),)), Config()
    )
    service.start()
    await service.ready()
    (outcome,) = [each async for each in evaluate(service, [ROW], mode)]
    await service.close()

    assert outcome.exact
    assert outcome.passed
    assert service.counts["changed"] == asked
