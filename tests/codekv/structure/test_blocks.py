from hypothesis import given, settings
from hypothesis import strategies as st

from codekv.structure.blocks import MIN_TOKENS, blocks, blocks_of
from codekv.structure.parser import Parser
from codekv.structure.segment import Segment, segments
from codekv.structure.split import Splits
from codekv.text.snapshot import Snapshot


@st.composite
def tokenised(draw):
    lengths = draw(st.lists(st.integers(1, 9), max_size=400))
    ends = []
    for length in lengths:
        ends.append((ends[-1] if ends else 0) + length)
    size = ends[-1] if ends else 0
    cuts = sorted({0, size, *draw(st.lists(st.integers(0, size), max_size=12))})
    found = [
        Segment("glue", a, b, "") for a, b in zip(cuts, cuts[1:], strict=False) if b > a
    ]
    points = sorted(draw(st.sets(st.integers(0, size), max_size=60)))
    ranks = [(draw(st.integers(0, 3)), draw(st.integers(0, 99))) for _ in points]
    return found, ends, list(zip(points, ranks, strict=True))


@given(tokenised(), st.integers(16, 80))
@settings(max_examples=200, deadline=None)
def test_blocks_tile_the_tokens_and_keep_the_limit(case, chunk_size):
    found, ends, ranks = case

    def points(segment):
        low, high = segment.start_byte, segment.end_byte
        inside = [(p - low, rank) for p, rank in ranks if low < p < high]
        return Splits(tuple(p for p, _ in inside), tuple(rank for _, rank in inside))

    cut = blocks(found, ends, chunk_size, points)
    at = 0
    for start, end in cut:
        assert start == at
        assert 0 < end - start <= chunk_size
        at = end
    assert at == len(ends)
    assert cut == blocks(found, ends, chunk_size, points)


def test_tiny_segments_are_joined():
    found = [Segment("glue", i * 10, i * 10 + 10, "") for i in range(20)]
    ends = range(1, 201)
    cut = blocks(found, ends, 256)
    assert all(end - start >= MIN_TOKENS for start, end in cut)


def test_large_segments_are_cut_exactly_at_their_borders():
    found = [Segment("function", 0, 100, "a"), Segment("function", 100, 250, "b")]
    assert blocks(found, range(1, 251), 256) == [(0, 100), (100, 250)]


def test_a_token_over_a_border_falls_behind_it():
    found = [Segment("function", 0, 99, "a"), Segment("function", 99, 200, "b")]
    assert blocks(found, range(2, 202, 2), 64) == [(0, 49), (49, 100)]


def statements(start, count):
    return b"".join(
        b"    value_%d = %d\n" % (i, i) for i in range(start, start + count)
    )


def cut_texts(body):
    data = b"def f():\n" + body
    tree = Parser().parse(Snapshot("u", 0, "python", data), None)
    ends = range(1, len(data) + 1)
    return {data[a:b] for a, b in blocks_of(tree, segments(tree), ends, 256)}


def test_an_edit_inside_a_long_function_leaves_most_of_its_blocks():
    body = statements(0, 200)
    before = cut_texts(body)
    lines = body.split(b"\n")
    edited = b"\n".join([*lines[:20], b"    something(new)", *lines[20:]])
    after = cut_texts(edited)
    assert len(before) > 12
    assert len(before - after) <= 4


def test_text_without_lines_is_cut_by_count():
    data = b"x" * 1000
    tree = Parser().parse(Snapshot("u", 0, "python", data), None)
    cut = blocks_of(tree, segments(tree), range(1, 1001), 256)
    assert max(end - start for start, end in cut) <= 256
    assert cut[-1][1] == 1000
