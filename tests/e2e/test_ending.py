import time

import pytest

from codekv.testing.client import start_scripted
from codekv.testing.service import ScriptedAnswer

URI = "file:///w/x.py"


def busy(stage, **options):
    editor = stage(ScriptedAnswer("slow", delay_ms=60_000), **options)
    editor.open(URI, "x = ")
    asked = editor.ask(URI, triggerKind=1)
    editor.await_state("working")
    return editor, asked


def test_shutdown_in_the_middle_of_a_generation_is_quick_and_answers_it(stage):
    editor, asked = busy(stage)
    started = time.monotonic()
    assert editor.client.close() == 0
    assert time.monotonic() - started < 2
    assert len(editor.client.answers[asked]) == 1


def test_a_service_that_does_not_end_is_left_behind(stage):
    editor, _ = busy(stage, close_ms=60_000)
    started = time.monotonic()
    assert editor.client.close() == 0
    assert time.monotonic() - started < 2


def test_the_end_of_standard_input_ends_the_process(stage):
    editor, _ = busy(stage)
    started = time.monotonic()
    editor.client.hang_up()
    assert editor.client.wait() == 1
    assert time.monotonic() - started < 2


def test_exit_without_shutdown_ends_the_process_with_a_failure(stage):
    editor, _ = busy(stage)
    editor.client.notify("exit")
    assert editor.client.wait() == 1


def test_an_import_that_takes_long_does_not_delay_the_end(stage):
    editor = stage(import_ms=60_000, ready=False)
    started = time.monotonic()
    assert editor.client.close() == 0
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("junk", [b"hello\r\n\r\n", b"Content-Length: -1\r\n\r\n"])
def test_a_stream_that_is_no_conversation_ends_the_process(stage, junk):
    client = stage.connect()
    client.process.stdin.write(junk)
    client.process.stdin.flush()
    assert client.wait() == 1


def test_a_fresh_process_serves_and_ends_like_a_forked_one(stage):
    client = start_scripted(stage.script(), stage.folder)
    stage.clients.append(client)
    client.call("initialize", stage.greeting("vscode_10"))
    assert client.close() == 0
    assert client.stderr == ""
