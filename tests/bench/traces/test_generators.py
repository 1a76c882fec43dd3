import asyncio
import os
from collections import Counter
from pathlib import Path
from random import Random

import psutil
import pytest

from bench.targets.target import TargetDocuments
from bench.traces import corpus, disturb, load
from bench.traces import generators as traces
from bench.traces.places import DEEP, strokes_from
from bench.traces.replay import Replay, ReplayPlan, spread
from bench.traces.sample import Journal, Sample
from bench.traces.trace import (
    Ask,
    Episode,
    Load,
    Open,
    Pause,
    Restart,
    Take,
    Trace,
    TypedEdit,
)
from codekv.completion.api import Completion, Item
from codekv.errors import UsageError

SAMPLES = corpus.SAMPLES
FILES = corpus.load(SAMPLES)
NAMES = list(traces.TRACES)


def texts_at_asks(trace: Trace):
    """(ask, document's bytes then) for every question, applying edits as a target."""
    for episode in trace.episodes:
        documents = TargetDocuments()
        for step in episode.steps:
            if isinstance(step, Open):
                documents.open(step)
            elif isinstance(step, TypedEdit):
                documents.edit(step)
            elif isinstance(step, Take):
                start, text = step.start_byte, step.text
                edit = TypedEdit(step.uri, step.version, start, start, text)
                documents.edit(edit)
            elif isinstance(step, Restart):
                documents.clear()
            elif isinstance(step, Ask):
                yield step, documents[step.uri]


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_trace_and_other_seed_other_trace(name):
    first = traces.build(name, FILES, 4, seed=1)
    assert len(first.episodes) == 4
    assert first == traces.build(name, FILES, 4, seed=1)
    assert first.digest == traces.build(name, corpus.load(SAMPLES), 4, seed=1).digest
    assert first.digest != traces.build(name, FILES, 4, seed=2).digest


@pytest.mark.parametrize("name", NAMES)
def test_more_episodes_continue_the_same_ones(name):
    few = traces.build(name, FILES, 2, seed=3)
    assert traces.build(name, FILES, 4, seed=3).episodes[:2] == few.episodes


@pytest.mark.parametrize("name", NAMES)
def test_every_cursor_and_edit_fits_the_text(name):
    trace = traces.build(name, FILES, 4, seed=5)
    for ask, snapshot in texts_at_asks(trace):
        assert 0 <= ask.cursor_byte <= len(snapshot.data)
        snapshot.data[: ask.cursor_byte].decode()


@pytest.mark.parametrize("name", NAMES)
def test_versions_grow_by_one(name):
    for episode in traces.build(name, FILES, 3, seed=7).episodes:
        versions: dict[str, int] = {}
        for step in episode.steps:
            if isinstance(step, Open):
                versions[step.uri] = 1
            elif isinstance(step, TypedEdit):
                versions[step.uri] += 1
                assert step.version == versions[step.uri]
            elif isinstance(step, Take):
                versions[step.uri] += len(step.text)
                assert step.version == versions[step.uri]
                assert len(step.pauses) == len(step.text)


def test_type_line_types_fifteen_strokes_deep_in_the_file():
    trace = traces.build("type-line", FILES, 20, seed=1)
    assert len(trace.episodes) == 20
    for episode in trace.episodes:
        assert episode.num_asks == 1 + traces.TYPED
    for ask, snapshot in texts_at_asks(trace):
        assert ask.cursor_byte >= DEEP
        # What stands before the cursor is the real file's own text.
        original = next(f for f in FILES if f.uri == ask.uri)
        assert original.data.startswith(snapshot.data[: ask.cursor_byte])


@pytest.mark.parametrize(
    "name",
    [
        "insert-function-above",
        "edit-above",
        "edit-comment",
        "rename-used-name",
        "delete-function",
        "indent-block",
    ],
)
def test_disturbances_change_text_above_the_cursor_only(name):
    trace = traces.build(name, FILES, 6, seed=1)
    before: dict[str, bytes] = {}
    checked = 0
    for ask, snapshot in texts_at_asks(trace):
        head = snapshot.data[: ask.cursor_byte]
        if ask.label == "warm":
            before = {"head": head, "tail": snapshot.data[ask.cursor_byte :]}
        elif ask.label == "back":
            assert snapshot.data[ask.cursor_byte :] == before["tail"]
            assert not head.startswith(before["head"])
            checked += 1
    assert checked >= 6 * disturb.BACK


def test_undo_comes_back_to_the_same_text():
    trace = traces.build("undo-redo", FILES, 3, seed=1)
    undone = [s.data for ask, s in texts_at_asks(trace) if ask.label == "undo"]
    assert undone[0] == undone[1]


def test_restart_keeps_the_text():
    trace = traces.build("restart", FILES, 3, seed=1)
    for episode in trace.episodes:
        assert sum(isinstance(step, Restart) for step in episode.steps) == 1
    asks = [(ask.label, s.data) for ask, s in texts_at_asks(trace)]
    for (label, data), (after, reopened) in zip(asks, asks[1:], strict=False):
        if (label, after) == ("warm", "restart"):
            assert data == reopened


@pytest.mark.parametrize("name", NAMES)
def test_a_wanted_number_of_requests_is_reached_without_arrivals(name):
    trace = traces.build(name, FILES, 0, seed=1, requests=25)
    counted = [episode.num_counted for episode in trace.episodes]
    assert sum(counted) >= 25
    assert sum(counted[:-1]) < 25
    assert (
        traces.build(name, FILES, 0, 1, requests=10).episodes
        == trace.episodes[: len(traces.build(name, FILES, 0, 1, requests=10).episodes)]
    )


def project(root: Path, name: str, files: int) -> None:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    for index in range(files):
        code = f"def f{index}(x):\n    return {name}(x, {index})\n\n\n" * 150
        (folder / f"m{index}.py").write_text(code)


def test_repositories_take_turns(tmp_path):
    for name, files in (("big", 9), ("small", 1), ("middle", 3)):
        project(tmp_path, name, files)
    files = corpus.sample(corpus.load(tmp_path), 6, Random(1))
    sizes = {name: len(group) for name, group in corpus.by_repository(files).items()}
    assert sizes["small"] == 1
    assert {sizes["big"], sizes["middle"]} == {2, 3}
    trace = traces.build("type-line", files, 9, seed=1)
    counts = Counter(episode.repository for episode in trace.episodes)
    assert counts == {"big": 3, "small": 3, "middle": 3}
    # A trace that one of them has no place for goes on in the others.
    switch = traces.build("switch-file-and-back", files, 6, seed=1)
    counts = Counter(episode.repository for episode in switch.episodes)
    assert counts == {"big": 3, "middle": 3}


def test_folders_of_a_project_are_not_repositories(tmp_path):
    project(tmp_path, "tests", 1)
    (tmp_path / "pyproject.toml").write_text("")
    assert {f.repository for f in corpus.load(tmp_path)} == {tmp_path.name}


def test_unknown_trace_is_named_with_the_known_ones():
    with pytest.raises(UsageError, match="type-line"):
        traces.build("type-word", FILES, 1, seed=1)


def test_strokes_take_indentation_with_the_line_end():
    data = b"if ready:\n\n    go()\nstay()\n"
    target = strokes_from(data, 7, 4)
    assert target.strokes == ("y", ":", "\n\n    ", "g")
    assert data[: target.end].endswith(b"go()")


def test_brace_languages_have_functions_too():
    code = (
        "function add(a, b) {\n  return a + b;\n}\n\n"
        "class A {\n  m(x) {\n    if (x) {\n      go();\n    }\n  }\n}\n"
    )
    file = corpus.make_file("file:///a.js", "a.js", "javascript", code.encode())
    assert [(f.first, f.last) for f in file.functions] == [(0, 2), (5, 9)]


def test_corpus_leaves_out_what_is_not_source(tmp_path):
    good = b"def f():\n    return 1\n" * 200
    (tmp_path / "good.py").write_bytes(good)
    (tmp_path / "binary.py").write_bytes(good + b"\0")
    (tmp_path / "latin.py").write_bytes(good + b"# \xe9\n")
    (tmp_path / "long.py").write_bytes(b"x = '" + b"a" * 5000 + b"'\n")
    (tmp_path / "tiny.py").write_bytes(b"x = 1\n")
    (tmp_path / "notes.txt").write_bytes(good)
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "dep.py").write_bytes(good)
    assert [file.name for file in corpus.load(tmp_path)] == ["good.py"]


def test_empty_folder_is_a_one_line_error(tmp_path):
    with pytest.raises(UsageError, match="no source file"):
        corpus.load(tmp_path)
    with pytest.raises(UsageError, match="no such file"):
        corpus.load(tmp_path / "missing")


def test_sample_is_seeded():
    first = corpus.sample(FILES, 2, Random(4))
    assert first == corpus.sample(FILES, 2, Random(4))
    assert len(first) == 2


class Silent:
    def trace(self, target, name, episodes):
        pass

    def episode(self, samples):
        pass


def fake_sample(index: int) -> Sample:
    numbers = dict.fromkeys(
        ("at_s", "latency", "ttft", "prefill", "decode", "rss_mb"), 0.5
    )
    counts = dict.fromkeys(
        ("context", "exact", "restored", "moved", "computed", "generated", "steps"), 2
    )
    texts = {"source": "model", "reason": "", "reuse_stop": "", "text": "ü\n"}
    return Sample("e", index, "type", **numbers, **counts, **texts)


def test_journal_takes_up_finished_episodes_and_drops_a_cut_line(tmp_path):
    path = tmp_path / "run.jsonl"
    journal = Journal(path, "run-1")
    journal.add(("codekv", "t", "e1"), [fake_sample(0), fake_sample(1)])
    with path.open("a") as file:
        file.write('["codekv", "t", "e2", [{"epis')
    again = Journal(path, "run-1")
    assert again.num_done == 1
    assert again.get(("codekv", "t", "e1")) == [fake_sample(0), fake_sample(1)]
    again.add(("codekv", "t", "e2"), [])
    assert Journal(path, "run-1").num_done == 2
    assert Journal(path, "run-2").num_done == 0
    again.drop()
    assert not path.exists()


class Recorder:
    """A target that notes what it was told and answers with nothing."""

    def __init__(self):
        self.documents = TargetDocuments()
        self.asked = []
        self.calls = []

    async def start(self):
        self.calls.append("start")

    async def open(self, step):
        self.documents.open(step)

    async def edit(self, step):
        self.documents.edit(step)

    async def focus(self, uri):
        self.calls.append("focus")

    async def ask(self, step):
        self.asked.append((self.documents[step.uri].data, step.cursor_byte))
        return Completion()

    async def account(self, answer):
        return answer

    async def settle(self, seconds):
        self.calls.append("settle")

    async def restart(self):
        self.documents.clear()
        self.calls.append("restart")

    async def close(self):
        self.calls.append("close")

    @property
    def pid(self):
        return os.getpid()

    metrics = {}


async def play(target, plan, journal, names, every=1):
    async with Replay(target, plan, journal, Silent()) as replay:
        return [
            s
            for n in names
            for s in await replay.play(traces.build(n, FILES, 2, seed=1), every)
        ]


async def test_two_replays_ask_identical_questions():
    first, second = Recorder(), Recorder()
    for target in (first, second):
        names = list(traces.BY_DEFAULT)
        await play(target, ReplayPlan("codekv"), Journal(None, "r"), names)
    assert first.asked == second.asked
    assert first.calls == second.calls
    assert first.calls[0] == "start"
    assert first.calls[-1] == "close"


async def test_a_resumed_replay_asks_only_what_is_missing(tmp_path):
    path = tmp_path / "j.jsonl"
    whole = await play(Recorder(), ReplayPlan("codekv"), Journal(None, "r"), ["jump"])
    journal = Journal(path, "r")
    await play(Recorder(), ReplayPlan("codekv", max_asks=1), journal, ["jump"])
    assert journal.num_done == 1
    target = Recorder()
    samples = await play(target, ReplayPlan("codekv"), Journal(path, "r"), ["jump"])
    assert len(samples) == len(whole)
    assert len(target.asked) == len(whole) // 2
    idle = Recorder()
    await play(idle, ReplayPlan("codekv"), Journal(path, "r"), ["jump"])
    assert idle.calls == []


@pytest.mark.parametrize(("asks", "chosen"), [(None, 8), (1, 1), (17, 2), (999, 8)])
def test_a_sample_of_episodes_is_spread_over_the_trace(asks, chosen):
    episodes = traces.build("type-line", FILES, 8, seed=1).episodes
    found = spread(episodes, asks)
    assert len(found) == chosen
    if chosen == 2:
        assert found == [episodes[0], episodes[4]]


async def test_targets_without_memory_may_be_asked_every_third_time():
    target = Recorder()
    samples = await play(
        target, ReplayPlan("fresh"), Journal(None, "r"), ["type-line"], every=3
    )
    assert [sample.index for sample in samples] == [1, 4, 7, 10, 13] * 2
    target = Recorder()
    samples = await play(
        target, ReplayPlan("fresh"), Journal(None, "r"), ["type-line"], every=4
    )
    assert [sample.index for sample in samples] == [1, 5, 9, 13, 2, 6, 10, 14]


class Offering(Recorder):
    """Answers after a while with what the author wrote next."""

    def __init__(self, delay: float, text: str) -> None:
        super().__init__()
        self._delay = delay
        self._text = text

    async def ask(self, step):
        await asyncio.sleep(self._delay)
        await super().ask(step)
        return Completion((Item("c", self._text, step.cursor_byte, step.cursor_byte),))


def keys(*steps):
    """An episode of one short document that is typed in at its end."""
    return Trace("cold-typing", (Episode("e", (Open("u", "python", "a"), *steps)),))


async def live(target, trace):
    async with Replay(target, ReplayPlan("x"), Journal(None, "r"), Silent()) as replay:
        return await replay.play(trace)


async def test_a_live_key_overtakes_a_question_that_is_not_answered_in_time():
    steps = [
        Pause(0.05),
        TypedEdit("u", 2, 1, 1, "b"),
        Ask("u", 2, "cold"),
        Pause(0.05),
        TypedEdit("u", 3, 2, 2, "c"),
        Ask("u", 3, "cold"),
    ]
    slow = await live(Offering(0.2, "d"), keys(*steps))
    fast = await live(Offering(0.0, "d"), keys(*steps))

    assert [sample.overtaken for sample in slow] == [True, False]
    assert slow[0].text == ""
    assert slow[0].latency < 150
    assert [sample.overtaken for sample in fast] == [False, False]
    assert [sample.index for sample in fast] == [0, 1]


@pytest.mark.parametrize(("offered", "taken"), [("cde", 2), ("x", 0)])
async def test_what_is_on_offer_is_taken_and_typed_otherwise(offered, taken):
    target = Offering(0.0, offered)
    samples = await live(
        target,
        keys(
            TypedEdit("u", 2, 1, 1, "b"),
            Ask("u", 2, "type"),
            Take("u", 4, 2, "cd", (0.01, 0.01)),
        ),
    )

    assert target.documents["u"].data == b"abcd"
    assert target.documents["u"].version == 4
    assert samples[0].taken == taken
    assert len(samples) == (2 if taken else 3)


async def test_a_background_load_takes_what_it_is_told_to_and_ends():
    replay = Replay(Recorder(), ReplayPlan("x"), Journal(None, "r"), Silent())
    async with replay:
        await replay.play(keys(Load(1), Pause(0.5), TypedEdit("u", 2, 1, 1, "b")))
        assert replay.load.cores == 0.0
    assert replay.load.cpu_s > 0.0
    assert replay.load.wall_s >= 0.5
    assert not [
        child
        for child in psutil.Process().children()
        if load.BUSY_LOOP in child.cmdline()
    ]


@pytest.mark.parametrize("name", ["human-session", "cold-typing"])
def test_people_type_as_published(name):
    pauses = [
        step.seconds
        for episode in traces.build(name, FILES, 40, seed=2).episodes
        for step in episode.steps
        if isinstance(step, Pause)
    ]
    typing = [seconds for seconds in pauses if seconds < 1.0]
    assert 0.16 < sum(typing) / len(typing) < 0.32
    assert min(pauses) >= 0.03
