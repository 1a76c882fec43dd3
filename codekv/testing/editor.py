"""What an editor does, slowly and by the book: the twin that fast code is held to.

Works on whole strings, one character at a time; shares no code with the server.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from codekv.testing.client import ANSWER_SECONDS, NoAnswerError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from codekv.testing.client import RawClient

Json = dict[str, Any]


def line_starts(text: str) -> list[int]:
    r"""List where lines start; only `\n`, `\r\n` and `\r` end one."""
    starts = [0]
    for index, char in enumerate(text):
        is_pair = char == "\r" and text[index + 1 : index + 2] == "\n"
        if char == "\n" or (char == "\r" and not is_pair):
            starts.append(index + 1)
    return starts


def num_units(text: str, encoding: str) -> int:
    """Count what `text` takes in an encoding."""
    sizes = {"utf-8": 1, "utf-16": 2, "utf-32": 4}
    codec = encoding if encoding == "utf-8" else encoding + "-le"
    return sum(len(c.encode(codec, "surrogatepass")) for c in text) // sizes[encoding]


def position_of(text: str, index: int, encoding: str) -> Json:
    """Give a character's position; one inside a line end is at the line's end."""
    starts = line_starts(text)
    line = max(n for n, start in enumerate(starts) if start <= index)
    before = text[starts[line] : index].rstrip("\r\n")
    return {"line": line, "character": num_units(before, encoding)}


def index_of(text: str, position: Json, encoding: str) -> int:
    """Give the character a position means; outside the text, the nearest one."""
    starts = line_starts(text)
    if position["line"] >= len(starts):
        return len(text)
    index = starts[position["line"]]
    units = 0
    while index < len(text) and text[index] not in "\r\n":
        units += num_units(text[index], encoding)
        if units > position["character"]:
            break
        index += 1
    return index


def apply_edit(text: str, span: Json, new_text: str, encoding: str) -> str:
    """Replace a range."""
    start = index_of(text, span["start"], encoding)
    end = index_of(text, span["end"], encoding)
    return text[:start] + new_text + text[end:]


class Editor:
    """An editor with some documents open, talking through a client.

    Attributes:
        texts: Each document as the editor has it.
        capabilities: What the server has announced.
    """

    def __init__(self, client: RawClient, greeting: Json) -> None:
        self.client = client
        self.greeting = greeting
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.capabilities: Json = {}

    @property
    def encoding(self) -> str:
        """What columns count in this conversation."""
        return str(self.capabilities["positionEncoding"])

    def greet(self, options: Any = None, folders: list[str] | None = None) -> Json:
        """Do the handshake and give the server's capabilities."""
        params = {**self.greeting, "initializationOptions": options}
        if folders is not None:
            params["workspaceFolders"] = [{"uri": f, "name": f} for f in folders]
            params["rootUri"] = folders[0] if folders else None
        result = self.client.call("initialize", params)
        self.capabilities = result["capabilities"]
        self.client.notify("initialized", {})
        return self.capabilities

    def await_state(self, state: str) -> None:
        """Wait until the server says it is in a state."""
        told = self.client.notifications["codekv/didChangeStatus"]
        self.client.wait_for(
            lambda: bool(told) and told[-1]["state"] == state, f"state {state}"
        )

    def until(self, is_true: Callable[[], bool], what: str) -> None:
        """Ask the server something harmless until something holds.

        Raises:
            NoAnswerError: It does not hold after many questions.
        """
        end = time.monotonic() + ANSWER_SECONDS
        while not is_true():
            if time.monotonic() > end:
                raise NoAnswerError(f"{what}; the log says: {self.client.stderr}")
            self.status()

    def open(self, uri: str, text: str, language: str = "python") -> None:
        """Open a document."""
        self.texts[uri], self.versions[uri] = text, 1
        document = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.client.notify("textDocument/didOpen", {"textDocument": document})

    def close(self, uri: str) -> None:
        """Close a document."""
        del self.texts[uri]
        self.client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def replace(self, uri: str, start: int, end: int, new_text: str) -> None:
        """Make one edit and tell the server."""
        text = self.texts[uri]
        span = {
            "start": position_of(text, start, self.encoding),
            "end": position_of(text, end, self.encoding),
        }
        self.texts[uri] = apply_edit(text, span, new_text, self.encoding)
        self.versions[uri] += 1
        document = {"uri": uri, "version": self.versions[uri]}
        changes = [{"range": span, "text": new_text}]
        params = {"textDocument": document, "contentChanges": changes}
        self.client.notify("textDocument/didChange", params)

    def ask(self, uri: str, index: int | None = None, **context: Any) -> int:
        """Ask for ghost text, at the end if not told otherwise; give the id."""
        return self.client.request(
            "textDocument/inlineCompletion", self.question(uri, index, **context)
        )

    def question(self, uri: str, index: int | None = None, **context: Any) -> Json:
        """Build the parameters of a completion request."""
        text = self.texts[uri]
        at = len(text) if index is None else index
        return {
            "textDocument": {"uri": uri},
            "position": position_of(text, at, self.encoding),
            "context": {"triggerKind": 2, **context},
        }

    def complete(self, uri: str, index: int | None = None, **context: Any) -> Any:
        """Ask for ghost text and give the result."""
        return self.client.answer(self.ask(uri, index, **context))["result"]

    def accepted(self, uri: str, item: Json) -> str:
        """Tell the document's text after an item is accepted."""
        text = self.texts[uri]
        return apply_edit(text, item["range"], item["insertText"], self.encoding)

    def status(self) -> Json:
        """Ask how the server is."""
        report = self.client.call("codekv/status")
        assert isinstance(report, dict)
        return report


def load_greeting(path: Path) -> Json:
    """Read a recorded initialize request."""
    greeting = json.loads(path.read_text("utf-8"))
    assert isinstance(greeting, dict)
    return greeting
