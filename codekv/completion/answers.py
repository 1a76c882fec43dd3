"""Answers given a moment ago, reused while the user types along them.

Typing what was offered, deleting some of it again, or accepting a word or a line of
it leaves the rest of the offer valid: it is answered again without the model. An
answer computed ahead, for the text as it will be once an offer is accepted, is found
in the same way. Plain bytes; no model, no syntax.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codekv.completion.api import AnswerSource, Completion, Item, Timing, TokenCounts

if TYPE_CHECKING:
    from codekv.completion.api import Request
    from codekv.text.snapshot import Snapshot

# Undo and redo reach a few steps back; older answers no longer fit the text.
MAX_PER_DOCUMENT = 8
# More than anybody edits in turn; an answer is a few hundred bytes.
MAX_DOCUMENTS = 16


@dataclass(frozen=True, slots=True)
class RememberedAnswer:
    r"""An offer and the text it was made for.

    Attributes:
        before: All bytes before the cursor.
        after: All bytes behind it.
        text: Offered bytes from the cursor on, line ends as `\n`.
        replaced: How many bytes of `after` the offer takes the place of.
    """

    before: bytes
    after: bytes
    text: bytes
    replaced: int
    item: Item
    completion: Completion


class Answers:
    """The newest answers of the most recently used documents."""

    def __init__(self) -> None:
        self._documents: OrderedDict[str, deque[RememberedAnswer]] = OrderedDict()

    def note(self, request: Request, completion: Completion) -> None:
        """Remember the first item of an answer by the model."""
        if not completion.items or request.selected is not None:
            return
        snapshot, item = request.snapshot, completion.items[0]
        cursor = request.cursor_byte
        text = item.text.replace(snapshot.eol, "\n").encode()
        answer = RememberedAnswer(
            before=snapshot.data[:cursor],
            after=snapshot.data[cursor:],
            text=text[cursor - item.start_byte :],
            replaced=item.end_byte - cursor,
            item=item,
            completion=completion,
        )
        found = self._documents.setdefault(snapshot.uri, deque(maxlen=MAX_PER_DOCUMENT))
        found.appendleft(answer)
        self._documents.move_to_end(snapshot.uri)
        while len(self._documents) > MAX_DOCUMENTS:
            self._documents.popitem(last=False)

    def find(self, request: Request) -> Completion | None:
        """What is left of an earlier offer at this cursor, if it still holds."""
        started = time.perf_counter()
        # A copy, for answers computed ahead come from the engine's thread.
        for answer in tuple(self._documents.get(request.snapshot.uri, ())):
            rest = _rest(answer, request.snapshot.data, request.cursor_byte)
            if rest is None:
                continue
            total = (time.perf_counter() - started) * 1e3
            return replace(
                answer.completion,
                items=(_item(answer, rest, request),),
                source=AnswerSource.TYPED_THROUGH,
                timing=Timing(total=total, ttft=total),
                tokens=TokenCounts(),
            )
        return None

    def forget(self, uri: str) -> None:
        """Drop the answers of a document."""
        self._documents.pop(uri, None)

    def clear(self) -> None:
        """Drop everything."""
        self._documents.clear()


def accepted(snapshot: Snapshot, item: Item) -> tuple[Snapshot, int]:
    """The document after an item was accepted, and the cursor in it."""
    text = item.text.replace(snapshot.eol, "\n").encode()
    data = snapshot.data[: item.start_byte] + text + snapshot.data[item.end_byte :]
    return replace(snapshot, data=data), item.start_byte + len(text)


def _rest(answer: RememberedAnswer, data: bytes, cursor: int) -> bytes | None:
    """The part of the offer that is not typed yet; None if the text took another way.

    Brackets that the editor closed by itself stand in `after`, unchanged.
    """
    typed = cursor - len(answer.before)
    if not 0 <= typed < len(answer.text):
        return None
    if not data.startswith(answer.before) or data[cursor:] != answer.after:
        return None
    if data[len(answer.before) : cursor] != answer.text[:typed]:
        return None
    rest = answer.text[typed:]
    # A rest that begins inside a character means that the cursor does too.
    return rest if rest.strip() and rest[0] & 0xC0 != 0x80 else None


def _item(answer: RememberedAnswer, rest: bytes, request: Request) -> Item:
    text = rest.decode("utf-8", errors="ignore")
    if request.snapshot.eol != "\n":
        text = text.replace("\n", request.snapshot.eol)
    cursor = request.cursor_byte
    return Item(
        answer.item.id, text, cursor, cursor + answer.replaced, answer.item.score
    )


def without_unlikely(completion: Completion, least: float) -> Completion:
    """Withhold items that the model gives less than this probability per token."""
    items = tuple(
        item
        for item in completion.items
        if item.score is None or math.exp(item.score) >= least
    )
    if len(items) == len(completion.items):
        return completion
    return replace(completion, items=items, reason="" if items else "unsure")
