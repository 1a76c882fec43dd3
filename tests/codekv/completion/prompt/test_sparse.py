from hypothesis import given
from hypothesis import strategies as st

from codekv.completion.prompt.layout import build
from codekv.completion.prompt.sparse import sampled_blocks
from codekv.completion.prompt.window import Limits, Place
from codekv.testing.model import ByteTokenizer

CODE = b"".join(b"line_%03d = %d\n" % (i, i) for i in range(100))
TOKENIZER = ByteTokenizer()


class WithoutMarkers(ByteTokenizer):
    """A model that only goes on with what stands before."""

    fim = None


ENCODING = TOKENIZER.encode(CODE)


CUTS = tuple(range(0, len(CODE), 30))


@given(st.integers(0, len(CODE)), st.integers(0, 320), st.integers(0, 9), st.booleans())
def test_samples_are_whole_blocks_before_the_window(
    start, size, interval, dynamic
) -> None:
    # A window has at most the newest share of the room.
    window, room = (start, min(start + size, len(CODE))), 400
    limits = Limits(600, 0, 20, interval=interval, dynamic=dynamic)
    runs = sampled_blocks(CUTS, window, room, limits)

    assert sum(hi - lo for lo, hi in runs) + window[1] - window[0] <= room or not runs
    assert runs == sorted(runs)
    for lo, hi in runs:
        assert lo in CUTS
        assert hi in CUTS or hi == start
        assert hi <= start
    if interval == 0 and not dynamic:
        assert runs == []


def test_far_lines_join_the_prompt_only_if_asked() -> None:
    place = Place(CODE, ENCODING, len(CODE) - 15, len(CODE) - 5, CUTS)
    for tokenizer in (TOKENIZER, WithoutMarkers()):
        dense = build(place, tokenizer, Limits(400, 0, 20))
        for how in ({"interval": 4}, {"dynamic": True}):
            sparse = build(place, tokenizer, Limits(400, 0, 20, newest=0.6, **how))

            assert len(sparse.spans) > len(dense.spans)
            assert sparse.window > dense.window
            assert len(sparse.tokens) <= 400


def test_a_short_text_below_leaves_its_room_to_the_text_above() -> None:
    place = Place(CODE, ENCODING, len(CODE) - 15, len(CODE) - 5, CUTS)
    usual = build(place, TOKENIZER, Limits(400, 200, 20, newest=1.0))
    dynamic = build(place, TOKENIZER, Limits(400, 200, 20, newest=1.0, dynamic=True))

    assert len(dynamic.tokens) >= len(usual.tokens) + 100
    assert len(dynamic.tokens) <= 400
