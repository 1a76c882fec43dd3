import tomllib
from pathlib import Path

import pytest

from codekv.structure.anchor import find_anchor
from codekv.structure.classes import CLASS_NAMES, token_classes
from codekv.structure.parser import Parser
from codekv.structure.segment import segments
from codekv.text.snapshot import Snapshot
from grammars.registry import grammar_for, grammar_names

FOLDER = Path(__file__).parent


@pytest.fixture(params=grammar_names())
def case(request):
    folder = FOLDER / request.param
    (sample,) = folder.glob("sample.*")
    data = sample.read_bytes()
    expected = tomllib.loads((folder / "expected.toml").read_text("utf-8"))
    return Parser().parse(Snapshot(sample.name, 0, request.param, data), None), expected


def test_sample_parses(case):
    tree, _ = case
    assert not tree.has_error


def test_segments(case):
    tree, expected = case
    data = tree.snapshot.data
    found = segments(tree)
    assert [(s.kind, s.name) for s in found] == [
        (kind, name) for kind, name, _ in expected["segments"]
    ]
    for segment, (_, _, text) in zip(found, expected["segments"], strict=True):
        assert data[segment.start_byte :].lstrip(b" \t").startswith(text.encode())


def test_anchors(case):
    tree, expected = case
    data = tree.snapshot.data
    found = {}
    for text, _ in expected["anchors"]:
        assert text.encode() in data
        line_end = data.index(b"\n", data.index(text.encode()))
        at = find_anchor(tree, line_end)
        found[text] = data[at:].split(b"\n")[0].decode()
    for text, anchor in expected["anchors"]:
        assert found[text].startswith(anchor), text


def test_classes(case):
    tree, expected = case
    data = tree.snapshot.data
    # One token per byte: the class of each byte.
    classes = token_classes(tree, range(1, len(data) + 1))
    for group, want in (
        ("comments", "comment"),
        ("names", "name"),
        ("others", "other"),
    ):
        for text in expected[group]:
            at = data.index(text.encode())
            kinds = {CLASS_NAMES[c] for c in classes[at : at + 3]}
            assert kinds == {want}, text
    for at in range(1, len(data)):
        if data[at - 1 : at] == b"\n" and data[at] in b" \t":
            assert CLASS_NAMES[classes[at]] in ("indent", "comment", "other")


def test_every_language_is_found_by_its_sample_file_name(case):
    tree, _ = case
    assert grammar_for("", tree.snapshot.uri) is tree.grammar
