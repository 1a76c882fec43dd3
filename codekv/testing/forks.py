"""Starts scripted servers fast: one process imports everything once and then forks.

Each server is a process of its own with its own streams, as an editor would have it;
only the second of importing is saved. For systems that can fork.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Self

from codekv.processes import module_command
from codekv.testing.__main__ import main as serve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import BinaryIO

_MAX_MESSAGE = 1 << 16
"""Bytes; a question of these tests has some hundred."""

_POLL_SECONDS = 0.005
"""Short against a fork, which takes some milliseconds."""


class ForkedServer:
    """A server process; the parts of `subprocess.Popen` that a client uses."""

    def __init__(self, nursery: Nursery, pid: int, fds: tuple[int, int, int]) -> None:
        self._nursery = nursery
        self.pid = pid
        self.returncode: int | None = None
        self.stdin: BinaryIO = os.fdopen(fds[0], "wb")
        self.stdout: BinaryIO = os.fdopen(fds[1], "rb")
        self.stderr: BinaryIO = os.fdopen(fds[2], "rb")

    def poll(self) -> int | None:
        """Tell the exit code, or None while it runs."""
        if self.returncode is None:
            self.returncode = self._nursery.exit_code(self.pid, 0.0)
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait for the end and tell the exit code.

        Raises:
            TimeoutError: It still runs.
        """
        if self.returncode is None:
            self.returncode = self._nursery.exit_code(self.pid, timeout)
        if self.returncode is None:
            raise TimeoutError(f"process {self.pid} still runs after {timeout} s")
        return self.returncode

    def kill(self) -> None:
        """End it by force."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class Nursery:
    """The process that forks; ends with its `with` block."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = module_command("codekv.testing.forks", str(theirs.fileno()))
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        theirs.close()

    def start(self, arguments: Sequence[str], env: Mapping[str, str]) -> ForkedServer:
        """Fork a server with streams of its own."""
        in_read, in_write = os.pipe()
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        theirs = (in_read, out_write, err_write)
        order = {"arguments": list(arguments), "env": dict(env)}
        socket.send_fds(self._socket, [json.dumps(order).encode()], theirs)
        for fd in theirs:
            os.close(fd)
        pid = int(self._socket.recv(_MAX_MESSAGE))
        return ForkedServer(self, pid, (in_write, out_read, err_read))

    def exit_code(self, pid: int, limit: float) -> int | None:
        """Wait for a server's end; None if it still runs after `limit` seconds."""
        self._socket.send(json.dumps({"pid": pid, "limit": limit}).encode())
        code = json.loads(self._socket.recv(_MAX_MESSAGE))
        return code if isinstance(code, int) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._process.wait()


def _nurse(orders: socket.socket) -> None:
    """Follow orders until nobody gives any more."""
    while True:
        message, fds, _, _ = socket.recv_fds(orders, _MAX_MESSAGE, 3)
        if not message:
            return
        order = json.loads(message)
        if "pid" in order:
            reply: object = _exit_code(order["pid"], order["limit"])
        else:
            reply = _fork(orders, order, fds)
        orders.send(json.dumps(reply).encode())


def _fork(orders: socket.socket, order: dict[str, Any], fds: list[int]) -> int:
    pid = os.fork()
    if pid:
        for fd in fds:
            os.close(fd)
        return pid
    orders.close()
    for target, fd in enumerate(fds):
        os.dup2(fd, target)
        os.close(fd)
    os.environ.update(order["env"])
    code = 1
    try:
        code = serve(order["arguments"])
    finally:
        sys.stderr.flush()
        os._exit(code)


def _exit_code(pid: int, limit: float) -> int | None:
    end = time.monotonic() + limit
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= end:
            return None
        time.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    _nurse(socket.socket(fileno=int(sys.argv[1])))
