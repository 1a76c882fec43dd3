import pytest

from codekv.testing.service import ScriptedAnswer

URI = "file:///w/shop.py"
EVERY = pytest.mark.parametrize("client", ["vscode_9", "vscode_10", "neovim_0_12"])


@EVERY
def test_any_trigger_kind_gets_exactly_one_answer(stage, client):
    editor = stage(client=client)
    editor.open(URI, "x = ")
    plain = editor.question(URI)
    contexts = [{"triggerKind": kind} for kind in (0, 1, 2, 7, "two", None, 1.5)]
    ids = []
    for context in [*contexts, None, 3, []]:
        ids.append(
            editor.client.request(
                "textDocument/inlineCompletion", {**plain, "context": context}
            )
        )
        assert editor.client.answer(ids[-1])["result"]["items"]
    del plain["context"]
    assert editor.client.call("textDocument/inlineCompletion", plain)["items"]
    assert all(len(editor.client.answers[each]) == 1 for each in ids)


@pytest.mark.parametrize(
    ("client", "kinds"),
    [
        ("vscode_9", {"invoked": 0, "automatic": 1}),
        ("vscode_10", {"invoked": 1, "automatic": 2}),
    ],
)
def test_what_a_person_asked_for_is_told_apart_in_old_and_new_numbers(
    stage, client, kinds
):
    editor = stage(ScriptedAnswer("a", num_items=3), client=client)
    editor.open(URI, "x = ")
    assert len(editor.complete(URI, triggerKind=kinds["automatic"])["items"]) == 1
    assert len(editor.complete(URI, triggerKind=kinds["invoked"])["items"]) == 3
    seen = [event["trigger"] for event in stage.events("complete")]
    assert seen == ["automatic", "invoked"]


@EVERY
@pytest.mark.parametrize("shape", [dict, list])
def test_an_item_extends_the_popups_entry_over_its_range(stage, client, shape):
    editor = stage(ScriptedAnswer(" = sum(é)", span="selected"), client=client)
    editor.open(URI, "é = 1\npric")
    start, end = {"line": 1, "character": 0}, {"line": 1, "character": 4}
    span = {"start": start, "end": end} if shape is dict else [start, end]
    selected = {"range": span, "text": "price_total"}
    item = editor.complete(URI, selectedCompletionInfo=selected)["items"][0]
    assert item["insertText"] == "price_total = sum(é)"
    assert item["range"] == {"start": start, "end": end}
    assert stage.events("complete")[0]["selected"] == "price_total"


def test_an_item_that_does_not_extend_the_popups_entry_is_not_shown(stage):
    editor = stage(ScriptedAnswer("other"))
    editor.open(URI, "pric")
    start, end = {"line": 0, "character": 0}, {"line": 0, "character": 4}
    selected = {"range": {"start": start, "end": end}, "text": "price_total"}
    assert editor.complete(URI, selectedCompletionInfo=selected) == {"items": []}


@pytest.mark.parametrize("selected", [7, {}, {"range": [], "text": "x"}, {"text": 1}])
def test_a_malformed_popup_entry_is_as_good_as_none(stage, selected):
    editor = stage()
    editor.open(URI, "x = ")
    assert editor.complete(URI, selectedCompletionInfo=selected)["items"]


def test_a_document_that_is_not_open_is_not_guessed_about(stage):
    editor = stage()
    editor.open(URI, "x = ")
    question = {**editor.question(URI), "textDocument": {"uri": "file:///other.py"}}
    result = editor.client.call("textDocument/inlineCompletion", question)
    assert result == {"items": []}
    assert stage.events("complete") == []


def test_nothing_to_offer_is_an_empty_list_and_a_failure_is_null(stage):
    editor = stage(
        ScriptedAnswer(""),
        ScriptedAnswer("a", error="model"),
        ScriptedAnswer("a", error="bug"),
        ScriptedAnswer("b"),
    )
    editor.open(URI, "x = ")
    results = [editor.complete(URI) for _ in range(4)]
    assert results[:3] == [{"items": []}, None, None]
    assert results[3]["items"]
    assert "window/showMessage" not in editor.client.notifications


def test_an_item_that_would_delete_other_lines_is_not_shown(stage):
    editor = stage(ScriptedAnswer("a", span="wild"))
    editor.open(URI, "x = 1\ny = \nz = 2\n")
    assert editor.complete(URI, 10) == {"items": []}


@EVERY
@pytest.mark.parametrize("span", ["cursor", "head", "tail"])
def test_accepting_an_item_gives_exactly_the_expected_text(stage, client, span):
    editor = stage(ScriptedAnswer("total(字, 𝄞)\n    done()", span=span), client=client)
    before, after = "# é𝄞\r\ndef f():\r\n    𝄞 = ", ")\r\nnext\r\n"
    editor.open(URI, before + after)
    item = editor.complete(URI, len(before))["items"][0]
    assert item["range"]["start"]["line"] == item["range"]["end"]["line"] == 2
    rest = "\r\nnext\r\n" if span == "tail" else after
    wanted = before + "total(字, 𝄞)\r\n    done()" + rest
    assert editor.accepted(URI, item) == wanted
