"""What the other files of a workspace define: an index kept up to date file by file.

Open documents count as the editor has them, all others as they lie on the disk. What
privacy rules or `.gitignore` keep out is never read. Belongs to the engine's thread;
`scan` yields between files, so that it can wait for better times.
"""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

import pathspec

from codekv.completion.privacy.exclusion import Privacy, path_of
from codekv.files import read_ignore_file, read_regular
from codekv.structure.outline import Outline, imports, outlines
from codekv.structure.parser import Parser
from codekv.text.snapshot import Snapshot
from grammars.registry import language_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codekv.config import PrivacyConfig
    from codekv.cooperative import Cooperative
    from codekv.structure.parser import SyntaxTree

# A walk over more would take over a second on a cold disk.
MAX_FILES = 4000
# Larger sources are generated or data more often than not.
MAX_BYTES = 256 << 10
# Reading this many names takes about 20 ms, looking at each of them a second or two.
MAX_NAMES = 20_000
# Directory entries between two looks at whether somebody types: under 1 ms.
SEEN_AT_ONCE = 64

Stamp = tuple[int, int]
"""Time of the last change and size."""

_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "venv"})


@dataclass(frozen=True, slots=True)
class Entry:
    """One definition of another file."""

    path: str
    outline: Outline


@dataclass(frozen=True, slots=True)
class _File:
    """What the index knows of one file; `stamp` is None for open documents."""

    stamp: Stamp | None
    kin: str
    outlines: tuple[Outline, ...]


class WorkspaceIndex:
    """Definitions by name."""

    def __init__(self, root: Path, privacy: PrivacyConfig) -> None:
        self._root = root
        self._settings = privacy
        self._privacy = Privacy(privacy, root)
        self._parser = Parser()
        self._files: dict[str, _File] = {}
        self._names: dict[bytes, set[str]] = {}
        self._rules: dict[Path, pathspec.GitIgnoreSpec] = {}

    def __len__(self) -> int:
        return len(self._files)

    def configure(self, privacy: PrivacyConfig) -> None:
        """Take other rules; forgets everything if they differ."""
        if privacy != self._settings:
            self._settings = privacy
            self._privacy = Privacy(privacy, self._root)
            self._files.clear()
            self._names.clear()

    def scan(self) -> Cooperative[int]:
        """Bring the index to what is on the disk, reading only what changed.

        Returns:
            How many files were read.
        """
        self._rules.clear()
        seen, count = set(), 0
        for found in self._walk():
            if found is None:
                yield
                continue
            path, stamp = found
            seen.add(path)
            known = self._files.get(path)
            # What the editor has open is newer than the disk.
            if known is None or known.stamp not in (None, stamp):
                self._read(path, stamp)
                count += 1
                yield
        for path in [p for p, f in self._files.items() if f.stamp and p not in seen]:
            self._drop(path)
        return count

    def update(self, tree: SyntaxTree) -> None:
        """Take an open document as it is now."""
        path = path_of(tree.snapshot.uri)
        if self.is_kept(path) and self._privacy.silence(tree.snapshot) is None:
            self._put(path, tree, None)
        else:
            self._drop(path)

    def close(self, uri: str) -> None:
        """Take a document as it lies on the disk again."""
        path = path_of(uri)
        self._drop(path)
        if self.is_kept(path) and (stamp := _stamp(Path(path))) is not None:
            self._read(path, stamp)

    def is_kept(self, path: str) -> bool:
        """Whether a file may be shown to other files: not outside, not ignored."""
        file = Path(path)
        if not file.is_relative_to(self._root) or not language_id(file.name):
            return False
        below = file.relative_to(self._root)
        hidden = any(part.startswith(".") or part in _SKIPPED for part in below.parts)
        return (
            not hidden
            and not self._is_ignored(file)
            and self._privacy.silence_of_path(file.as_posix()) is None
        )

    def wanted(self, tree: SyntaxTree) -> tuple[Entry, ...]:
        """Definitions in other files of the names that a file imports.

        Of several files that define a name, the nearest one in the folder tree; none
        if that leaves more than one.
        """
        if tree.grammar is None:
            return ()
        own = path_of(tree.snapshot.uri)
        found: dict[Entry, None] = {}
        for name in imports(tree):
            paths = [
                path
                for path in self._names.get(name, ())
                if path != own and self._files[path].kin == tree.grammar.kin
            ]
            nearest = _nearest(own, paths)
            if len(nearest) == 1:
                for outline in self._files[nearest[0]].outlines:
                    if outline.name == name:
                        found[Entry(nearest[0], outline)] = None
        return tuple(found)

    def shown_path(self, path: str) -> str:
        """A path as a reader knows it: from the workspace on."""
        return Path(path).relative_to(self._root).as_posix()

    def _walk(self) -> Iterator[tuple[str, Stamp] | None]:
        """Files that may be read, with what tells whether they changed.

        Links are left out: one may lead out of the workspace, and what it leads to
        within the workspace is found by its own name. None comes now and then between
        names that are of no use, so that a large folder holds nobody up.
        """
        waiting, count, num_looked_at = deque([self._root]), 0, 0
        while waiting:
            folder = waiting.popleft()
            try:
                with os.scandir(folder) as entries:
                    # The rest of a folder with more names than that is not worth it.
                    inner = sorted(islice(entries, MAX_NAMES), key=lambda e: e.name)
            except OSError:
                continue
            for entry in inner:
                num_looked_at += 1
                if num_looked_at % SEEN_AT_ONCE == 0:
                    yield None
                if count >= MAX_FILES or num_looked_at >= MAX_NAMES:
                    return
                if entry.is_dir(follow_symlinks=False):
                    if not (entry.name.startswith(".") or entry.name in _SKIPPED):
                        waiting.append(Path(entry.path))
                elif not entry.is_symlink() and self.is_kept(
                    Path(entry.path).as_posix()
                ):
                    stamp = _stamp(Path(entry.path))
                    if stamp is not None:
                        count += 1
                        yield Path(entry.path).as_posix(), stamp

    def _is_ignored(self, file: Path) -> bool:
        """Whether a `.gitignore` on the way from the root names a file or a folder."""
        for folder in (*reversed(file.parents), file):
            if folder == self._root or not folder.is_relative_to(self._root):
                continue
            for above in folder.parents:
                if not above.is_relative_to(self._root):
                    break
                if above not in self._rules:
                    self._rules[above] = _ignored(above)
                name = folder.relative_to(above).as_posix()
                if self._rules[above].match_file(name + "/" * (folder != file)):
                    return True
        return False

    def _read(self, path: str, stamp: Stamp) -> None:
        try:
            data = read_regular(Path(path), MAX_BYTES).replace(b"\r\n", b"\n")
            data.decode()
        except (OSError, UnicodeDecodeError):
            self._drop(path)
            return
        snapshot = Snapshot(Path(path).as_uri(), 0, language_id(path), data)
        if self._privacy.silence(snapshot) is not None:
            self._drop(path)
            return
        self._put(path, self._parser.parse(snapshot, None), stamp)

    def _put(self, path: str, tree: SyntaxTree, stamp: Stamp | None) -> None:
        self._drop(path)
        kin = tree.grammar.kin if tree.grammar else ""
        file = _File(stamp, kin, outlines(tree))
        self._files[path] = file
        for outline in file.outlines:
            self._names.setdefault(outline.name, set()).add(path)

    def _drop(self, path: str) -> None:
        file = self._files.pop(path, None)
        for outline in file.outlines if file else ():
            paths = self._names.get(outline.name, set())
            paths.discard(path)
            if not paths:
                self._names.pop(outline.name, None)


def _ignored(folder: Path) -> pathspec.GitIgnoreSpec:
    """The rules of a folder's own `.gitignore`."""
    lines = read_ignore_file(folder / ".gitignore")
    try:
        return pathspec.GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return pathspec.GitIgnoreSpec.from_lines([])


def _stamp(file: Path) -> Stamp | None:
    """What tells whether a file changed; None if it cannot or should not be read."""
    try:
        stat = file.stat()
    except (OSError, ValueError):
        return None
    is_small = stat.st_size <= MAX_BYTES and S_ISREG(stat.st_mode)
    return (stat.st_mtime_ns, stat.st_size) if is_small else None


def _nearest(own: str, paths: list[str]) -> list[str]:
    """Those paths that share most folders with one's own."""
    parts = Path(own).parts

    def shared(path: str) -> int:
        pairs = zip(parts, Path(path).parts, strict=False)
        return next((i for i, (a, b) in enumerate(pairs) if a != b), len(parts))

    most = max(map(shared, paths), default=0)
    return [path for path in paths if shared(path) == most]
