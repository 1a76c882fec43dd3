r"""Recognise the texts of requests as versions of one document.

A client of an HTTP API names no document: it sends some lines around its cursor with
every key. The cache works on documents, so each text is laid over the known document
that it continues: lines at its beginning and its end are looked for there, and the
known text outside of them stays. A window that moves down a file by a line thus costs
what it costs in an editor. Texts that resemble none begin a document of their own.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.text.edit import find_edit
from codekv.text.snapshot import Snapshot
from grammars.registry import language_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from codekv.endpoint.questions import HttpQuestion

MAX_DOCUMENTS = 16
"""As many documents as a person has at hand; older ones are closed."""

MAX_BYTES = 1 << 20
"""A document that has grown beyond this begins anew with the window alone."""

EDGE_BYTES = 160
"""How much of a window's beginning and end is looked for; three or four lines."""

LEAST_EDGE = 16
"""Shorter edges stand in too many places to say where a window belongs."""

LEAST_ALIKE = 0.5
"""Share of a window that must agree with the known text for both to be one."""


@dataclass(frozen=True, slots=True)
class AskedPlace:
    """A request's text as a document: where its cursor is."""

    snapshot: Snapshot
    cursor_byte: int


@dataclass(frozen=True, slots=True)
class _Known:
    uri: str
    version: int
    language: str
    path: str
    data: bytes


class KnownTexts:
    """The documents that requests have shown so far; owned by the event loop."""

    def __init__(self, on_close: Callable[[str], None]) -> None:
        """Know nothing yet.

        Args:
            on_close: Told the uri of a document that is forgotten.
        """
        self._on_close = on_close
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._numbers = itertools.count(1)

    def place(self, question: HttpQuestion) -> AskedPlace:
        """Lay a question's text over the document it belongs to."""
        before = question.before.encode("utf-8", "replace")
        after = question.after.encode("utf-8", "replace")
        for known in reversed(self._known.values()):
            if question.path and known.path and question.path != known.path:
                continue
            laid = lay_over(known.data, before, after)
            if laid is not None and len(laid[0]) <= MAX_BYTES:
                return self._note(known, question, *laid)
        number = next(self._numbers)
        name = question.path.rsplit("/", 1)[-1] or f"text-{number}"
        uri = f"untitled:{number}/{name}"
        new = _Known(uri, 0, "", question.path, b"")
        return self._note(new, question, before + after, len(before))

    def _note(
        self, known: _Known, question: HttpQuestion, data: bytes, cursor_byte: int
    ) -> AskedPlace:
        told = question.language or language_id(question.path)
        now = _Known(
            known.uri,
            known.version + (data != known.data or not known.version),
            told or known.language,
            question.path or known.path,
            data,
        )
        self._known[now.uri] = now
        self._known.move_to_end(now.uri)
        while len(self._known) > MAX_DOCUMENTS:
            self._on_close(self._known.popitem(last=False)[0])
        snapshot = Snapshot(now.uri, now.version, now.language, data)
        return AskedPlace(snapshot, cursor_byte)


def lay_over(known: bytes, before: bytes, after: bytes) -> tuple[bytes, int] | None:
    """Lay a window over a known text.

    Returns:
        The new text and the cursor's offset in it, or None if they are two texts.
    """
    window = before + after
    for start in _starts(known, window):
        stop = _stop(known, after, start)
        if _are_alike(known[start:stop], window):
            return known[:start] + window + known[stop:], start + len(before)
    return None


def _are_alike(old: bytes, window: bytes) -> bool:
    """Whether one edit that keeps enough lies between two texts."""
    edit = find_edit(old, window)
    if edit is None:
        return True
    same = edit.start_byte + len(old) - edit.old_end_byte
    shorter, longer = sorted((len(old), len(window)))
    # Of a few bytes half may agree by chance, so short texts need more.
    return same >= LEAST_ALIKE * (longer if shorter < LEAST_EDGE else shorter)


def _starts(known: bytes, window: bytes) -> Iterator[int]:
    """Where a window may begin in a known text, the likeliest first."""
    edge = _first_lines(window)
    if len(edge) >= LEAST_EDGE and not known.startswith(edge):
        found = known.find(b"\n" + edge)
        if found >= 0:
            yield found + 1
    # Also where a window has moved up and begins before all that is known.
    yield 0


def _stop(known: bytes, after: bytes, start: int) -> int:
    """Where a window ends in a known text: behind its last lines, or at the end."""
    edge = after[-EDGE_BYTES:]
    edge = edge[edge.find(b"\n") + 1 :] if len(after) > EDGE_BYTES else edge
    if len(edge) < LEAST_EDGE:
        return len(known)
    found = known.rfind(edge, start)
    return found + len(edge) if found >= 0 else len(known)


def _first_lines(text: bytes) -> bytes:
    """Whole lines from the beginning, about as long as an edge."""
    end = text.rfind(b"\n", 0, EDGE_BYTES)
    return text[: end + 1] if end > 0 else text[:EDGE_BYTES]
