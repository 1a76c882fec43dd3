import contextlib
import io
import json
import re
import socket

import pytest

from codekv.errors import UsageError
from codekv.testing.client import RawClient, private_folders
from codekv.testing.editor import Editor
from codekv.testing.service import ScriptedAnswer
from lsp.run import run_tcp

URI = "file:///w/x.py"


class Line:
    """A TCP connection with the face of a process."""

    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port))
        self.stdin = self._socket.makefile("wb", buffering=0)
        self.stdout = self._socket.makefile("rb")
        self.stderr = io.BytesIO()
        self.pid = 0

    def poll(self):
        return 0

    def hang_up(self):
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def wait(self, _limit):
        self.hang_up()
        self._socket.close()
        return 0


@pytest.fixture
def listen(stage):
    connections = []

    def start(*answers, arguments=("127.0.0.1:0",), **options):
        script = stage.script(*answers, **options)
        process = stage.nursery.start(
            [str(script), *arguments], private_folders(stage.folder)
        )
        server = RawClient(process)
        stage.clients.append(server)
        server.wait_for(lambda: "listening on" in server.stderr, "a port")
        port = int(re.search(r"listening on .*:(\d+)", server.stderr)[1])

        def connect():
            connections.append(RawClient(Line(port)))
            return Editor(connections[-1], stage.greeting("neovim_0_12"))

        return connect

    yield start
    for connection in connections:
        connection.__exit__()


def test_several_clients_are_served_at_once_and_leave_without_harm(listen):
    connect = listen(ScriptedAnswer("a", delay_ms=50))
    first, second = connect(), connect()
    for editor in (first, second):
        editor.greet()
        editor.await_state("ready")
        editor.open(URI, "x = ")
    assert first.complete(URI)["items"]
    assert second.complete(URI)["items"]
    first.client.call("shutdown")
    first.client.notify("exit")
    assert second.complete(URI)["items"]
    third = connect()
    third.greet()
    third.open(URI, "y = ")
    assert third.complete(URI)["items"]


def test_clients_with_the_same_document_do_not_disturb_each_other(listen, stage):
    connect = listen(ScriptedAnswer("a", delay_ms=200))
    first, second = connect(), connect()
    texts = {"x = ", "y = "}
    for editor, text in zip((first, second), sorted(texts), strict=True):
        editor.greet()
        editor.await_state("ready")
        editor.open(URI, text)
    asked = [editor.ask(URI, triggerKind=1) for editor in (first, second)]
    for editor, each in zip((first, second), asked, strict=True):
        assert editor.client.answer(each)["result"]["items"]
    events = stage.events("complete")
    assert {event["before"] for event in events} == texts
    assert len({event["uri"] for event in events}) == 2


def test_a_lost_connection_stops_its_work_and_no_other(listen):
    connect = listen(ScriptedAnswer("slow", delay_ms=60_000), ScriptedAnswer("b"))
    first, second = connect(), connect()
    for editor in (first, second):
        editor.greet()
        editor.await_state("ready")
        editor.open(URI, "x = ")
    first.ask(URI, triggerKind=1)
    first.await_state("working")
    first.client.process.hang_up()
    second.until(
        lambda: second.status()["metrics"].get("cancelled") == 1, "cancelled work"
    )
    assert second.status()["metrics"]["open"] == 1
    assert second.complete(URI)["items"]


@pytest.mark.parametrize("token", [None, "wrong", 7, ""])
def test_a_client_without_the_token_is_refused_and_put_out(listen, token):
    connect = listen(arguments=("127.0.0.1:0", "right"))
    editor = connect()
    params = {**editor.greeting, "initializationOptions": {"token": token}}
    answer = editor.client.answer(editor.client.request("initialize", params))
    assert answer["error"]["code"] == -32600
    assert "token" in answer["error"]["message"]
    assert "right" not in json.dumps(answer)
    good = connect()
    good.greet(options={"token": "right"})
    good.await_state("ready")
    good.open(URI, "x = ")
    assert good.complete(URI)["items"]
    assert "window/showMessage" not in good.client.notifications


@pytest.mark.parametrize("address", ["0.0.0.0:0", "nonsense", "127.0.0.1:port", "::1:"])
def test_addresses_that_others_can_reach_or_nobody_are_refused(stage, address):
    with pytest.raises(UsageError):
        run_tcp(lambda: None, address, None)
