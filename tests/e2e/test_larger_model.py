import json
import time

import pytest

from codekv.model.library import store
from codekv.model.library.catalog import LARGE
from codekv.testing.client import private_folders
from codekv.testing.models import write_tiny_gguf
from lsp.features.larger_model import DECLINE, FETCH

QUESTION = "window/showMessageRequest"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The data folder of the server under test, with the larger model in it."""
    data = private_folders(tmp_path)["XDG_DATA_HOME"]
    monkeypatch.setenv("XDG_DATA_HOME", data)
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path)
    store.import_gguf(path, LARGE.name, "a test", None)
    return store.models_dir().parent


def asked(stage, reply, client="neovim_0_12"):
    """Start a server that has something to ask; gives the questions it asked."""
    questions = []

    def answer(params):
        questions.append(params)
        return reply

    editor = stage(offer=True, client=client, ready=False, replies={QUESTION: answer})
    editor.await_state("ready")
    return editor, questions


def until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_agreeing_fetches_and_reloads_while_answers_go_on(stage, here):
    editor, questions = asked(stage, {"title": FETCH})
    until(lambda: stage.events("reloaded"))
    assert "1.1 GB" in questions[0]["message"]
    assert [each["title"] for each in questions[0]["actions"]] == [FETCH, DECLINE]
    assert json.loads((here / "auto.json").read_bytes())["agreed"] is True
    editor.open("file:///w/x.py", "x = ")
    assert editor.complete("file:///w/x.py")["items"]
    assert len(questions) == 1


def test_declining_is_remembered(stage, here):
    _, questions = asked(stage, {"title": DECLINE})
    until((here / "auto.json").exists)
    assert json.loads((here / "auto.json").read_bytes())["agreed"] is False
    assert len(questions) == 1
    assert not stage.events("reloaded")


def test_closing_the_question_decides_nothing(stage, here):
    editor, questions = asked(stage, None)
    until(lambda: questions)
    editor.status()
    assert not (here / "auto.json").exists()
    assert not stage.events("reloaded")


def test_a_client_that_cannot_be_asked_is_left_alone(stage, here):
    editor, questions = asked(stage, {"title": FETCH}, client=None)
    editor.status()
    assert questions == []
