import json
import random

import pytest

URI = "file:///w/x.py"

METHODS = [
    "textDocument/inlineCompletion", "textDocument/completion", "codekv/status",
    "workspace/executeCommand", "textDocument/hover", "textDocument/definition",
    "textDocument/didOpen", "textDocument/didChange", "textDocument/didClose",
    "textDocument/didFocus", "textDocument/didShowCompletion", "initialize",
    "textDocument/didPartiallyAcceptCompletion", "notebookDocument/didOpen",
    "notebookDocument/didChange", "workspace/didChangeConfiguration", "initialized",
    "workspace/didChangeWorkspaceFolders", "window/workDoneProgress/cancel",
    "$/setTrace", "$/cancelRequest", "$/unknown", "no/such/method", "",
    "workspace/didChangeWatchedFiles", "textDocument/willSave", "telemetry/event",
]  # fmt: skip
ATOMS = [
    None, True, False, 0, 1, -1, 2**70, 1.5, "", "x", URI, [], {}, [[]], "\ud800",
    {"uri": URI}, {"line": 0, "character": 0}, {"line": "0"},
    {"line": -5, "character": 9},
]  # fmt: skip
KEYS = [
    "textDocument", "position", "context", "uri", "line", "triggerKind", "range",
    "text",
    "contentChanges", "notebookDocument", "change", "cells", "command", "arguments",
    "item", "settings", "codekv", "completion", "token", "id", "value", "event",
    "params",
    "selectedCompletionInfo", "jsonrpc", "method", "result",
]  # fmt: skip


def value(rng, depth=0):
    kind = rng.random()
    if depth > 3 or kind < 0.5:
        return rng.choice(ATOMS)
    if kind < 0.65:
        return [value(rng, depth + 1) for _ in range(rng.randrange(3))]
    return {rng.choice(KEYS): value(rng, depth + 1) for _ in range(rng.randrange(5))}


@pytest.mark.parametrize("seed", range(3))
def test_every_request_is_answered_once_whatever_it_holds(stage, seed):
    editor = stage(client="vscode_10")
    client = editor.client
    editor.open(URI, "x = ")
    rng = random.Random(seed)
    ids = []
    for number in range(150):
        call = {"jsonrpc": "2.0", "method": rng.choice(METHODS)}
        if rng.random() < 0.9:
            call["params"] = value(rng)
        if rng.random() < 0.1:
            call["jsonrpc"] = rng.choice(ATOMS)
        if rng.random() < 0.7:
            call["id"] = rng.choice([1000 + number, f"id-{number}"])
            ids.append(call["id"])
        client.send(call)
    for each in ids:
        assert client.answer(each)
    editor.open("file:///w/y.py", "y = ")
    assert editor.complete("file:///w/y.py") is not None
    assert all(len(client.answers[each]) == 1 for each in ids)
    shown = [m["message"] for m in client.notifications["window/showMessage"]]
    assert all("some settings are not used" in text for text in shown)
    assert client.close() == 0


def test_every_known_request_is_answered_with_every_atom_in_every_place(stage):
    editor = stage()
    editor.open(URI, "x = ")
    good = editor.question(URI)
    ids = []
    for atom in ATOMS:
        ids.append(editor.client.request("textDocument/inlineCompletion", atom))
        for key in ("textDocument", "position", "context"):
            bad = {**good, key: atom}
            ids.append(editor.client.request("textDocument/inlineCompletion", bad))
        ids.append(editor.client.request("codekv/status", atom))
        ids.append(editor.client.request("workspace/executeCommand", atom))
        bad = {"command": "codekv.accepted", "arguments": atom}
        ids.append(editor.client.request("workspace/executeCommand", bad))
    for each in ids:
        assert editor.client.answer(each)
    assert editor.complete(URI)["items"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xfe", b"[]", b"7", b"null", b'"text"', b"[" * 100_000,
     b'{"jsonrpc": "2.0", "id": [1], "method": "codekv/status"}',
     b'{"jsonrpc": "2.0", "id": 1, "method": 7}'],
)  # fmt: skip
def test_what_is_no_message_gets_an_error_and_harms_nothing(stage, body):
    editor = stage()
    editor.client.send_raw(body)
    told = editor.client.answers
    editor.client.wait_for(
        lambda: any("error" in each for each in [*told[None], *told[1]]), "an error"
    )
    assert editor.status()["state"] == "ready"


def test_answers_to_questions_never_asked_are_ignored(stage):
    editor = stage()
    client = editor.client
    editor.open(URI, "x = ")
    asked = editor.ask(URI)
    for msg_id in (asked, "codekv-1", "codekv-99", None, 3.5, [], "id"):
        client.send({"jsonrpc": "2.0", "id": msg_id, "result": {"x": 1}})
        client.send({"jsonrpc": "2.0", "id": msg_id, "error": {"code": 1}})
        client.send({"jsonrpc": "2.0", "id": msg_id})
    client.notify("$/cancelRequest", {"id": "nobody"})
    client.notify("$/cancelRequest", {"id": None})
    assert client.answer(asked)["result"]["items"]


def test_messages_may_come_in_any_pieces_and_with_any_header(stage):
    editor = stage()
    body = json.dumps({"jsonrpc": "2.0", "id": "s", "method": "codekv/status"}).encode()
    header = b"Content-Type: application/json\r\ncontent-length:  %d \r\n\r\n"
    data = header % len(body) + body
    pipe = editor.client.process.stdin
    for start in range(len(data)):
        pipe.write(data[start : start + 1])
        pipe.flush()
    assert editor.client.answer("s")["result"]["state"] == "ready"
