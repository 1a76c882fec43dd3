"""The one edit that lies between two texts.

Editors report edits in many ways and sometimes wrongly; comparing the bytes is fast
and always right. Knows bytes only: no lines, no syntax.
"""

from dataclasses import dataclass

# Bytes compared at once: far above call overhead, far below a cache's size.
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Edit:
    """`old[start_byte:old_end_byte]` became `new[start_byte:new_end_byte]`."""

    start_byte: int
    old_end_byte: int
    new_end_byte: int

    @property
    def shift(self) -> int:
        """How far everything behind the edit moved."""
        return self.new_end_byte - self.old_end_byte

    def moved(self, offset: int) -> int | None:
        """Where an old offset is in the new text; None if it was inside the edit."""
        if offset <= self.start_byte:
            return offset
        if offset >= self.old_end_byte:
            return offset + self.shift
        return None


@dataclass(frozen=True, eq=False, slots=True)
class Revision:
    """Two versions of a text with the edit between them, found once for all users.

    Attributes:
        edit: None if the texts are equal.
    """

    old: bytes
    new: bytes
    edit: Edit | None

    @classmethod
    def between(cls, old: bytes, new: bytes) -> "Revision":
        """Compare two texts."""
        return cls(old, new, find_edit(old, new))


def edit_of(revision: Revision | None, old: bytes, new: bytes) -> Edit | None:
    """Take the edit from a revision of these very texts, else compare them."""
    if revision is not None and revision.old is old and revision.new is new:
        return revision.edit
    return find_edit(old, new)


def find_edit(old: bytes, new: bytes) -> Edit | None:
    """Find the smallest single edit that turns `old` into `new`.

    Both are UTF-8; the edit never begins or ends inside a character. Costs about
    0.1 ms per megabyte.

    Returns:
        None if the texts are equal.
    """
    start = _common_prefix(old, new)
    if start == len(old) == len(new):
        return None
    while start and (_is_inside(old, start) or _is_inside(new, start)):
        start -= 1
    tail = _common_suffix(old, new, min(len(old), len(new)) - start)
    while tail and _is_inside(new, len(new) - tail):
        tail -= 1
    return Edit(start, len(old) - tail, len(new) - tail)


def _is_inside(data: bytes, offset: int) -> bool:
    """Whether `offset` falls between the bytes of one character."""
    return offset < len(data) and data[offset] & 0xC0 == 0x80


def _common_prefix(old: bytes, new: bytes) -> int:
    limit = min(len(old), len(new))
    low = 0
    while low < limit:
        high = min(low + _CHUNK, limit)
        if old[low:high] != new[low:high]:
            return _first_difference(old, new, low, high)
        low = high
    return limit


def _first_difference(old: bytes, new: bytes, low: int, high: int) -> int:
    while high - low > 1:
        middle = (low + high) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _common_suffix(old: bytes, new: bytes, limit: int) -> int:
    """Count equal bytes at the end, at most `limit`."""
    low = 0
    while low < limit:
        high = min(low + _CHUNK, limit)
        if _tail(old, low, high) != _tail(new, low, high):
            while high - low > 1:
                middle = (low + high) // 2
                if _tail(old, low, middle) == _tail(new, low, middle):
                    low = middle
                else:
                    high = middle
            return low
        low = high
    return limit


def _tail(data: bytes, low: int, high: int) -> bytes:
    """Bytes low to high, counted from the end."""
    return data[len(data) - high : len(data) - low]
