import pytest

from bench.targets.baselines import BaselineTarget, Greedy, is_line
from bench.targets.counting import Counter, count_all
from bench.targets.layouts import Anchored, Laid, Plugin, surroundings
from bench.traces import corpus
from bench.traces import generators as traces
from bench.traces.replay import Replay, ReplayPlan
from bench.traces.sample import Journal
from bench.traces.trace import Ask, Open, TypedEdit
from codekv.config import Config
from codekv.testing.model import MID, PRE, SUF, ByteTokenizer, TinyRuntime
from codekv.text.snapshot import Snapshot

SAMPLE = corpus.SAMPLES / "depot" / "parcels.py"
TOKENIZER = ByteTokenizer()


def config(**completion):
    base = Config()
    changed = base.completion.model_copy(update=completion)
    cache = base.kvcache.model_copy(update={"max_length": 200})
    return base.model_copy(update={"completion": changed, "kvcache": cache})


def snapshot(data: bytes, version=1):
    return Snapshot("file:///a.py", version, "python", data)


def greedy(*, reuse=True, limit=12):
    return Greedy(TinyRuntime(), TOKENIZER, limit, reuse=reuse)


class Silent:
    def trace(self, target, name, episodes):
        pass

    def episode(self, samples):
        pass


def test_plugin_layout_is_lines_above_line_and_lines_below():
    data = b"".join(b"line %d\n" % index for index in range(1000))
    cursor = data.index(b"line 500") + 3
    above, line, below = surroundings(data, cursor)
    assert above.startswith(b"line 244\n")
    assert above.endswith(b"line 499\n")
    assert line == b"lin"
    assert below.startswith(b"e 500\nline 501\n")
    assert below.endswith(b"line 564")


def test_plugin_layout_keeps_to_the_window_and_leaves_the_suffix_after_the_line():
    data = SAMPLE.read_bytes()
    cursor = len(data) // 2
    laid = Plugin(TOKENIZER, config(suffix_tokens=60, max_tokens=12))(
        snapshot(data), cursor
    )
    tokens = list(laid.tokens)
    assert laid.need == b""
    assert tokens[0] == PRE
    assert tokens[-1] == MID
    middle = tokens.index(SUF)
    assert data[:cursor].endswith(bytes(tokens[1:middle]))
    assert data[cursor:].startswith(bytes(tokens[middle + 1 : -1]))
    assert len(tokens) <= 200 - 12


def test_plugin_layout_without_markers_is_left_to_right():
    class Plain(ByteTokenizer):
        fim = None

    laid = Plugin(Plain(), config())(snapshot(b"x = 1\ny = "), 10)
    assert bytes(laid.tokens) == b"x = 1\ny = "


def test_typing_recomputes_the_suffix_in_the_plugin_layout():
    data = SAMPLE.read_bytes()
    cursor = data.index(b"def with_event") + 20
    settings = config(suffix_tokens=100)
    layout, model = Plugin(TOKENIZER, settings), greedy()
    model.answer(layout(snapshot(data), cursor))
    longer = data[:cursor] + b"x" + data[cursor:]
    answer = model.answer(layout(snapshot(longer), cursor + 1))
    # The typed byte, two markers and the whole suffix.
    assert answer.tokens.computed >= 100
    assert answer.tokens.exact > 0


def test_reuse_changes_costs_and_not_answers():
    data = SAMPLE.read_bytes()
    layout = Plugin(TOKENIZER, config(suffix_tokens=40))
    warm, cold = greedy(reuse=True), greedy(reuse=False)
    for cursor in (900, 901, 700, 901):
        laid = layout(snapshot(data), cursor)
        one, other = warm.answer(laid), cold.answer(laid)
        assert one.text == other.text
        assert other.tokens.exact == 0
        assert one.tokens.context == other.tokens.context == len(laid.tokens)
        assert one.tokens.exact + one.tokens.computed == one.tokens.context
        assert one.tokens.computed >= 1


def test_answers_begin_with_what_is_needed():
    answer = greedy().answer(Laid(tuple(b"def f(x):\n    ret"), b"urn"))
    text = greedy().answer(Laid(tuple(b"def f(x):\n    ret"), b"")).text
    assert answer.tokens.generated >= 3
    assert answer.text != text or text.startswith("urn")


def test_answers_are_within_the_limit_and_one_line():
    answer = greedy().answer(Laid(tuple(b"a = [1, 2, 3]\n" * 20), b""))
    assert answer.tokens.generated <= 12
    assert "\n" not in answer.text


@pytest.mark.parametrize(
    ("text", "whole"),
    [(b"", False), (b"ab", False), (b"\n", False), (b"ab\n", True), (b"\nab", True)],
)
def test_a_line_ends_the_answer(text, whole):
    assert is_line(text) is whole


async def test_target_follows_edits_and_restarts():
    layout = Plugin(TOKENIZER, config(suffix_tokens=20))
    target = BaselineTarget(lambda: (layout, greedy()))
    await target.start()
    uri = "file:///a.py"
    await target.open(Open(uri, "python", "x = 1\ny = 2\n"))
    first = await target.ask(Ask(uri, 4, "type"))
    assert first.tokens.exact == 0
    await target.edit(TypedEdit(uri, 2, 4, 4, "7"))
    second = await target.ask(Ask(uri, 5, "type"))
    assert second.tokens.exact > 0
    await target.restart()
    await target.open(Open(uri, "python", "x = 71\ny = 2\n"))
    third = await target.ask(Ask(uri, 5, "type"))
    assert third.tokens.exact == 0
    assert third.text == second.text
    await target.close()


def test_the_service_prompt_grows_at_its_end_while_one_types():
    data = SAMPLE.read_bytes()
    cursor = data.index(b"total = base") + 4
    layout = Anchored(TOKENIZER, config(suffix_tokens=40))
    first = layout(snapshot(data), cursor)
    typed = data[:cursor] + b"x" + data[cursor:]
    second = layout(snapshot(typed, 2), cursor + 1)
    model = greedy()
    model.answer(first)
    assert model.answer(second).tokens.computed <= 4
    assert second.tokens[-1] != MID


async def counted_and_real(name, make, limit):
    """Counts of a trace, and what a real baseline computed on the tiny runtime."""
    trace = traces.build(name, corpus.load(SAMPLE.parents[1]), 2, seed=1)
    settings = config(suffix_tokens=40)
    target = BaselineTarget(lambda: (make(TOKENIZER, settings), greedy(limit=limit)))
    async with Replay(
        target, ReplayPlan("real"), Journal(None, "r"), Silent()
    ) as replay:
        samples = await replay.play(trace)
    counted = Counter(make(TOKENIZER, settings), reuse=True).count(trace)
    assert [row.label for row in counted] == [sample.label for sample in samples]
    assert [row.context for row in counted] == [sample.context for sample in samples]
    return counted, samples


@pytest.mark.parametrize("name", ["type-line", "edit-above", "jump", "restart"])
@pytest.mark.parametrize("make", [Anchored, Plugin])
async def test_counted_tokens_are_those_that_a_baseline_computes(name, make):
    counted, samples = await counted_and_real(name, make, limit=0)
    assert [row.computed for row in counted] == [s.computed for s in samples]
    assert [row.exact for row in counted] == [s.exact for s in samples]


async def test_counts_are_too_high_by_no_more_than_an_answer():
    limit = 3
    counted, samples = await counted_and_real("type-line", Anchored, limit)
    for row, sample in zip(counted, samples, strict=True):
        assert 0 <= row.computed - sample.computed <= limit


def test_fresh_counts_whole_contexts():
    trace = traces.build("jump", corpus.load(SAMPLE.parents[1]), 1, seed=1)
    counter = Counter(Anchored(TOKENIZER, config()), reuse=False)
    rows = count_all([trace], {"fresh": counter})["fresh"]["jump"]
    assert len(rows) == trace.num_asks
    assert all(row.computed == row.context for row in rows)
