from pathlib import Path

import pytest

from codekv.testing.client import RawClient, private_folders
from codekv.testing.editor import Editor, load_greeting
from codekv.testing.forks import Nursery
from codekv.testing.service import ScriptedAnswer, ServiceScript, read_journal

CLIENTS = Path(__file__).parents[1] / "lsp" / "clients"


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.e2e)


class Stage:
    """Starts servers and ends them when the test is over."""

    def __init__(self, folder, nursery):
        self.folder = folder
        self.nursery = nursery
        self.journal = folder / "journal.jsonl"
        self.clients = []

    def __call__(self, *answers, client="neovim_0_12", **options):
        greeting = {k: options.pop(k) for k in ("options", "folders") if k in options}
        settings, ready = options.pop("settings", None), options.pop("ready", True)
        replies = options.pop("replies", {})
        connection = self.connect(*answers, **options)
        connection.replies.update(replies)
        connection.replies["workspace/configuration"] = lambda params: [
            settings for _ in params["items"]
        ]
        editor = Editor(connection, self.greeting(client))
        editor.greet(**greeting)
        if ready:
            editor.await_state("ready")
        return editor

    def connect(self, *answers, **options):
        script = self.script(*answers, **options)
        server = self.nursery.start([str(script)], private_folders(self.folder))
        self.clients.append(RawClient(server))
        return self.clients[-1]

    def script(self, *answers, **options):
        script = ServiceScript(
            answers=answers or (ScriptedAnswer("pass"),),
            journal=str(self.journal),
            **options,
        )
        path = self.folder / "script.json"
        path.write_text(script.to_json())
        return path

    def greeting(self, client):
        if client is None:
            return {"processId": None, "rootUri": None, "capabilities": {}}
        return load_greeting(CLIENTS / f"{client}.json")

    def events(self, kind):
        return [e for e in read_journal(self.journal) if e["event"] == kind]


@pytest.fixture(scope="session")
def nursery():
    with Nursery() as made:
        yield made


@pytest.fixture
def stage(tmp_path, nursery):
    made = Stage(tmp_path, nursery)
    yield made
    for client in made.clients:
        client.__exit__()
