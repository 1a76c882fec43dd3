import json

import pytest

from codekv.testing.service import ScriptedAnswer

MARK = "zq7hidden"
SECRETS = {
    "file:///w/.env": ("dotenv", f"A={MARK}\n"),
    "file:///w/id_rsa": ("plaintext", f"{MARK}\n"),
    "file:///w/server.key": ("plaintext", f"{MARK}\n"),
    "file:///w/cert.pem": ("plaintext", f"{MARK}\n"),
    "file:///w/notes": ("plaintext", f"API_KEY={MARK}{MARK}\n"),
    "file:///w/big.py": ("python", f"x = '{MARK}'\n" * 5_000),
    "file:///w/long.py": ("python", f"x = '{MARK * 600}'\n"),
    "file:///w/a.md": ("Markdown", f"{MARK}\n"),
    "file:///w/gen/a.py": ("python", f"x = '{MARK}'\n"),
}


@pytest.mark.parametrize("level", ["warning", "debug"])
def test_nothing_of_an_excluded_document_is_ever_seen_anywhere(stage, level):
    limits = {"max_file_kb": 64, "max_line_kb": 5}
    privacy = {"disabled_languages": ["markdown"], "exclude": ["gen/"], **limits}
    server = {"log_level": level, "log_file": str(stage.folder / "log.txt")}
    editor = stage(options={"privacy": privacy, "server": server})
    reasons = set()
    for uri, (language, text) in SECRETS.items():
        editor.open(uri, text, language)
        editor.replace(uri, 0, 0, MARK)
        assert editor.complete(uri, triggerKind=1) == {"items": []}
        report = editor.status()
        assert report["message"].startswith("no completions in this file: ")
        reasons.add(report["message"].rpartition(" ")[2])
        editor.close(uri)
    assert reasons == {
        "excluded-secret", "too-large", "long-line", "excluded-language", "excluded",
    }  # fmt: skip
    editor.open("file:///w/a.py", "x = ")
    assert editor.complete("file:///w/a.py")["items"]
    assert editor.status()["message"] == ""
    editor.client.close()
    assert MARK not in editor.client.stderr
    for path in stage.folder.rglob("*"):
        assert not path.is_file() or MARK not in path.read_text("utf-8")
    assert MARK not in json.dumps(editor.client.notifications)


def test_a_document_that_becomes_secret_is_forgotten(stage):
    editor = stage()
    uri = "file:///w/notes"
    editor.open(uri, "a plain note\n", "plaintext")
    editor.complete(uri)
    editor.client.notify(
        "textDocument/didChange",
        {
            "textDocument": {"uri": uri, "version": 2},
            "contentChanges": [{"text": f"DB_PASSWORD={MARK}{MARK}\n"}],
        },
    )
    assert editor.status()["metrics"]["open"] == 0
    assert MARK not in stage.journal.read_text()


@pytest.mark.parametrize("level", ["warning", "debug"])
def test_no_text_of_the_user_or_the_model_reaches_the_log(stage, level):
    editor = stage(
        ScriptedAnswer(f"{MARK}model"),
        ScriptedAnswer("a", error="bug"),
        options={"server": {"log_level": level}},
    )
    uri = "file:///w/a.py"
    editor.open(uri, f"x = '{MARK}'\n")
    assert MARK in editor.complete(uri)["items"][0]["insertText"]
    editor.complete(uri)
    client = editor.client
    bad = {"textDocument": {"uri": uri}, "position": MARK}
    client.answer(client.request("textDocument/inlineCompletion", bad))
    client.answer(client.request("textDocument/hover", {"text": MARK}))
    client.notify("textDocument/didChange", {"textDocument": MARK})
    client.answer(client.request("workspace/executeCommand", {"command": MARK}))
    client.send_raw(b'{"' + MARK.encode())
    client.close()
    assert "the service failed" in client.stderr
    assert MARK not in client.stderr


def test_text_may_be_logged_when_the_user_wants_it(stage):
    editor = stage(
        ScriptedAnswer("a", error="bug"), options={"privacy": {"log_text": True}}
    )
    editor.open("file:///w/a.py", f"x = '{MARK}'\n")
    editor.complete("file:///w/a.py")
    editor.client.close()
    assert MARK in editor.client.stderr


def test_ignore_file_and_settings_are_read_again_when_saved(stage):
    folder = stage.folder / "work"
    folder.mkdir()
    editor = stage(folders=[folder.as_uri()])
    uri = f"{folder.as_uri()}/vendor/a.py"
    editor.open(uri, "x = ")
    assert editor.complete(uri)["items"]
    (folder / ".codekvignore").write_text("vendor/\n")
    saved = {"textDocument": {"uri": f"{folder.as_uri()}/.codekvignore"}}
    editor.client.notify("textDocument/didSave", saved)
    editor.until(lambda: editor.complete(uri) == {"items": []}, "silence")
