from pathlib import Path

import pytest

import codekv.completion.document as module
import codekv.structure.parser as parser_module
import codekv.text.edit as edit_module
from codekv.completion.document import CodeDocuments
from codekv.cooperative import finish
from codekv.structure.errors import with_text
from codekv.structure.parser import Parser
from codekv.testing.model import ByteTokenizer
from codekv.text.edit import find_edit
from codekv.text.snapshot import Snapshot

CODE = Path(module.__file__).read_text("utf-8")


def documents():
    return CodeDocuments(ByteTokenizer(), Parser(), 256)


def snapshot(text, version=1, uri="file:///w/a.py"):
    return Snapshot(uri, version, "python", text.encode())


def test_a_document_whose_parser_is_late_twice_is_served_from_lines(monkeypatch):
    monkeypatch.setattr(module, "FIRST_PARSE_MS", 0.0)
    held = documents()
    first = held.update(snapshot(CODE))
    assert first.tree.is_late
    assert not held.is_dear("file:///w/a.py")
    held.update(snapshot(CODE + "x", 2))
    assert held.is_dear("file:///w/a.py")
    assert held.num_dear() == 1
    monkeypatch.setattr(module, "FIRST_PARSE_MS", 1e6)
    late = held.update(snapshot(CODE + "xy", 3))
    assert late.tree.is_late
    # Its functions are found by their lines.
    kinds = {segment.kind for segment in late.segments}
    assert "function" in kinds
    held.forget("file:///w/a.py")
    assert not held.update(snapshot(CODE + "xy", 4)).tree.is_late


def test_one_late_parse_is_made_up_for(monkeypatch):
    held = documents()
    monkeypatch.setattr(module, "FIRST_PARSE_MS", 0.0)
    assert held.update(snapshot(CODE)).tree.is_late
    monkeypatch.setattr(module, "FIRST_PARSE_MS", 1e6)
    made = held.update(snapshot(CODE + "x", 2))
    assert not made.tree.is_late
    assert made == documents_of(CODE + "x", made)


def documents_of(text, like):
    """The document made from nothing, with the other's tree to compare the rest."""
    fresh = documents().update(snapshot(text, like.snapshot.version))
    assert fresh.segments == like.segments
    assert fresh.cuts == like.cuts
    assert fresh.encoding == like.encoding
    return like


def test_other_work_between_steps_leaves_no_mixture():
    """Work set aside in the middle goes on with the text it was begun for."""
    held = documents()
    held.update(snapshot(CODE))
    slow = held.update_in_steps(snapshot("# slow\n" + CODE, 2))
    next(slow)
    quick = held.update(snapshot(CODE.replace("def ", "def a"), 3))
    made = finish(slow)
    documents_of("# slow\n" + CODE, made)
    documents_of(CODE.replace("def ", "def a"), quick)
    again = held.update(snapshot(CODE + "# end\n", 4))
    documents_of(CODE + "# end\n", again)


@pytest.mark.parametrize("text", ["x = " + "[\n" * 3000 + "1\n" + "]\n" * 3000])
def test_every_step_of_a_deep_text_is_set_aside(text, monkeypatch):
    # On a quick machine such a text takes less than a slice of the usual length.
    monkeypatch.setattr(parser_module, "SLICE_MS", 0.1)
    held = documents()
    steps = sum(1 for _ in held.update_in_steps(snapshot(text)))
    assert steps > 1


def test_two_versions_are_compared_once(monkeypatch):
    held, seen = documents(), []

    def counted(old, new):
        seen.append((old, new))
        return find_edit(old, new)

    held.update(snapshot(CODE))
    monkeypatch.setattr(edit_module, "find_edit", counted)
    for version, text in enumerate(("x", "xy(", "xy()"), 2):
        seen.clear()
        held.update(snapshot(CODE + text, version))
        assert len(seen) == 1
        assert seen[0][1].endswith(text.encode())


def test_an_answer_is_not_weighed_against_a_tree_that_was_late():
    late = Parser().without_tree(snapshot("x = [\n" * 50))
    assert with_text(late, 0, 0, b"y = (").is_late
