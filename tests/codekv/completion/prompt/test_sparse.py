from hypothesis import given
from hypothesis import strategies as st

from codekv.completion.prompt.layout import build
from codekv.completion.prompt.sparse import sampled_lines
from codekv.completion.prompt.window import Limits, Place
from codekv.testing.model import ByteTokenizer

CODE = b"".join(b"line_%03d = %d\n" % (i, i) for i in range(100))
TOKENIZER = ByteTokenizer()
ENCODING = TOKENIZER.encode(CODE)


@given(st.integers(0, len(CODE)), st.integers(0, 400), st.integers(0, 9))
def test_samples_are_whole_lines_before_the_window(window, room, interval) -> None:
    runs = sampled_lines(CODE, ENCODING, window, room, interval)

    assert sum(stop - start for start, stop in runs) <= room
    assert runs == sorted(runs)
    for start, stop in runs:
        assert start == 0 or CODE[start - 1 : start] == b"\n"
        assert stop == window or CODE[stop - 1 : stop] == b"\n"
        assert stop <= window


def test_far_lines_join_the_prompt_only_if_asked() -> None:
    place = Place(CODE, ENCODING, len(CODE) - 15, len(CODE) - 5)
    dense = build(place, TOKENIZER, Limits(400, 0, 20))
    sparse = build(place, TOKENIZER, Limits(400, 0, 20, interval=4, newest=0.6))

    assert len(sparse.spans) > len(dense.spans)
    assert sparse.window > dense.window
    assert len(sparse.tokens) <= 400
