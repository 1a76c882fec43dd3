"""A raw LSP client over standard streams: sends what it is told, hides nothing.

Synchronous, with one reader thread, so that tests read like a conversation. It
answers the server's requests from a table and keeps every notification.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Protocol, Self

from codekv.processes import module_command, safe_environment
from codekv.testing.wire import frame, read

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import IO

ANSWER_SECONDS = 60.0
"""A server process on a busy machine has started and answered long before."""


class NoAnswerError(TimeoutError):
    """The server did not say in time what was waited for."""


class ServerProcess(Protocol):
    """The parts of `subprocess.Popen` that a client uses."""

    @property
    def pid(self) -> int:
        """The process id."""

    @property
    def stdin(self) -> IO[bytes] | None:
        """Where messages go."""

    @property
    def stdout(self) -> IO[bytes] | None:
        """Where messages come from."""

    @property
    def stderr(self) -> IO[bytes] | None:
        """The server's log."""

    def poll(self) -> int | None:
        """Tell the exit code, or None while it runs."""

    def wait(self, timeout: float) -> int:
        """Wait for the end."""

    def kill(self) -> None:
        """End it by force."""


class RawClient:
    """One conversation with one server process.

    Attributes:
        notifications: What came unasked, by method, in order.
        asked: The server's requests, in order.
        arrived: When each answer came, by id, on `time.perf_counter`.
    """

    def __init__(self, process: ServerProcess) -> None:
        self.process = process
        self.notifications: dict[str, list[Any]] = defaultdict(list)
        self.asked: list[dict[str, Any]] = []
        self.arrived: dict[Any, float] = {}
        self.answers: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        self.replies: dict[str, Callable[[Any], Any]] = {}
        self.stderr = ""
        self._ids = itertools.count(1)
        self._changed = threading.Condition()
        self._threads = [
            threading.Thread(target=target, daemon=True)
            for target in (self._read, self._read_stderr)
        ]
        for thread in self._threads:
            thread.start()

    # Asking

    def send(self, message: Any) -> None:
        """Send one message as it is."""
        self.send_raw(json.dumps(message).encode())

    def send_raw(self, body: bytes) -> None:
        """Send bytes as one message."""
        assert self.process.stdin is not None
        self.process.stdin.write(frame(body))
        self.process.stdin.flush()

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method: str, params: Any = None) -> int:
        """Send a request and tell its id."""
        msg_id = next(self._ids)
        call = {"jsonrpc": "2.0", "id": msg_id, "method": method, "params": params}
        self.send(call)
        return msg_id

    def answer(self, msg_id: Any, limit: float = ANSWER_SECONDS) -> dict[str, Any]:
        """Wait for the answer to a request.

        Raises:
            NoAnswerError: None came.
        """
        self.wait_for(lambda: bool(self.answers[msg_id]), f"answer {msg_id}", limit)
        return self.answers[msg_id][0]

    def call(self, method: str, params: Any = None) -> Any:
        """Send a request and give its result.

        Raises:
            RuntimeError: The answer is an error.
        """
        answer = self.answer(self.request(method, params))
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def wait_for(
        self, is_true: Callable[[], bool], what: str, limit: float = ANSWER_SECONDS
    ) -> None:
        """Wait until something holds; looked at whenever a message comes.

        Raises:
            NoAnswerError: It does not hold in time.
        """
        with self._changed:
            if not self._changed.wait_for(is_true, limit):
                raise NoAnswerError(f"{what} in {limit} s; the log says: {self.stderr}")

    # Ending

    def close(self) -> int:
        """End politely and tell the exit code."""
        if self.process.poll() is None:
            self.call("shutdown")
            self.notify("exit")
        return self.wait()

    def wait(self, limit: float = ANSWER_SECONDS) -> int:
        """Wait for the process to end and tell its exit code."""
        code = self.process.wait(limit)
        for thread in self._threads:
            thread.join(limit)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return code

    def hang_up(self) -> None:
        """Close the server's standard input."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.wait()

    # Hearing

    def _read(self) -> None:
        assert self.process.stdout is not None
        stream = self.process.stdout
        while body := read(stream):
            message = json.loads(body)
            with self._changed:
                self._take(message)
                self._changed.notify_all()

    def _take(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            self.arrived[message["id"]] = time.perf_counter()
            self.answers[message["id"]].append(message)
        elif "id" in message:
            self.asked.append(message)
            reply = self.replies.get(message["method"])
            result = reply(message.get("params")) if reply is not None else None
            self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})
        else:
            self.notifications[message["method"]].append(message.get("params"))

    def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._changed:
                self.stderr += line.decode("utf-8", "replace")
                self._changed.notify_all()


def start_server(command: Sequence[str], env: Mapping[str, str]) -> RawClient:
    """Start a server process and talk to it."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=safe_environment(**env),
    )
    return RawClient(process)


def start_scripted(script: Path, home: Path) -> RawClient:
    """Start the real server over a scripted service, away from the user's files."""
    command = module_command("codekv.testing", str(script))
    return start_server(command, private_folders(home))


def private_folders(home: Path) -> dict[str, str]:
    """Give an environment in which no file of the user's is read or written."""
    folders = {"CONFIG": "config", "CACHE": "cache", "DATA": "data"}
    return {f"XDG_{key}_HOME": str(home / name) for key, name in folders.items()}
