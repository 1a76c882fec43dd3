"""Typing changes again: what is counted, with answers that are known."""

from pathlib import Path

import pytest

from bench.quality.chrf import delta_chrf
from bench.quality.replay import (
    MAX_PLACES,
    added_text,
    replayed,
    sampled,
    strokes,
    summary,
)
from bench.traces.changes import make_change
from codekv.cli import run
from codekv.completion.api import Completion, Item, Request, Timing
from codekv.text.snapshot import Snapshot

USAGE = 2
OLD = "a = 1\nb = 2\nc = 3\n"
NEW = "a = 1\nlonger_name = a + 41\nb = 2\nc = 3\n"


class Known:
    """Answers with what the author writes next, up to the line's end, or nothing."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    def document_changed(self, snapshot):
        self.snapshot = snapshot

    def document_closed(self, uri):
        pass

    async def complete(self, request: Request) -> Completion:
        before = request.snapshot.data[: request.cursor_byte].decode()
        self.asked.append(before)
        text = self.answer(before)
        if not text:
            return Completion(reason="silent", timing=Timing(total=5.0))
        at = request.cursor_byte
        items = (Item("i", text, at, at, -0.1),)
        return Completion(items=items, timing=Timing(total=50.0))


async def typed(answer, old=OLD, new=NEW, name="c"):
    change = make_change("shop", name, [("shop.py", old, new)])
    service = Known(answer)
    found = [each async for each in replayed(service, Path("/r"), [change], 1)]
    return service, found


async def test_without_offers_every_stroke_is_a_key():
    service, (found,) = await typed(lambda before: "")
    assert found.keys == found.strokes == len("longer_name = a + 41")
    assert service.asked[0] == "a = 1\n"
    assert service.asked[-1].endswith("longer_name = a + 4")
    report = summary([found])
    assert report["saved"] == report["saved_net"] == 0.0
    assert report["reasons"] == {"silent": found.strokes}


async def test_a_right_offer_is_one_key_and_one_reading():
    line = "longer_name = a + 41"

    def answer(before):
        return line[1:] if before.endswith("\nl") else ""

    _, (found,) = await typed(answer)
    assert found.keys == 1 + 1
    report = summary([found], reading_cost=2.0)
    assert report["shown"] == 1
    assert report["would_be_accepted"] == report["retained"] == 1.0
    assert report["delta_chrf"] == 1.0
    assert report["saved"] == pytest.approx(1 - 2 / found.strokes, abs=1e-4)
    assert report["saved_net"] == pytest.approx(1 - 4 / found.strokes, abs=1e-4)


async def test_a_wrong_offer_that_stays_is_read_once():
    text = "longer_name = None"

    def answer(before):
        typed_already = before.rpartition("\n")[2]
        return text[len(typed_already) :] if text.startswith(typed_already) else ""

    _, (found,) = await typed(answer)
    report = summary([found], reading_cost=1.0)
    assert found.keys == found.strokes
    assert report["shown"] == 1
    assert report["would_be_accepted"] == 0.0
    assert report["retained"] == pytest.approx(14 / 18, abs=1e-3)
    assert report["saved_net"] == pytest.approx(-1 / found.strokes, abs=1e-4)


async def test_bringing_back_what_was_deleted_is_undoing():
    old = OLD.replace("b = 2", "previous_name = 2")
    new = OLD.replace("b = 2", "something_else = 5")
    _, (found,) = await typed(lambda before: "previous_name", old, new)
    report = summary([found])
    assert report["undone"] > 0
    assert all(each.is_undoing for each in found.outcomes if each.offered)


async def test_later_hunks_are_typed_where_earlier_ones_left_room():
    old = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
    new = "def f(value):\n    return value\n\n\ndef g():\n    return f(value_two)\n"
    service, (found,) = await typed(lambda before: "", old, new)
    assert found.strokes <= MAX_PLACES + 1
    for before in service.asked:
        assert new.startswith(before)


def test_places_are_seeded_and_few():
    new = OLD + "".join(f"value_{n} = other_{n} + {n}\n" for n in range(60))
    change = make_change("shop", "c", [("shop.py", OLD, new)])
    first, again = sampled(change, 1), sampled(change, 1)
    assert first == again
    assert first != sampled(change, 2)
    texts = [part.hunk.new[part.start : part.end] for part in first]
    assert MAX_PLACES <= sum(len(strokes(text)) for text in texts) < MAX_PLACES + 40


def test_a_line_end_brings_its_indentation():
    assert strokes("if x:\n    y") == ["i", "f", " ", "x", ":", "\n    ", "y"]


def test_replaced_closers_are_no_part_of_an_offer():
    snapshot = Snapshot("file:///a.py", 1, "python", b"f(a, )\n")
    request = Request(snapshot, 5)
    right = Completion(items=(Item("i", "b)", 5, 6),))
    wrong = Completion(items=(Item("i", "b]", 5, 6),))
    assert added_text(request, right) == ("b", True)
    assert added_text(request, wrong) == ("b]", False)
    assert added_text(request, Completion()) == ("", True)


def test_delta_chrf_compares_changes_not_texts():
    base = "a long line that stays as it is: "
    assert delta_chrf(base, base + "price", base + "price") == 1.0
    assert delta_chrf(base, base + "price", base) == 0.0
    near = delta_chrf(base, base + "price", base + "prices")
    far = delta_chrf(base, base + "price", base + "number")
    assert 1.0 > near > far


def test_nothing_to_replay_is_one_clear_line(tmp_path, capsys):
    assert run(["eval", "replay"]) == USAGE
    assert "name a git repository" in capsys.readouterr().err
    assert run(["eval", "replay", "--releases", str(tmp_path)]) == USAGE
    assert "two folders" in capsys.readouterr().err
