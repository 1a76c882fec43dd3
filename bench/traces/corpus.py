"""The files a benchmark edits, and a rough outline of each.

The outline goes by indentation and header words, not by a parser: the benchmark must
not share the cutting rule of the program it measures.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from codekv.errors import UsageError
from grammars.registry import language_id

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from random import Random

SAMPLES = Path(__file__).parents[1] / "samples"
"""Real files that are shipped with the benchmark."""

LANGUAGES = {
    ".py": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".jsx": "javascriptreact",
    ".ts": "typescript",
    ".tsx": "typescriptreact",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    ".c": "c",
    ".h": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".hpp": "cpp",
}
SKIPPED_FOLDERS = frozenset(
    {"node_modules", "build", "dist", "out", "target", "vendor", "__pycache__", "venv"}
)
PROJECT_MARKS = (
    ".git",
    "LICENSE*",
    "PKG-INFO",
    "pyproject.toml",
    "setup.py",
    "package.json",
    "Cargo.toml",
    "go.mod",
    "pom.xml",
    "build.gradle*",
    "CMakeLists.txt",
)
"""What lies at the top of a repository or of an unpacked package."""

# Bytes: smaller files give no context, larger ones are mostly generated.
SMALLEST, LARGEST = 2_000, 120_000
# Longer lines are data.
LONGEST_LINE = 400

_PYTHON_HEADER = re.compile(rb"[ \t]*(?:async[ \t]+)?def[ \t]+\w+")
_BRACE_HEADER = re.compile(
    rb"[ \t]*(?!(?:if|for|while|switch|else|catch|do|return|try|match)\b)"
    rb"[\w#][^;]*\(.*\{[ \t]*$"
)
_COMMENTS = {"python": rb"[ \t]*#"}
_BRACE_COMMENT = rb"[ \t]*(?://|/\*|\*)"


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its line end."""

    start: int
    end: int
    text: bytes

    @property
    def indent(self) -> int:
        """Bytes of leading blanks."""
        return len(self.text) - len(self.text.lstrip())

    @property
    def is_blank(self) -> bool:
        """Whether nothing but blanks stands there."""
        return not self.text.strip()


@dataclass(frozen=True, slots=True)
class Function:
    """Lines [first, last] of a function, header included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file: its bytes with line feeds, its lines and its outermost functions.

    `repository` names the package that it comes from.
    """

    uri: str
    name: str
    language: str
    data: bytes
    lines: tuple[Line, ...]
    functions: tuple[Function, ...]
    repository: str = ""

    def is_code(self, index: int) -> bool:
        """Whether a line has code on it, going by its first character."""
        line = self.lines[index]
        return not (line.is_blank or self.is_comment(index))

    def is_comment(self, index: int) -> bool:
        """Whether a line is nothing but a comment."""
        pattern = _COMMENTS.get(self.language, _BRACE_COMMENT)
        return re.match(pattern, self.lines[index].text) is not None


def make_file(
    uri: str, name: str, language: str, data: bytes, repository: str = ""
) -> SourceFile:
    """Cut bytes into lines and functions."""
    plain = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines, start = [], 0
    for text in plain.split(b"\n"):
        lines.append(Line(start, start + len(text), text))
        start += len(text) + 1
    functions = _functions(lines, language)
    return SourceFile(uri, name, language, plain, tuple(lines), functions, repository)


def load(
    root: Path, languages: Collection[str] | None = None
) -> tuple[SourceFile, ...]:
    """Read every usable source file under a folder, in a fixed order.

    Binary, generated-looking, tiny and huge files are left out.

    Args:
        root: A folder, or one file.
        languages: Read the files of these, by the ids that their names stand for;
            else of those that traces can be made of.

    Raises:
        UsageError: There is no such folder, or no usable file in it.
    """
    if not root.exists():
        raise UsageError(
            f"{root}: no such file or folder; name a folder of source code"
        )
    paths = [root] if root.is_file() else sorted(root.rglob("*"))
    base = root.parent if root.is_file() else root
    # A project's own folders are parts of it, whatever lies in them.
    folders = () if _is_project(base) else base.iterdir()
    projects = frozenset(f.name for f in folders if f.is_dir() and _is_project(f))
    files = [
        file
        for path in paths
        if (file := _read(path, base, projects, languages)) is not None
    ]
    if not files:
        known = " ".join(sorted(LANGUAGES))
        raise UsageError(
            f"{root}: no source file of {SMALLEST} to {LARGEST} bytes; known: {known}"
        )
    return tuple(files)


def by_repository(
    files: Iterable[SourceFile],
) -> dict[str, tuple[SourceFile, ...]]:
    """Files by the package they come from, in order of first appearance."""
    groups: dict[str, list[SourceFile]] = defaultdict(list)
    for file in files:
        groups[file.repository].append(file)
    return {name: tuple(group) for name, group in groups.items()}


def sample(
    files: tuple[SourceFile, ...], limit: int, rng: Random
) -> tuple[SourceFile, ...]:
    """Choose at most `limit` files, as many from each repository as from the others.

    Within one, larger files are chosen more often (they have more to edit).
    """
    keyed = [(rng.random() ** (1.0 / len(file.data)), file) for file in files]
    keyed.sort(key=lambda pair: (-pair[0], pair[1].name))
    turns = zip_longest(*by_repository(file for _, file in keyed).values())
    dealt = [file for file in chain.from_iterable(turns) if file is not None]
    return tuple(dealt[:limit])


def _is_project(folder: Path) -> bool:
    return any(next(folder.glob(mark), None) for mark in PROJECT_MARKS)


def _repository(path: Path, base: Path, projects: frozenset[str]) -> str:
    """The folder under the root that is a project of its own, or the root."""
    top = path.relative_to(base).parts[0]
    return top if top in projects else base.name


def _read(
    path: Path,
    base: Path,
    projects: frozenset[str],
    languages: Collection[str] | None,
) -> SourceFile | None:
    language = LANGUAGES.get(path.suffix.lower())
    if languages is not None:
        language = language_id(path.name)
        language = language if language in languages else None
    if language is None or not path.is_file():
        return None
    parts = path.relative_to(base).parts
    if any(part in SKIPPED_FOLDERS or part.startswith(".") for part in parts):
        return None
    if not SMALLEST <= path.stat().st_size <= LARGEST:
        return None
    data = path.read_bytes()
    try:
        data.decode()
    except UnicodeDecodeError:
        return None
    if b"\0" in data or max(map(len, data.split(b"\n"))) > LONGEST_LINE:
        return None
    name = "/".join(parts)
    # The uri must not depend on where the folder lies, or digests would.
    uri = f"file:///bench/{base.name}/{name}"
    repository = _repository(path, base, projects)
    return make_file(uri, name, language, data, repository)


def _functions(lines: list[Line], language: str) -> tuple[Function, ...]:
    header = _PYTHON_HEADER if language == "python" else _BRACE_HEADER
    functions: list[Function] = []
    index = 0
    while index < len(lines):
        if header.match(lines[index].text):
            last = _body_end(lines, index, closed=language != "python")
            if last > index:
                functions.append(Function(index, last))
                index = last
        index += 1
    return tuple(functions)


def _body_end(lines: list[Line], first: int, *, closed: bool) -> int:
    """The last line of the block whose header is `first`, by indentation."""
    indent, last = lines[first].indent, first
    for index in range(first + 1, len(lines)):
        line = lines[index]
        if line.is_blank:
            continue
        if line.indent > indent:
            last = index
            continue
        # A header over several lines closes with its parenthesis at its own indent.
        if line.indent == indent and line.text.lstrip().startswith(b")"):
            last = index
            continue
        if closed and line.indent == indent and line.text.lstrip().startswith(b"}"):
            last = index
        break
    return last
