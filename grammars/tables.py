"""Reads what the folders say of languages: `language.toml` above `blocks/*.toml`.

A language says `block` or `like`; what it does not say itself is taken from there.
"""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent


@functools.cache
def language_tables() -> dict[str, dict[str, Any]]:
    """What each language says, with what it takes over from others and its style."""
    told = {
        path.parent.name: tomllib.loads(path.read_text("utf-8"))
        for path in sorted(_FOLDER.glob("*/language.toml"))
    }
    return {name: _resolved(name, told) for name in told}


def _resolved(name: str, told: dict[str, dict[str, Any]]) -> dict[str, Any]:
    table = told[name]
    if "like" in table:
        base = _resolved(table["like"], told)
    else:
        base = style_table(table["block"]) | {"kin": name}
    return base | {"queries": name} | table


@functools.cache
def style_table(name: str) -> dict[str, Any]:
    """What all languages of a block style share."""
    text = (_FOLDER / "blocks" / f"{name}.toml").read_text("utf-8")
    return tomllib.loads(text) | {"block": name}


@functools.cache
def style_signs() -> dict[str, re.Pattern[bytes]]:
    """Patterns of lines that show a block style, for styles that lines do show."""
    found = {}
    for path in sorted((_FOLDER / "blocks").glob("*.toml")):
        if sign := style_table(path.stem).get("sign"):
            found[path.stem] = re.compile(b".*?(?:" + sign.encode() + b")")
    return found


def query_path(name: str, kind: str) -> Path:
    """The file of a language's query: its own, or the one it shares (`queries`)."""
    folder = _FOLDER / str(language_tables()[name]["queries"])
    return folder / f"{kind}.scm"
