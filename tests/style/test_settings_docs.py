import json
import re
import types
import typing
from pathlib import Path

import pytest
from pydantic import BaseModel

from codekv.cache.policy import POLICIES
from codekv.config import Config, FimMarkers
from codekv.storage.plain import PLAIN_NAMES

TEXT = (Path(__file__).parents[2] / "docs" / "settings.md").read_text("utf-8")


def sections(model: type[BaseModel], prefix: str = ""):
    """Yield (table, option, field) for every option, nested tables included."""
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from sections(inner, f"{prefix}.{name}".strip("."))
        else:
            yield prefix, name, field


OPTIONS = [*sections(Config), *sections(FimMarkers, "model.fim")]


def rows(table: str) -> dict[str, list[str]]:
    """Cells of one table of the page, by option."""
    heading = re.escape(f"[{table}]")
    match = re.search(rf"^##+ {heading}\n(.*?)(?=^##|\Z)", TEXT, re.M | re.S)
    assert match, f"docs/settings.md has no section [{table}]"
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in match[1].splitlines()
        if line.startswith("| `")
    ]
    return {row[0].strip("`"): row[1:] for row in cells}


def shown(field) -> str:
    if field.is_required():
        return "required"
    if field.default is None:
        return "none"
    default = field.default
    return f"`{json.dumps(list(default) if isinstance(default, tuple) else default)}`"


def choices(annotation) -> set[str]:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return set().union(*map(choices, typing.get_args(annotation)))
    if typing.get_origin(annotation) is typing.Literal:
        return set(typing.get_args(annotation))
    return set()


@pytest.mark.parametrize(
    ("table", "name", "field"), OPTIONS, ids=[f"{t}.{n}" for t, n, _ in OPTIONS]
)
def test_option_is_documented_with_type_default_and_effect(table, name, field):
    row = rows(table).get(name)

    assert row, f"[{table}] {name} is not in docs/settings.md"
    kind, default, effect = row
    assert default == shown(field)
    assert effect
    for choice in choices(field.annotation):
        assert f"`{choice}`" in kind
    for limit in field.metadata:
        for value in (getattr(limit, "ge", None), getattr(limit, "le", None)):
            if value is not None:
                assert re.search(rf"\b{value:g}\b", kind) or str(value) in kind


def test_page_has_no_option_that_does_not_exist():
    tables = {table for table, _, _ in OPTIONS}
    documented = {(table, name) for table in tables for name in rows(table)}

    assert documented == {(table, name) for table, name, _ in OPTIONS}


@pytest.mark.parametrize("name", [*POLICIES, *PLAIN_NAMES])
def test_every_policy_and_codec_is_named(name):
    assert name in TEXT
