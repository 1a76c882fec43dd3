import pytest

from codekv.testing.service import ScriptedAnswer

URI = "file:///w/a/x.py"


def configs(stage):
    return [event["config"] for event in stage.events("reconfigured")]


def started_with(stage, editor):
    """The number of tokens that is in force, seen by a harmless change of another."""
    push(editor, {"model": {"threads": 3}})
    editor.until(lambda: bool(configs(stage)), "a new configuration")
    return configs(stage)[-1]["completion"]["max_tokens"]


def push(editor, values):
    editor.client.notify(
        "workspace/didChangeConfiguration", {"settings": {"codekv": values}}
    )


def wait_for(stage, editor, key, value):
    def holds():
        seen = configs(stage)
        return bool(seen) and seen[-1]["completion"][key] == value

    editor.until(holds, f"{key} = {value}")


@pytest.mark.parametrize(
    "options",
    [
        {"completion": {"max_tokens": 17}},
        {"codekv": {"completion": {"max_tokens": 17}}},
        {"completion.max_tokens": 17, "editorInfo": {"name": "x"}, "token": "t"},
    ],
)
def test_options_come_with_initialize_in_any_usual_shape(stage, options):
    editor = stage(options=options)
    assert started_with(stage, editor) == 17
    assert "window/showMessage" not in editor.client.notifications


def test_pushed_settings_win_replace_each_other_and_null_takes_them_back(stage):
    editor = stage(client=None, options={"completion": {"max_tokens": 17}})
    push(editor, {"completion": {"max_tokens": 20, "max_lines": 3}})
    wait_for(stage, editor, "max_tokens", 20)
    assert configs(stage)[-1]["completion"]["max_lines"] == 3
    push(editor, {"completion": {"max_tokens": 21}})
    wait_for(stage, editor, "max_tokens", 21)
    assert configs(stage)[-1]["completion"]["max_lines"] == 12
    editor.client.notify("workspace/didChangeConfiguration", {"settings": None})
    wait_for(stage, editor, "max_tokens", 17)


def test_settings_are_pulled_and_pulled_again_when_the_client_says_so(stage):
    values = {"completion": {"max_tokens": 30}, "command": "ignored", "x": None}
    editor = stage(client="vscode_10", settings=values)
    assert [e["method"] for e in editor.client.asked][:2] == [
        "workspace/configuration",
        "client/registerCapability",
    ]
    values["completion"] = {"max_tokens": 31}
    editor.client.notify("workspace/didChangeConfiguration", {"settings": None})
    wait_for(stage, editor, "max_tokens", 31)
    assert "window/showMessage" not in editor.client.notifications


def test_other_servers_settings_are_none_of_ours(stage):
    editor = stage(client=None)
    foreign = {"pylsp": {"plugins": {}}, "gopls": {"x": 1}}
    editor.client.notify("workspace/didChangeConfiguration", {"settings": foreign})
    assert started_with(stage, editor) == 48
    assert "window/showMessage" not in editor.client.notifications


def test_invalid_values_are_listed_in_one_message_and_the_rest_holds(stage):
    options = {
        "completion": {"max_tokens": "many", "max_lines": 3, "max_token": 9},
        "kvcahce": {"disk": True},
    }
    editor = stage(options=options)
    messages = editor.client.notifications["window/showMessage"]
    assert len(messages) == 1
    text = messages[0]["message"]
    for part in (
        "completion.max_tokens",
        "completion.max_token: unknown key, ignored; did you mean max_tokens?",
        "kvcahce: unknown key, ignored; did you mean kvcache?",
    ):
        assert part in text
    push(editor, {"model": {"threads": 2}})
    editor.until(lambda: bool(configs(stage)), "a new configuration")
    assert configs(stage)[-1]["completion"]["max_lines"] == 3
    assert configs(stage)[-1]["completion"]["max_tokens"] == 48
    assert len(messages) == 1, "a problem is told once"


@pytest.mark.parametrize("settings", [7, [], "text", {"codekv": 3}, {"codekv": []}])
def test_settings_of_no_known_shape_change_nothing(stage, settings):
    editor = stage(client=None, options={"completion": {"max_tokens": 17}})
    client = editor.client
    client.notify("workspace/didChangeConfiguration", {"settings": settings})
    client.notify("workspace/didChangeConfiguration", settings)
    assert started_with(stage, editor) == 17


def test_files_of_the_user_and_of_the_workspace_hold_below_the_editor(stage):
    user = stage.folder / "config" / "codekv"
    work = stage.folder / "work"
    user.mkdir(parents=True)
    work.mkdir()
    (user / "codekv.toml").write_text(
        "[completion]\nmax_tokens = 11\nmax_lines = 2\n[privacy]\nmax_file_kb = 5\n"
    )
    (work / "codekv.toml").write_text("[completion]\nmax_tokens = 12\nmax_lines = 4\n")
    editor = stage(folders=[work.as_uri()], options={"completion": {"max_tokens": 13}})
    assert started_with(stage, editor) == 13
    config = configs(stage)[-1]
    assert config["completion"]["max_lines"] == 4
    assert config["privacy"]["max_file_kb"] == 5
    (work / "codekv.toml").write_text("[completion]\nmax_lines = 6\n")
    saved = {"textDocument": {"uri": f"{work.as_uri()}/codekv.toml"}}
    editor.client.notify("textDocument/didSave", saved)
    wait_for(stage, editor, "max_lines", 6)


def test_each_folder_of_a_workspace_has_its_own_settings(stage):
    folders = ["file:///w/a", "file:///w/b"]
    editor = stage(
        ScriptedAnswer("x", num_items=9),
        client="vscode_10",
        folders=folders,
        ready=False,
    )

    def reply(params):
        scopes = [item.get("scopeUri") for item in params["items"]]
        return [
            {"completion": {"candidates": 2}} if s == folders[1] else None
            for s in scopes
        ]

    editor.client.replies["workspace/configuration"] = reply
    editor.client.notify("workspace/didChangeConfiguration", {"settings": None})
    editor.await_state("ready")
    editor.client.wait_for(
        lambda: len(editor.client.asked) >= 3, "questions for settings"
    )

    def num_items(uri):
        return len(editor.complete(uri, triggerKind=1)["items"])

    for uri, wanted in (("file:///w/a/x.py", 3), ("file:///w/b/x.py", 2)):
        editor.open(uri, "x = ")
        editor.status()
        assert num_items(uri) == wanted
    event = {"added": [], "removed": [{"uri": folders[1], "name": "b"}]}
    editor.client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
    editor.until(lambda: num_items("file:///w/b/x.py") == 3, "a folder less")


def test_a_client_that_never_answers_questions_is_served(stage):
    connection = stage.connect()
    connection.replies["workspace/configuration"] = lambda _: {"not": "a list"}
    greeting = stage.greeting("vscode_10")
    connection.call("initialize", greeting)
    connection.notify("initialized", {})
    told = connection.notifications["codekv/didChangeStatus"]
    connection.wait_for(lambda: bool(told) and told[-1]["state"] == "ready", "ready")


def test_a_pause_of_the_users_own_choice_is_kept(stage):
    editor = stage(options={"completion": {"debounce_ms": 400}})
    editor.open(URI, "x = ")
    editor.complete(URI)
    editor.replace(URI, 0, 0, "y")
    first = editor.ask(URI)
    second = editor.ask(URI)
    assert editor.client.answer(first)["result"] is None
    assert editor.client.answer(second)["result"]["items"]
    gap = editor.client.arrived[second] - editor.client.arrived[first]
    assert gap > 0.15, "what Neovim has waited itself counts only when it has"
    assert editor.status()["metrics"]["generations"] == 2


def test_a_question_that_a_person_asks_does_not_wait(stage):
    editor = stage(options={"completion": {"debounce_ms": 60_000}}, client="vscode_10")
    editor.open(URI, "x = ")
    editor.replace(URI, 0, 0, "y")
    editor.ask(URI)
    assert editor.complete(URI, triggerKind=1)["items"]


def test_a_language_switched_off_and_on_again_counts_from_the_next_question(stage):
    editor = stage(client=None)
    editor.open(URI, "x = ")
    assert ask_list(editor)
    push(editor, {"privacy": {"disabled_languages": ["Python"]}})
    assert not ask_list(editor)
    push(editor, {})
    assert ask_list(editor)


def ask_list(editor):
    question = editor.question(URI)
    return editor.client.call("textDocument/completion", question)["items"]
