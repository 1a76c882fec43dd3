"""The texts to measure on; shipped, so that every machine measures the same."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

LANGUAGE = "python"
_SUFFIX = ".py.txt"


@dataclass(frozen=True, slots=True)
class LabText:
    """One text; its name tells the package it comes from."""

    name: str
    data: bytes


def samples() -> tuple[LabText, ...]:
    """All texts, ordered so that any few of them come from different packages."""
    folder = files("bench.lab") / "corpus"
    found = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(_SUFFIX)),
        key=lambda entry: entry.name,
    )
    texts = [LabText(f.name.removesuffix(_SUFFIX), f.read_bytes()) for f in found]
    return tuple(texts[::2] + texts[1::2])
