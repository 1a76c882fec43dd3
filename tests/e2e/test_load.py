import os
import time

import psutil
import pytest

from codekv.testing.service import ScriptedAnswer

URI = "file:///w/shop.py"


@pytest.mark.parametrize("cancels", [False, True])
def test_thirty_questions_in_a_row_cost_two_generations_at_most(stage, cancels):
    editor = stage(ScriptedAnswer("done()", delay_ms=100))
    editor.open(URI, "x = ")
    editor.complete(URI)
    before = editor.status()["metrics"]["generations"]
    started = time.perf_counter()
    ids = []
    for number in range(30):
        end = len(editor.texts[URI])
        editor.replace(URI, end, end, "a")
        ids.append(editor.ask(URI))
        if cancels and number < 29:
            editor.client.notify("$/cancelRequest", {"id": ids[-1]})
        due = started + (number + 1) * 0.01
        time.sleep(max(0.0, due - time.perf_counter()))
    last = editor.client.answer(ids[-1])
    others = [editor.client.answer(each) for each in ids[:-1]]
    assert last["result"]["items"][0]["insertText"] == "done()"
    assert time.perf_counter() - started < 5
    for each in others:
        assert each.get("result") is None
        assert each.get("error", {"code": -32800})["code"] == -32800
    assert editor.status()["metrics"]["generations"] - before <= 2


def test_cancelling_stops_the_work_and_the_next_question_is_answered(stage):
    editor = stage(ScriptedAnswer("slow", delay_ms=60_000), ScriptedAnswer("fast"))
    editor.open(URI, "x = ")
    asked = editor.ask(URI, triggerKind=1)
    editor.await_state("working")
    editor.client.notify("$/cancelRequest", {"id": asked})
    answer = editor.client.answer(asked)
    assert answer["error"]["code"] == -32800
    assert editor.complete(URI)["items"][0]["insertText"] == "fast"
    assert editor.status()["metrics"]["cancelled"] == 1


def test_a_status_bar_is_told_when_dropped_work_has_ended(stage):
    editor = stage(ScriptedAnswer("slow", delay_ms=60_000))
    editor.open(URI, "x = ")
    asked = editor.ask(URI, triggerKind=1)
    editor.await_state("working")
    editor.replace(URI, 0, 0, "y")
    assert editor.client.answer(asked)["result"] is None
    editor.await_state("ready")


def test_a_newer_question_ends_the_older_one_at_once(stage):
    editor = stage(ScriptedAnswer("slow", delay_ms=60_000), ScriptedAnswer("fast"))
    editor.open(URI, "x = ")
    older = editor.ask(URI, triggerKind=1)
    editor.await_state("working")
    newer = editor.ask(URI, triggerKind=1)
    assert editor.client.answer(older)["result"] is None
    assert editor.client.answer(newer)["result"]["items"]


def test_questions_about_other_documents_are_not_ended(stage):
    editor = stage(ScriptedAnswer("a", delay_ms=200))
    editor.open(URI, "x = ")
    editor.open("file:///w/other.py", "y = ")
    first = editor.ask(URI, triggerKind=1)
    second = editor.ask("file:///w/other.py", triggerKind=1)
    assert editor.client.answer(first)["result"]["items"]
    assert editor.client.answer(second)["result"]["items"]


@pytest.mark.parametrize("change", ["edit", "close"])
def test_an_answer_for_an_old_text_is_null_and_its_work_stops(stage, change):
    editor = stage(ScriptedAnswer("slow", delay_ms=60_000))
    editor.open(URI, "x = ")
    asked = editor.ask(URI, triggerKind=1)
    editor.await_state("working")
    if change == "edit":
        editor.replace(URI, 0, 0, "y")
    else:
        editor.close(URI)
    assert editor.client.answer(asked)["result"] is None
    assert editor.status()["metrics"]["cancelled"] == 1


def test_other_requests_are_answered_while_a_completion_is_generated(stage):
    editor = stage(ScriptedAnswer("slow", delay_ms=3_000))
    editor.open(URI, "x = ")
    asked = editor.ask(URI, triggerKind=1)
    editor.await_state("working")
    times = []
    for _ in range(10):
        started = time.perf_counter()
        editor.status()
        times.append(time.perf_counter() - started)
    assert not editor.client.answers[asked]
    assert sorted(times)[5] < 0.05


def test_typing_in_a_megabyte_is_answered_fast(stage):
    editor = stage()
    line = "    value = compute(first, second)\n"
    editor.open(URI, line * 30_000)
    middle = len(line) * 15_000
    editor.client.call("codekv/status")
    started = time.perf_counter()
    for _ in range(5):
        document = {"uri": URI, "version": 2}
        place = {"line": 15_000, "character": 0}
        change = {"range": {"start": place, "end": place}, "text": "x"}
        editor.client.notify(
            "textDocument/didChange",
            {"textDocument": document, "contentChanges": [change]},
        )
    editor.status()
    assert time.perf_counter() - started < 1.0, "generous for a busy machine"
    assert middle > 500_000


def test_opening_and_closing_many_documents_keeps_no_memory(stage):
    editor = stage()
    process = psutil.Process(editor.client.process.pid)
    text = "value = 1  # é\n" * 4_000

    def cycle(times):
        for number in range(times):
            uri = f"file:///w/{number}.py"
            editor.open(uri, text)
            editor.close(uri)
        return editor.status()["metrics"]["open"], process.memory_info().rss

    cycle(40)
    _, before = cycle(1)
    still_open, after = cycle(200)
    assert still_open == 0
    assert after - before < 10_000_000, "200 texts and their lines are 80 million"


def test_changing_settings_again_and_again_leaves_no_threads(stage):
    editor = stage()
    process = psutil.Process(editor.client.process.pid)
    before = process.num_threads()
    for number in range(50):
        settings = {"codekv": {"completion": {"max_tokens": 10 + number}}}
        editor.client.notify("workspace/didChangeConfiguration", {"settings": settings})
    editor.client.wait_for(
        lambda: len(editor.client.asked) >= 50, "fifty questions for settings"
    )
    editor.status()
    assert process.num_threads() <= before + 1


def test_an_idle_server_uses_no_processor_time(stage):
    editor = stage()
    editor.open(URI, "x = ")
    editor.complete(URI)
    process = psutil.Process(editor.client.process.pid)
    before = sum(process.cpu_times()[:2])
    editor.client.process.poll()
    with pytest.raises(TimeoutError):
        editor.client.wait_for(lambda: False, "nothing", 2.0)
    assert sum(process.cpu_times()[:2]) - before < 0.1
    assert os.getpid() != process.pid


@pytest.mark.parametrize("client", ["vscode_9", "vscode_10", "neovim_0_12"])
def test_typing_along_an_offer_is_answered_at_once_without_work(stage, client):
    editor = stage(
        ScriptedAnswer("price * 2"),
        client=client,
        types_through=True,
        options={"completion": {"debounce_ms": 60_000}},
    )
    editor.open(URI, "x = ")
    automatic = 1 if client == "vscode_9" else 2
    assert editor.complete(URI)["items"][0]["insertText"] == "price * 2"
    rest = "price * 2"
    for length in (1, 1, 3, 2, 1):
        typed, rest = rest[:length], rest[length:]
        end = len(editor.texts[URI])
        editor.replace(URI, end, end, typed)
        items = editor.complete(URI, triggerKind=automatic)["items"]
        assert [item["insertText"] for item in items] == [rest]
        assert editor.accepted(URI, items[0]) == "x = price * 2"
    assert editor.status()["metrics"]["generations"] == 1


def test_a_storm_of_file_events_is_ignored(stage):
    editor = stage()
    editor.open(URI, "x = ")
    process = psutil.Process(editor.client.process.pid)
    before = process.memory_info().rss
    changes = [{"uri": f"file:///w/{n}.py", "type": 2} for n in range(2_000)]
    for _ in range(10):
        params = {"changes": changes}
        editor.client.notify("workspace/didChangeWatchedFiles", params)
    assert editor.complete(URI)["items"]
    assert process.memory_info().rss - before < 20_000_000
    assert [event["uri"] for event in stage.events("changed")] == [URI]
