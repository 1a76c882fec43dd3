import pytest

from codekv.testing.editor import apply_edit
from codekv.testing.service import ScriptedAnswer

BOOK = "file:///w/study.ipynb"
CELLS = [
    ("cell:0", 1, "markdown", "# Title"),
    ("cell:1", 2, "python", "import math\n"),
    ("cell:2", 2, "python", "é = 1\r\nb = "),
    ("cell:3", 2, "sql", "select 1"),
    ("cell:4", 2, "python", "print(b)"),
]


def text_item(uri, language, text):
    return {"uri": uri, "languageId": language, "version": 1, "text": text}


def open_book(editor):
    cells = [{"kind": kind, "document": uri} for uri, kind, _, _ in CELLS]
    editor.client.notify(
        "notebookDocument/didOpen",
        {
            "notebookDocument": {
                "uri": BOOK, "notebookType": "jupyter-notebook", "version": 1,
                "cells": cells,
            },
            "cellTextDocuments": [text_item(u, lang, t) for u, _, lang, t in CELLS],
        },
    )  # fmt: skip
    editor.texts.update({uri: text for uri, _, _, text in CELLS})


def change_book(editor, **cells):
    book = {"uri": BOOK, "version": 2}
    params = {"notebookDocument": book, "change": {"cells": cells}}
    editor.client.notify("notebookDocument/didChange", params)


@pytest.mark.parametrize("client", ["vscode_9", "vscode_10"])
def test_a_cell_is_completed_with_the_cells_of_its_language_around_it(stage, client):
    editor = stage(ScriptedAnswer("total(字)\n    c"), client=client)
    open_book(editor)
    item = editor.complete("cell:2", len("é = 1\r\nb = "))["items"][0]
    seen = stage.events("complete")[0]
    assert seen["before"] == "import math\n\né = 1\nb = "
    assert seen["after"] == "\n\nprint(b)"
    assert seen["uri"] == BOOK
    assert seen["language"] == "python"
    place = {"line": 1, "character": 4}
    assert item["range"] == {"start": place, "end": place}
    got = apply_edit(CELLS[2][3], item["range"], item["insertText"], editor.encoding)
    assert got == "é = 1\r\nb = total(字)\r\n    c"


def test_the_popups_entry_counts_within_the_cell(stage):
    editor = stage(ScriptedAnswer("()", span="selected"), client="vscode_10")
    open_book(editor)
    start, end = {"line": 0, "character": 0}, {"line": 0, "character": 5}
    selected = {"range": {"start": start, "end": end}, "text": "printf"}
    item = editor.complete("cell:4", 5, selectedCompletionInfo=selected)["items"][0]
    assert item["insertText"] == "printf()"
    assert item["range"]["start"] == start
    assert stage.events("complete")[0]["before"].endswith("b = \n\nprint")


def test_cells_of_prose_and_of_other_languages_stand_for_themselves(stage):
    editor = stage(client="vscode_10")
    open_book(editor)
    assert editor.complete("cell:0")["items"]
    assert editor.complete("cell:3")["items"]
    prose, query = stage.events("complete")
    assert (prose["before"], prose["uri"]) == ("# Title", "cell:0")
    assert (query["before"], query["uri"]) == ("select 1", BOOK)


def test_cells_are_edited_added_moved_removed_and_turned_into_prose(stage):
    editor = stage(client="vscode_10")
    open_book(editor)

    def seen(uri):
        assert editor.complete(uri)["items"]
        event = stage.events("complete")[-1]
        return event["before"], event["after"]

    place = {"line": 0, "character": 0}
    edit = {"range": {"start": place, "end": place}, "text": "x"}
    editor.texts["cell:1"] = "ximport math\n"
    change_book(
        editor,
        textContent=[{"document": {"uri": "cell:1", "version": 2}, "changes": [edit]}],
    )
    assert seen("cell:1") == ("ximport math\n", "\né = 1\nb = \n\nprint(b)")
    editor.texts["cell:9"] = "new"
    change_book(
        editor,
        structure={
            "array": {
                "start": 1,
                "deleteCount": 2,
                "cells": [{"kind": 2, "document": "cell:9"}],
            },
            "didOpen": [text_item("cell:9", "python", "new")],
            "didClose": [{"uri": "cell:1"}, {"uri": "cell:2"}],
        },
    )
    assert seen("cell:9") == ("new", "\n\nprint(b)")
    change_book(editor, data=[{"kind": 1, "document": "cell:4"}])
    assert seen("cell:9") == ("new", "")
    assert editor.complete("cell:9", 0) is not None


def test_an_edit_of_another_cell_ends_a_question(stage):
    editor = stage(ScriptedAnswer("slow", delay_ms=60_000), client="vscode_10")
    open_book(editor)
    asked = editor.ask("cell:2", triggerKind=1)
    editor.await_state("working")
    change_book(
        editor,
        textContent=[
            {"document": {"uri": "cell:1", "version": 2}, "changes": [{"text": "y"}]}
        ],
    )
    assert editor.client.answer(asked)["result"] is None


def test_a_closed_notebook_leaves_nothing(stage):
    editor = stage(client="vscode_10")
    open_book(editor)
    closed = {"notebookDocument": {"uri": BOOK}, "cellTextDocuments": []}
    editor.client.notify("notebookDocument/didClose", closed)
    assert editor.complete("cell:2", 0) == {"items": []}
    assert editor.status()["metrics"]["open"] == 0


def test_changes_that_make_no_sense_are_survived(stage):
    editor = stage(client="vscode_10")
    open_book(editor)
    client = editor.client
    for params in (None, {}, {"notebookDocument": {"uri": BOOK}}, {"change": 7}):
        client.notify("notebookDocument/didChange", params)
        client.notify("notebookDocument/didOpen", params)
        client.notify("notebookDocument/didClose", params and {"notebookDocument": 1})
    assert editor.complete("cell:2", 0) == {"items": []}, "which cell changed?"
    unknown = {"notebookDocument": {"uri": "file:///o.ipynb"}, "change": {"cells": {}}}
    client.notify("notebookDocument/didChange", unknown)
    open_book(editor)
    assert editor.complete("cell:2", 0)["items"]
    assert "window/showMessage" not in client.notifications


def test_a_secret_notebook_is_excluded_by_its_own_name(stage):
    editor = stage(client="vscode_10", options={"privacy": {"exclude": ["*.ipynb"]}})
    open_book(editor)
    assert editor.complete("cell:2", 0) == {"items": []}
    assert stage.events("changed") == []
