"""What authors changed, as text that can be typed again.

A change is a commit, or a file that differs between two releases. Its hunks are put
into an order in which a person could have written them: what defines a name comes
before what uses it. That is the partial order by which Historian restores a commit's
edits; the true order, and everything tried and deleted on the way, is lost.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.traces.corpus import LANGUAGES, LARGEST, LONGEST_LINE, SKIPPED_FOLDERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

MAX_FILES = 8
"""A change of more files is a bulk edit, which a tool has made or helped to make."""

MAX_LINES = 200
"""A hunk of more new lines was moved, generated or copied, not typed."""

LEAST_TYPED = 6
"""Letters and digits that a hunk must add to be worth typing."""

_WORD = re.compile(r"[A-Za-z_]\w+")
_DEFINED = re.compile(
    r"\b(?:def|class|fn|func|function|fun|struct|enum|interface|trait|type|const|let|var"
    r"|val|import|module|package)\s+(?:\([^)]*\)\s*)?([A-Za-z_]\w+)|^\s*([A-Za-z_]\w+)\s*:?=",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Hunk:
    """One place of a file: `old` stood there from `start` on and became `new`.

    Attributes:
        start: Characters before it in the file's old text.
    """

    path: str
    start: int
    old: str
    new: str

    @property
    def added(self) -> frozenset[str]:
        """Words that the new text has and the old one has not."""
        return frozenset(_WORD.findall(self.new)) - frozenset(_WORD.findall(self.old))

    @property
    def defined(self) -> frozenset[str]:
        """Names that it seems to define."""
        names = (name or other for name, other in _DEFINED.findall(self.new))
        return frozenset(names) & self.added


@dataclass(frozen=True, slots=True)
class AuthoredChange:
    r"""Hunks in the order in which they are typed, and the texts they begin from.

    Attributes:
        before: Old texts by path, line ends as `\n`.
    """

    repository: str
    name: str
    before: Mapping[str, str]
    hunks: tuple[Hunk, ...]


def language_of(path: str) -> str | None:
    """The language of a source file that can be replayed, by its ending."""
    parts = path.split("/")
    if any(part in SKIPPED_FOLDERS or part.startswith(".") for part in parts[:-1]):
        return None
    return LANGUAGES.get("." + path.rpartition(".")[2].lower())


def readable(data: bytes) -> str | None:
    """A file's text, unless it is binary, huge or looks generated."""
    if len(data) > LARGEST or b"\0" in data:
        return None
    try:
        text = data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None
    longest = max(map(len, text.split("\n")))
    return None if "\r" in text or longest > LONGEST_LINE else text


def make_change(
    repository: str, name: str, texts: Iterable[tuple[str, str, str]]
) -> AuthoredChange | None:
    """Build a change from (path, old text, new text); None if nothing was typed."""
    before: dict[str, str] = {}
    hunks: list[Hunk] = []
    for path, old, new in texts:
        before[path] = old
        hunks += hunks_of(path, old, new)
    removed = [hunk.old.strip() for hunk in hunks if hunk.old.strip()]
    typed = [hunk for hunk in hunks if _is_typed(hunk, removed)]
    if not typed or len(before) > MAX_FILES:
        return None
    kept = {hunk.path: before[hunk.path] for hunk in typed}
    return AuthoredChange(repository, name, kept, in_order(typed))


def hunks_of(path: str, old: str, new: str) -> Iterator[Hunk]:
    """Find what differs, line by line; equal characters at both ends are left out."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    starts = [0]
    for line in before:
        starts.append(starts[-1] + len(line))
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, first, last, new_first, new_last in matcher.get_opcodes():
        if tag != "equal":
            was, becomes = (
                "".join(before[first:last]),
                "".join(after[new_first:new_last]),
            )
            yield trimmed(Hunk(path, starts[first], was, becomes))


def trimmed(hunk: Hunk) -> Hunk:
    """Leave out what both texts begin and end with, up to whole words."""
    old, new = hunk.old, hunk.new
    most = min(len(old), len(new))
    lead = next((n for n in range(most) if old[n] != new[n]), most)
    tail = next(
        (n for n in range(most - lead) if old[-n - 1] != new[-n - 1]), most - lead
    )
    # A person who changes a word types the word, not the letters that differ.
    while lead and new[lead - 1].isalnum():
        lead -= 1
    while tail and new[len(new) - tail].isalnum():
        tail -= 1
    return Hunk(
        hunk.path,
        hunk.start + lead,
        old[lead : len(old) - tail],
        new[lead : len(new) - tail],
    )


def in_order(hunks: Sequence[Hunk]) -> tuple[Hunk, ...]:
    """Definitions before their uses, else as they stand in the files.

    Where hunks need each other, the first one comes first.
    """
    waiting, ordered = list(hunks), []
    while waiting:
        chosen = next(
            (hunk for hunk in waiting if not _needs(hunk, waiting)), waiting[0]
        )
        waiting.remove(chosen)
        ordered.append(chosen)
    return tuple(ordered)


def between_releases(older: Path, newer: Path, name: str) -> Iterator[AuthoredChange]:
    """Every source file that differs between two unpacked releases is a change."""
    for path in sorted(newer.rglob("*")):
        relative = path.relative_to(newer).as_posix()
        earlier = older / relative
        if language_of(relative) is None or not (path.is_file() and earlier.is_file()):
            continue
        old, new = readable(earlier.read_bytes()), readable(path.read_bytes())
        if old is None or new is None or old == new:
            continue
        change = make_change(name, f"{newer.name}/{relative}", [(relative, old, new)])
        if change is not None:
            yield change


def _is_typed(hunk: Hunk, removed: Sequence[str]) -> bool:
    """Whether somebody typed a hunk, instead of moving it from elsewhere."""
    text = hunk.new.strip()
    is_moved = any(text in other for other in removed if other != hunk.old.strip())
    letters = sum(map(str.isalnum, text))
    return letters >= LEAST_TYPED and not is_moved and text.count("\n") < MAX_LINES


def _needs(hunk: Hunk, others: Sequence[Hunk]) -> bool:
    return any(hunk.added & other.defined for other in others if other is not hunk)
