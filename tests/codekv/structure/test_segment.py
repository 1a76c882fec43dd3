from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.structure.parser import Parser
from codekv.structure.segment import Segment, segments
from codekv.structure.split import splits
from codekv.text.snapshot import Snapshot
from grammars.registry import grammar_names

SAMPLES = Path(__file__).parents[2] / "languages"


def sample(language):
    (path,) = (SAMPLES / language).glob("sample.*")
    return path.read_bytes()


def parse(language, data, previous=None):
    return Parser().parse(Snapshot("u", 0, language, data), previous)


def check_tiling(data, found):
    at = 0
    for segment in found:
        assert segment.start_byte == at
        assert segment.end_byte > at
        assert at == 0 or data[at - 1] == 0x0A
        at = segment.end_byte
    assert at == len(data)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_segments_tile_any_text(data):
    language = data.draw(st.sampled_from([*grammar_names(), "plaintext"]))
    source = sample("python" if language == "plaintext" else language)
    tree, found = None, None
    for _ in range(4):
        at = data.draw(st.integers(0, len(source)))
        to = data.draw(st.integers(at, min(len(source), at + 60)))
        piece = data.draw(
            st.sampled_from([b"", b"{", b'"""', b"\n", b"def f():\n", b"("])
        )
        source = source[:at] + piece + source[to:]
        before = (tree, found) if tree else None
        tree = parse(language, source, tree)
        found = segments(tree, before)
        check_tiling(source, found)
        check_tiling(source, segments(tree))


BREAKING = [b"", b"(", b"{", b"}", b"'", b'"', b'"""', b"/*", b":", b"if ", b"[", b"`"]


@pytest.mark.parametrize("language", grammar_names())
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_cuts_of_untouched_functions_stay_put(language, data):
    source = sample(language)
    tree = parse(language, source)
    found = segments(tree)
    functions = [s for s in found if s.kind == "function"]
    target = data.draw(st.sampled_from(functions))
    low = source.index(b"\n", target.start_byte) + 1
    high = target.end_byte - 1
    if low >= high:
        return
    untouched = [
        (s.kind, s.name, source[s.start_byte : s.end_byte])
        for s in functions
        if s != target
    ]
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(low, max(low, high)))
        to = data.draw(st.integers(at, max(at, min(high, at + 40))))
        piece = data.draw(st.sampled_from(BREAKING))
        source = source[:at] + piece + source[to:]
        high += len(piece) - (to - at)
        before = (tree, found)
        tree = parse(language, source, tree)
        found = segments(tree, before)
        check_tiling(source, found)
        if not tree.has_error:
            continue
        have = {(s.kind, s.name, source[s.start_byte : s.end_byte]) for s in found}
        assert have.issuperset(untouched)


def test_a_cut_stays_when_the_lines_before_it_are_deleted():
    source = sample("typescript")
    tree = parse("typescript", source)
    found = segments(tree)
    names = [segment.name for segment in found]
    gone = b"    super();\n  }\n\n"
    source = source.replace(gone, b"    super();\n")
    now = parse("typescript", source, tree)
    assert now.has_error
    assert [segment.name for segment in segments(now, (tree, found))] == names


@pytest.mark.parametrize("language", grammar_names())
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_segments_after_edits_equal_segments_from_nothing(language, data):
    source = sample(language)
    tree = parse(language, source)
    found = segments(tree)
    pieces = [
        b"x",
        b"\n",
        b"    ",
        b"",
        b"()",
        b"{}",
        b"# c\n",
        b"// c\n",
        b"@d\n",
        b"x\n",
    ]
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(source)))
        to = data.draw(st.integers(at, min(len(source), at + 9)))
        new = source[:at] + data.draw(st.sampled_from(pieces)) + source[to:]
        after = parse(language, new, tree)
        if after.has_error:
            continue
        found = segments(after, (tree, found))
        tree, source = after, new
        assert found == segments(tree)


def test_a_function_pasted_before_another_leaves_that_ones_cut():
    head, tail = b"x = 1\n\n\n", b"def g():\n    return 1\n\n\ny = (\n"
    tree = parse("python", head + tail)
    found = segments(tree, None)
    pasted = head + b"def f(:\n    pass\n\n\n" + tail
    now = segments(parse("python", pasted, tree), (tree, found))
    assert [(s.kind, pasted[s.start_byte :][:5]) for s in now] == [
        ("glue", b"x = 1"),
        ("function", b"def f"),
        ("function", b"def g"),
        ("glue", b"y = ("),
    ]


def test_a_broken_file_opened_first_is_cut_at_its_header_lines():
    source = (
        b"def f(:\n    def inner():\n        x = (\n\nclass A:\n    def m(self):\n  x\n"
    )
    found = segments(parse("python", source))
    starts = [source[s.start_byte :].split(b"\n")[0] for s in found]
    assert starts[:3] == [b"def f(:", b"class A:", b"    def m(self):"]
    assert [s.name for s in found[:3]] == ["f", "A", "m"]


def test_nested_function_belongs_to_the_outer_one():
    source = b"def f():\n    def g():\n        pass\n    return g\n"
    assert segments(parse("python", source)) == (
        Segment("function", 0, len(source), "f"),
    )


def test_empty_text_has_no_segments():
    assert segments(parse("python", b"")) == ()


def test_unknown_language_is_one_segment():
    assert segments(parse("plaintext", b"a\nb\n")) == (Segment("glue", 0, 4, ""),)


def test_splits_prefer_shallow_statements():
    source = (
        b"def f():\n    a = 1\n    if a:\n"
        b"        b = (\n            2,\n        )\n    c = 3\n"
    )
    tree = parse("python", source)
    (segment,) = segments(tree)
    found = splits(tree, segment)
    best = sorted(zip(found.ranks, found.starts, strict=True))[:3]
    texts = {source[start:].split(b"\n")[0].strip() for _, start in best}
    assert texts == {b"a = 1", b"if a:", b"c = 3"}
    assert list(found.starts) == sorted(found.starts)


def test_splits_avoid_the_inside_of_strings_and_calls():
    source = b'def f():\n    x = """\na\nb\n"""\n    g(\n1,\n2)\n    y = 1\n'
    tree = parse("python", source)
    (segment,) = segments(tree)
    found = splits(tree, segment)
    order = [
        source[start:].split(b"\n")[0].strip()
        for _, start in sorted(zip(found.ranks, found.starts, strict=True))
    ]
    assert set(order[:3]) == {b'x = """', b"g(", b"y = 1"}


def test_a_dotted_name_survives_an_edit_beside_it():
    source = sample("toml")
    tree = parse("toml", source)
    found = segments(tree)
    at = source.index(b"[tool.words.env]") - 2
    source = source[:at] + b"(" + source[at:]
    now = parse("toml", source, tree)
    names = {segment.name for segment in segments(now, (tree, found))}
    assert {segment.name for segment in found} <= names
