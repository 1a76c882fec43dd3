"""Requests made while the editor's popup has an entry selected.

The item has to extend the selected entry, so the question is asked as if the entry
had been typed, and the answer is put behind it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codekv.completion.api import Completion, Request


def as_if_selected(request: Request) -> Request:
    """The request after the selected entry was typed."""
    selected = request.selected
    assert selected is not None
    text, data = selected.text.encode(), request.snapshot.data
    after = data[: selected.start_byte] + text + data[selected.end_byte :]
    return replace(
        request,
        snapshot=replace(request.snapshot, data=after),
        cursor_byte=selected.start_byte + len(text),
        selected=None,
    )


def with_selection(completion: Completion, request: Request) -> Completion:
    """Items that begin with the selected entry and replace its range."""
    selected = request.selected
    assert selected is not None
    inserted = selected.start_byte + len(selected.text.encode())
    items = tuple(
        replace(
            item,
            text=selected.text + item.text,
            start_byte=selected.start_byte,
            # What the item replaces behind the entry it also replaces behind the range.
            end_byte=selected.end_byte + max(0, item.end_byte - inserted),
        )
        for item in completion.items
        if item.start_byte == inserted
    )
    return replace(completion, items=items)
