import pytest

from codekv.testing.editor import apply_edit
from codekv.testing.service import ScriptedAnswer

URI = "file:///w/x.py"


def ask(editor, index=None):
    question = editor.question(URI, index, triggerKind=1)
    return editor.client.request("textDocument/completion", question)


def complete(editor, index=None):
    return editor.client.answer(ask(editor, index))["result"]


@pytest.mark.parametrize("span", ["cursor", "head", "tail"])
def test_an_entry_applied_gives_exactly_the_expected_text(stage, span):
    editor = stage(ScriptedAnswer("total(字)\n    b", span=span), client="neovim_0_11")
    before, after = "é\r\n    𝄞 = ", "+ 1\r\nnext"
    editor.open(URI, before + after)
    entries = complete(editor, len(before))
    assert entries["isIncomplete"] is True
    entry = entries["items"][0]
    edit = entry["textEdit"]
    got = apply_edit(editor.texts[URI], edit["range"], edit["newText"], editor.encoding)
    rest = "\r\nnext" if span == "tail" else after
    assert got == before + "total(字)\r\n    b" + rest
    assert entry["filterText"] == edit["newText"]
    assert entry["label"] == "total(字)…"
    assert entry["command"]["command"] == "codekv.accepted"


def test_typing_counts_as_automatic_although_the_protocol_calls_it_invoked(stage):
    editor = stage(client="neovim_0_11")
    editor.open(URI, "x = ")
    assert len(complete(editor)["items"]) == 1
    assert stage.events("complete")[0]["trigger"] == "automatic"


def test_nothing_failing_and_superseded_are_all_incomplete_empty_lists(stage):
    editor = stage(
        ScriptedAnswer(""),
        ScriptedAnswer("a", error="bug"),
        ScriptedAnswer("a", delay_ms=60_000),
        ScriptedAnswer("b"),
        client="neovim_0_11",
    )
    editor.open(URI, "x = ")
    empty = {"isIncomplete": True, "items": []}
    assert complete(editor) == empty
    assert complete(editor) == empty
    slow = ask(editor)
    editor.await_state("working")
    assert complete(editor)["items"]
    assert editor.client.answer(slow)["result"] == empty


def test_a_client_with_inline_completion_is_not_asked_to_show_both(stage):
    editor = stage()
    editor.open(URI, "x = ")
    answer = editor.client.answer(ask(editor))
    assert answer["error"]["code"] == -32601
