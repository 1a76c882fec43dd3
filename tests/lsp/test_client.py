from pathlib import Path

import pytest
from lsprotocol import converters, types

from codekv.completion.api import Trigger
from codekv.testing.editor import load_greeting
from lsp.client import ClientProfile, Numbering
from lsp.decode import CompletionParams
from lsp.documents import DocumentPlace

CLIENTS = Path(__file__).parent / "clients"


def client(name):
    converter = converters.get_converter()
    greeting = load_greeting(CLIENTS / f"{name}.json")
    return ClientProfile.of(converter.structure(greeting, types.InitializeParams))


def ask(kind, old=False):
    return CompletionParams("u", DocumentPlace(0, 0), kind, is_old_client=old)


@pytest.mark.parametrize(
    ("name", "numbering", "wait", "has_inline"),
    [
        ("vscode_9", Numbering.OLD, 0.0, True),
        ("vscode_10", Numbering.UNKNOWN, 0.0, True),
        ("neovim_0_12", Numbering.NEW, 0.2, True),
        ("neovim_0_11", Numbering.NEW, 0.2, False),
    ],
)
def test_recorded_clients_are_recognised(name, numbering, wait, has_inline):
    facts = client(name)
    assert facts.numbering is numbering
    assert facts.wait == wait
    assert facts.has_inline_completion is has_inline
    assert facts.has_progress
    assert facts.has_configuration


def test_old_numbers_of_an_old_client():
    facts = client("vscode_9")
    assert facts.trigger_of(ask(0), 0.0) is Trigger.INVOKED
    assert facts.trigger_of(ask(1), 9.0) is Trigger.AUTOMATIC


def test_new_numbers_of_a_new_client():
    facts = client("vscode_10")
    assert facts.trigger_of(ask(2), 0.0) is Trigger.AUTOMATIC
    assert facts.trigger_of(ask(1), 0.0) is Trigger.INVOKED


def test_a_one_right_after_a_key_is_automatic_while_nothing_is_known():
    facts = ClientProfile()
    assert facts.trigger_of(ask(1), 0.01) is Trigger.AUTOMATIC
    assert facts.trigger_of(ask(1), 5.0) is Trigger.INVOKED
    assert facts.trigger_of(ask(1), None) is Trigger.INVOKED


def test_what_a_client_shows_of_itself_is_remembered():
    facts = ClientProfile()
    assert facts.trigger_of(ask(1, old=True), 5.0) is Trigger.AUTOMATIC
    assert facts.trigger_of(ask(1), 5.0) is Trigger.AUTOMATIC
    facts.trigger_of(ask(2), 5.0)
    assert facts.trigger_of(ask(1), 0.01) is Trigger.INVOKED


@pytest.mark.parametrize("kind", [None, 7, -1, 3])
def test_unknown_kinds_are_automatic(kind):
    assert ClientProfile().trigger_of(ask(kind), None) is Trigger.AUTOMATIC


def test_the_innermost_folder_holds():
    facts = ClientProfile(folders={"file:///w": "w", "file:///w/a": "a"})
    assert facts.folder_of("file:///w/a/x.py") == "file:///w/a"
    assert facts.folder_of("file:///w/ab/x.py") == "file:///w"
    assert facts.folder_of("untitled:1") == ""
    assert facts.workspace == Path("/w")
    assert ClientProfile(folders={"vscode-vfs://h/w": "w"}).workspace is None
