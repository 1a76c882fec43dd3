"""The texts to measure on: beginnings of files of the pinned packages.

They are fetched by hash (`bench.traces.fetch`), so that every machine measures the
same text and no other project's file lies in this repository.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.traces.fetch import fetch, pinned

LANGUAGE = "python"

NUM_BYTES = 9000
"""A text's size, to the end of its last line: context and probe take 1,152 tokens."""

TEXTS = {
    "attrs-funcs": "src/attr/_funcs.py",
    "click-parser": "src/click/parser.py",
    "httpx-models": "httpx/_models.py",
    "jinja2-lexer": "src/jinja2/lexer.py",
    "marshmallow-schema": "src/marshmallow/schema.py",
    "sqlite_utils-create_table_parser": "sqlite_utils/create_table_parser.py",
    "attrs-validators": "src/attr/validators.py",
    "click-termui_impl": "src/click/_termui_impl.py",
    "httpx-urls": "httpx/_urls.py",
    "jinja2-loaders": "src/jinja2/loaders.py",
    "marshmallow-validate": "src/marshmallow/validate.py",
    "sqlite_utils-utils": "sqlite_utils/utils.py",
}
"""Files by the text's name, which begins with its package. Packages take turns, so that
any few texts come from different ones."""


@dataclass(frozen=True, slots=True)
class LabText:
    """One text; its name tells the package it comes from."""

    name: str
    data: bytes


def samples() -> tuple[LabText, ...]:
    """Fetch the pinned packages where they are missing and read all texts.

    Raises:
        DownloadError: A package did not arrive or is not the pinned one.
    """
    packages = {source.name.replace("-", "_"): source for source in pinned()}
    texts = []
    for name, path in TEXTS.items():
        package = packages[name.partition("-")[0]]
        texts.append(LabText(name, beginning((fetch(package) / path).read_bytes())))
    return tuple(texts)


def beginning(data: bytes) -> bytes:
    """Cut a file after the line in which byte `NUM_BYTES` lies."""
    end = data.find(b"\n", NUM_BYTES)
    return data if end < 0 else data[: end + 1]
