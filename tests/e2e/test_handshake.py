import pytest

from codekv.testing.editor import Editor

URI = "file:///w/shop.py"


@pytest.mark.parametrize(
    ("client", "encoding"),
    [("vscode_9", "utf-16"), ("vscode_10", "utf-16"), ("neovim_0_12", "utf-8")],
)
def test_the_server_announces_inline_completion_in_the_clients_encoding(
    stage, client, encoding
):
    editor = stage(client=client)
    announced = editor.capabilities
    assert announced["inlineCompletionProvider"] == {}
    assert announced["positionEncoding"] == encoding
    assert announced["textDocumentSync"]["openClose"] is True
    assert announced["textDocumentSync"]["change"] == 2
    assert "completionProvider" not in announced
    assert ("notebookDocumentSync" in announced) == (client != "neovim_0_12")
    assert editor.client.close() == 0


@pytest.mark.parametrize("client", ["neovim_0_11", None])
def test_a_client_without_inline_completion_gets_list_entries(stage, client):
    editor = stage(client=client)
    assert "triggerCharacters" in editor.capabilities["completionProvider"]


def test_initialize_is_answered_while_the_service_is_still_imported(stage):
    editor = stage(import_ms=30_000, ready=False)
    editor.open(URI, "x = ")
    assert editor.complete(URI) == {"items": []}
    assert editor.status()["state"] == "loading"


def test_loading_is_shown_as_progress_and_answers_are_empty_until_it_is_over(stage):
    editor = stage(load_ms=500, ready=False)
    editor.open(URI, "x = ")
    assert editor.complete(URI) == {"items": []}
    editor.await_state("ready")
    told = editor.client.notifications
    editor.client.wait_for(lambda: len(told["$/progress"]) == 2, "progress")
    kinds = [each["value"]["kind"] for each in told["$/progress"]]
    assert kinds == ["begin", "end"]
    asked = [each["method"] for each in editor.client.asked]
    assert "window/workDoneProgress/create" in asked
    assert editor.complete(URI)["items"]


def test_a_client_without_progress_is_not_asked_for_it(stage):
    editor = stage(client=None, load_ms=50)
    assert editor.client.asked == []
    assert "$/progress" not in editor.client.notifications


def test_a_model_that_cannot_be_loaded_is_told_once_in_plain_words(stage):
    editor = stage(load_error="no such model: foo; try bar", ready=False)
    editor.await_state("error")
    editor.open(URI, "x = ")
    assert editor.complete(URI) is not None
    messages = editor.client.notifications["window/showMessage"]
    assert [m["message"] for m in messages] == ["codekv: no such model: foo; try bar"]
    assert editor.status()["message"] == "no such model: foo; try bar"


def test_malformed_capabilities_do_not_keep_anyone_from_completions(stage):
    capabilities = {"textDocument": 7, "general": {"positionEncodings": ["utf-8"]}}
    greeting = {"processId": "many", "capabilities": capabilities}
    editor = Editor(stage.connect(), greeting)
    editor.greet()
    editor.await_state("ready")
    assert editor.encoding == "utf-8"
    editor.open(URI, "x = ")
    assert editor.complete(URI)["items"]


def test_requests_before_initialize_and_after_shutdown_are_refused(stage):
    editor = stage()
    client = editor.client
    twice = client.answer(client.request("initialize", editor.greeting))
    assert twice["error"]["code"] == -32600
    client.call("shutdown")
    late = client.answer(client.request("codekv/status"))
    assert late["error"]["code"] == -32600
    client.notify("exit")
    assert client.wait() == 0


def test_a_notice_of_the_service_is_shown_once(stage):
    editor = stage(notice="the small model is used: no network")
    editor.open(URI, "x = ")
    editor.complete(URI)
    editor.complete(URI)
    messages = editor.client.notifications["window/showMessage"]
    wanted = "codekv: the small model is used: no network"
    assert [each["message"] for each in messages] == [wanted]
