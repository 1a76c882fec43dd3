import pytest

from codekv.testing.service import ScriptedAnswer

URI = "file:///w/x.py"


def offered(editor):
    editor.open(URI, "x = ")
    return editor.complete(URI)["items"][0]


def test_showing_and_accepting_an_item_is_counted(stage):
    editor = stage(ScriptedAnswer("é𝄞(1)\nnext"))
    item = offered(editor)
    client = editor.client
    client.notify("textDocument/didShowCompletion", {"item": item})
    part = {"item": item, "acceptedLength": 3}
    client.notify("textDocument/didPartiallyAcceptCompletion", part)
    assert client.call("workspace/executeCommand", item["command"]) is None
    metrics = editor.status()["metrics"]
    assert metrics["shown"] == metrics["partially_accepted"] == 1
    assert metrics["accepted"] == 1
    assert metrics["accepted_bytes"] == len("é𝄞".encode())
    ids = {event["item"] for event in stage.events("feedback")}
    assert ids == {item["command"]["arguments"][0]}


@pytest.mark.parametrize(
    "params", [None, {}, {"item": 3}, {"item": {}}, {"item": {"command": {}}}, []]
)
def test_feedback_about_nothing_is_ignored(stage, params):
    editor = stage()
    editor.client.notify("textDocument/didShowCompletion", params)
    editor.client.notify("textDocument/didPartiallyAcceptCompletion", params)
    editor.client.call("workspace/executeCommand", {"command": "codekv.accepted"})
    assert "shown" not in editor.status()["metrics"]


def test_focus_is_passed_on_with_and_without_a_document(stage):
    editor = stage()
    for params in ({"textDocument": {"uri": URI}}, {}, None):
        editor.client.notify("textDocument/didFocus", params)
    editor.status()
    assert [event["uri"] for event in stage.events("focused")] == [URI, None, None]


def test_pausing_gives_empty_answers_until_resumed(stage):
    editor = stage()
    client = editor.client
    offered(editor)
    client.call("workspace/executeCommand", {"command": "codekv.pause"})
    editor.await_state("paused")
    assert editor.complete(URI) == {"items": []}
    client.call("workspace/executeCommand", {"command": "codekv.resume"})
    editor.await_state("ready")
    assert editor.complete(URI)["items"]


def test_statistics_are_the_status_with_all_numbers(stage):
    editor = stage()
    offered(editor)
    command = {"command": "codekv.statistics", "arguments": []}
    report = editor.client.call("workspace/executeCommand", command)
    assert report == editor.status()
    assert report["state"] == "ready"
    assert report["model"] == "scripted"
    assert "qwen2.5-coder-0.5b" in {each["name"] for each in report["models"]}
    assert report["last"]["exact"] == 8
    assert report["last"]["computed"] == 2
    assert report["last"]["total_ms"] >= 0
    assert report["metrics"]["requests"] == 1


def test_the_status_is_told_when_it_changes_and_not_otherwise(stage):
    editor = stage(ScriptedAnswer("a", delay_ms=400))
    offered(editor)
    editor.await_state("ready")
    told = editor.client.notifications["codekv/didChangeStatus"]
    states = [each["state"] for each in told]
    assert states[-2:] == ["working", "ready"]
    assert "last" in told[-1]
    assert all(a != b for a, b in zip(told, told[1:], strict=False))


def test_the_cache_is_cleared_on_command(stage):
    editor = stage()
    editor.client.call("workspace/executeCommand", {"command": "codekv.clearCache"})
    assert editor.status()["metrics"]["cleared"] == 1


def test_an_unknown_command_is_an_error_and_not_a_popup(stage):
    editor = stage()
    call = {"command": "codekv.unknown"}
    client = editor.client
    answer = client.answer(client.request("workspace/executeCommand", call))
    assert answer["error"]["code"] == -32602
    assert "window/showMessage" not in client.notifications
