"""The real server, with every file and socket it touches written to a journal.

`python -P watched_server.py JOURNAL WORKSPACE`
"""

import json
import os
import sys
import threading
from pathlib import Path

JOURNAL, WORKSPACE = sys.argv[1:]
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink"}
PROCESSES = {"subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork"}
SOCKETS = {"socket.connect", "socket.bind", "socket.getaddrinfo"}

out = os.open(JOURNAL, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
busy = threading.local()


def note(kind: str, what: object) -> None:
    os.write(out, json.dumps([kind, str(what)]).encode() + b"\n")


def absolute(name: object) -> str:
    # Not `resolve`: a link is what was asked for.
    return os.path.abspath(os.fsdecode(name))  # noqa: PTH100


def watch(event: str, arguments: tuple) -> None:
    if getattr(busy, "on", False):
        return
    busy.on = True
    try:
        if event == "open" and isinstance(arguments[0], (str, bytes)):
            path = absolute(arguments[0])
            if (arguments[2] or 0) & WRITING:
                note("written", path)
            elif path.startswith(WORKSPACE):
                note("read", path)
        elif event in CHANGES:
            note("changed", absolute(arguments[0]))
        elif event in PROCESSES:
            note("process", arguments[0])
        elif event in SOCKETS:
            note("socket", arguments[1:])
    finally:
        busy.on = False


sys.addaudithook(watch)
assert str(Path(WORKSPACE)) not in sys.path
from codekv.cli import run  # noqa: E402

sys.exit(run(["serve"]))
