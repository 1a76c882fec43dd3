"""What a prompt says of its own file: its path, and with it its language.

Without it an empty file of any language is completed as whatever the model saw most.
The header is a function of the document's address and language alone, so it stands
first in every prompt of the document and typing never changes it. Nothing but the path
below the workspace's folder is told: neither that folder's name nor those above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codekv.completion.privacy.exclusion import path_of
from grammars.registry import grammar_for

if TYPE_CHECKING:
    from pathlib import Path

    from codekv.text.snapshot import Snapshot
    from codekv.tokens.tokenizer import Tokenizer

PROJECT = "project"
"""Stands for the repository's name, which is nobody's business."""

UNTITLED = "main"
"""Names a document that has no file yet; its language gives the ending."""

MAX_SHARE = 8
"""A header may take one token in so many of a prompt; a longer one is left out."""

MAX_PATH = 120
"""Longest path in characters: of a longer one, the file's own name is told."""


@dataclass(frozen=True, slots=True)
class FileHeader:
    """Tokens that name a prompt's file.

    Attributes:
        before: In front of the prefix marker.
        inside: In front of the document's own text, behind that of other files.
    """

    before: tuple[int, ...] = ()
    inside: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.before) + len(self.inside)


NO_HEADER = FileHeader()


def file_header(
    tokenizer: Tokenizer, snapshot: Snapshot, workspace: Path | None
) -> FileHeader:
    """Lay out the header by the model's own means, else as a comment.

    Returns:
        Nothing for a document that has neither a name nor a known language.
    """
    path = shown_path(snapshot, workspace)
    if not path:
        return NO_HEADER
    names = tokenizer.fim.names if tokenizer.fim else None
    if names is None:
        return FileHeader(inside=_comment(tokenizer, snapshot, path))
    project = tokenizer.encode(PROJECT.encode()).ids
    told = tokenizer.encode(f"{path}\n".encode()).ids
    if names.is_inside:
        return FileHeader((names.repository, *project, names.file), told)
    line_end = tokenizer.encode(b"\n").ids
    return FileHeader((names.repository, *project, *line_end, names.file, *told))


def shown_path(snapshot: Snapshot, workspace: Path | None) -> str:
    """The path of a document's file as a reader of the project knows it.

    Returns:
        The path below the workspace's folder; the file's name alone if it is not
        there; for a document that was never saved, a name with its language's ending.
    """
    path = path_of(snapshot.uri).replace("\\", "/")
    # Drive letters have a slash before them in addresses and none in paths.
    path = path.removeprefix("/")
    root = "" if workspace is None else workspace.as_posix().strip("/") + "/"
    if root and path.startswith(root):
        path = path.removeprefix(root)
    else:
        path = path.rsplit("/", 1)[-1]
    if len(path) > MAX_PATH:
        path = path.rsplit("/", 1)[-1][-MAX_PATH:]
    if not path.isprintable():
        return ""
    grammar = grammar_for(snapshot.language)
    if grammar is not None and grammar_for("", path) is None:
        # Notebook cells and new documents have no ending that tells the language.
        stem = path.rsplit(".", 1)[0] or UNTITLED
        path = stem + grammar.ending
    return path if "." in path or grammar is not None else ""


def _comment(tokenizer: Tokenizer, snapshot: Snapshot, path: str) -> tuple[int, ...]:
    grammar = grammar_for(snapshot.language, snapshot.uri)
    if grammar is None or not grammar.comment:
        return ()
    mark = grammar.comment.decode()
    return tuple(tokenizer.encode(f"{mark} {path}\n".encode()).ids)
