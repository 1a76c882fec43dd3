import random

import pytest

from codekv.testing.editor import position_of

URI = "file:///w/x.py"
PIECES = ["a", "b c", "é", "字", "𝄞", "\n", "\r\n", "\r", "\f", "\v", "\x85", "\u2028"]


def assert_same(accepted, text, index):
    # A cursor between the two halves of a line end stands before them.
    if text[index - 1 : index + 1] == "\r\n":
        index -= 1
    assert accepted == text[:index] + "pass" + text[index:]


@pytest.mark.parametrize("encodings", [["utf-8"], ["utf-16"], ["utf-32"], None])
def test_random_edits_leave_the_server_with_the_editors_text(stage, encodings):
    general = {"general": {"positionEncodings": encodings}} if encodings else {}
    inline = {"textDocument": {"inlineCompletion": {"dynamicRegistration": False}}}
    greeting = {"processId": None, "capabilities": {**general, **inline}}
    stage.greeting = lambda _: greeting
    editor = stage()
    assert editor.encoding == (encodings or ["utf-16"])[0]
    rng = random.Random(7)
    editor.open(URI, "".join(rng.choices(PIECES, k=40)))
    for _ in range(60):
        text = editor.texts[URI]
        start, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        end = min(end, start + 6)
        editor.replace(
            URI, start, end, "".join(rng.choices(PIECES, k=rng.randrange(4)))
        )
        text = editor.texts[URI]
        index = rng.randrange(len(text) + 1)
        item = editor.complete(URI, index, triggerKind=1)["items"][0]
        assert_same(editor.accepted(URI, item), text, index)
        seen = stage.events("complete")[-1]
        plain = text.replace("\r\n", "\n").replace("\r", "\n")
        assert seen["before"] + seen["after"] == plain
        line = position_of(text, index, editor.encoding)["line"]
        assert seen["before"].count("\n") == line


def test_a_change_that_cannot_be_read_silences_the_document_until_it_is_sent_whole(
    stage,
):
    editor = stage()
    editor.open(URI, "x = ")
    document = {"uri": URI, "version": 2}

    def change(*changes):
        params = {"textDocument": document, "contentChanges": list(changes)}
        editor.client.notify("textDocument/didChange", params)

    change({"range": {"start": "here"}, "text": "y"})
    assert editor.complete(URI) == {"items": []}
    change({"text": "z = "})
    assert editor.complete(URI)["items"]
    assert stage.events("complete")[-1]["before"] == "z = "
    assert "window/showMessage" not in editor.client.notifications


def test_changes_and_closing_of_unknown_documents_disturb_nobody(stage):
    editor = stage()
    other = {"uri": "file:///other.py", "version": 3}
    changes = {"textDocument": other, "contentChanges": [{"text": "a"}]}
    editor.client.notify("textDocument/didChange", changes)
    editor.client.notify("textDocument/didClose", {"textDocument": other})
    editor.client.notify("textDocument/didSave", {"textDocument": other})
    editor.client.notify("textDocument/didSave", None)
    editor.open(URI, "x = ")
    assert editor.complete(URI)["items"]
    assert "window/showMessage" not in editor.client.notifications


def test_prompts_are_the_same_whatever_the_line_ends_and_answers_fit_them(stage):
    from codekv.testing.service import ScriptedAnswer

    editor = stage(ScriptedAnswer("a\n    b"))
    texts = []
    for number, eol in enumerate(("\n", "\r\n", "\r")):
        uri = f"file:///w/{number}.py"
        editor.open(uri, eol.join(["def f():", "    "]))
        texts.append(editor.complete(uri)["items"][0]["insertText"])
    seen = stage.events("complete")
    assert len({(each["before"], each["after"]) for each in seen}) == 1
    assert texts == ["a\n    b", "a\r\n    b", "a\r    b"]


def test_an_edit_sent_right_behind_a_question_does_not_leak_into_it(stage):
    import json

    editor = stage()
    editor.open(URI, "x = ")
    question = editor.question(URI)
    call = {"jsonrpc": "2.0", "id": "q", "method": "textDocument/inlineCompletion"}
    document = {"uri": URI, "version": 2}
    change = {"textDocument": document, "contentChanges": [{"text": "other"}]}
    edit = {"jsonrpc": "2.0", "method": "textDocument/didChange", "params": change}
    bodies = [json.dumps({**call, "params": question}), json.dumps(edit)]
    burst = "".join(f"Content-Length: {len(b)}\r\n\r\n{b}" for b in bodies)
    editor.client.process.stdin.write(burst.encode())
    editor.client.process.stdin.flush()
    assert editor.client.answer("q")["result"] is None
    assert all(e["before"] == "x = " for e in stage.events("complete"))


def test_two_spellings_of_an_address_are_one_document(stage):
    editor = stage()
    opened, asked = "file:///c%3A/a%20b.py", "file:///C:/a b.py"
    editor.open(opened, "x = ")
    question = {**editor.question(opened), "textDocument": {"uri": asked}}
    answer = editor.client.call("textDocument/inlineCompletion", question)
    assert answer["items"]
    editor.texts[asked], editor.versions[asked] = editor.texts[opened], 1
    editor.replace(asked, 0, 0, "y = 1\n")
    editor.texts[opened] = editor.texts[asked]
    item = editor.complete(opened, 10)["items"][0]
    assert item["range"]["start"]["line"] == 1
