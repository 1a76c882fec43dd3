from pathlib import Path

import pytest

from codekv.structure.outline import imports, outlines
from codekv.structure.parser import Parser
from codekv.text.snapshot import Snapshot
from grammars.registry import grammar_for, grammar_names, language_id

SAMPLES = Path(__file__).parents[2] / "languages"


def tree_of(source: str, language: str = "python"):
    return Parser().parse(Snapshot("u", 0, language, source.encode()), None)


def test_a_class_shows_its_methods_and_a_function_its_header() -> None:
    source = '''
class Shop(Base):
    """A shop."""

    def price(self, item: Item) -> float:
        def inner():
            pass
        return 1.0

def total(
    cart: list[str],
    rate=1.0,
) -> float:
    return 0.0
'''
    assert [(o.name, o.text.decode()) for o in outlines(tree_of(source))] == [
        (
            b"Shop",
            "class Shop(Base):\n    def price(self, item: Item) -> float: ...",
        ),
        (b"total", "def total( cart: list[str], rate=1.0, ) -> float: ..."),
    ]


def test_a_class_without_methods_shows_its_first_lines() -> None:
    (outline,) = outlines(tree_of("class Point:\n    x: int\n\n    y: int\n"))

    assert outline.text == b"class Point:\n    x: int\n    y: int"


@pytest.mark.parametrize(
    ("language", "source", "names"),
    [
        ("python", "from a import b, c as d\nimport e\n", [b"b", b"c"]),
        ("javascript", "import D, { a, b as c } from './x';\n", [b"D", b"a", b"b"]),
        ("typescript", "import { type A } from './x';\n", [b"A"]),
        ("rust", "use a::{b, c::D};\nuse e::f;\n", [b"b", b"D", b"f"]),
        ("plaintext", "from a import b\n", []),
    ],
)
def test_names_that_come_from_elsewhere(language, source, names) -> None:
    assert list(imports(tree_of(source, language))) == names


@pytest.mark.parametrize(
    "name", [name for name in grammar_names() if grammar_for(name).has_imports]
)
def test_every_language_has_outlines_and_imports(name) -> None:
    (path,) = (SAMPLES / name).glob("sample.*")
    snapshot = Snapshot(path.name, 0, language_id(path.name), path.read_bytes())
    tree = Parser().parse(snapshot, None)

    assert outlines(tree)
    assert all(outline.name.strip(b"*&( \n") for outline in outlines(tree))
    assert imports(tree)
