"""What a perfect model would say comes out as it went in; small slips are mended."""

from pathlib import Path

import pytest

from codekv.completion.shaping.shape import plan
from codekv.completion.shaping.trim import TrimContext, finish
from codekv.structure.parser import Parser
from codekv.text.snapshot import Snapshot

SAMPLES = Path(__file__).parents[3] / "languages"
SOURCES = Path(__file__).parents[4] / "codekv"
PUNCTUATION = b")]}>\"'`,;: \t\n"


def places(lines, step):
    for number in range(1, len(lines) - 1):
        line = lines[number]
        indent = len(line) - len(line.lstrip())
        if line.strip(PUNCTUATION.decode()):
            yield from (
                (number, c) for c in {0, indent, *range(indent, len(line), step)}
            )


def outcomes(language, text, step):
    lines = text.split("\n")
    parser = Parser()
    for number, column in places(lines, step):
        before = "\n".join([*lines[:number], lines[number][:column]])
        truth = lines[number][column:].rstrip()
        below = "\n".join(lines[number + 1 :])
        data = f"{before}\n{below}".encode()
        tree = parser.parse(Snapshot("u", 0, language, data), None)
        where = plan(tree, len(before.encode()))
        raw = truth + "\n" + "\n".join(lines[number + 1 : number + 6])
        result = finish(raw.encode(), TrimContext(tree, where))
        if truth.strip(PUNCTUATION.decode()):
            yield result.text == truth, (number, column, truth, result)


@pytest.mark.parametrize(
    "language", sorted(path.parent.name for path in SAMPLES.glob("*/sample.*"))
)
def test_the_right_line_survives_in_every_language(language):
    (sample,) = (SAMPLES / language).glob("sample.*")
    found = list(outcomes(language, sample.read_text("utf-8"), 5))
    wrong = [what for is_same, what in found if not is_same]
    assert len(wrong) <= 0.03 * len(found), wrong


def test_the_right_line_survives_in_real_python():
    files = sorted(SOURCES.glob("text/*.py")) + sorted(SOURCES.glob("structure/*.py"))
    found = []
    for path in files:
        text = "\n".join(path.read_text("utf-8").split("\n")[:150])
        found += outcomes("python", text, 47)
    wrong = [what for is_same, what in found if not is_same]
    assert len(found) > 500
    assert len(wrong) <= 0.005 * len(found), wrong


def statements(tree):
    """Lines that begin a statement outside of brackets and strings."""
    waiting = [tree.tree.root_node]
    while waiting:
        node = waiting.pop()
        if node.type in ("module", "block"):
            yield from (child.start_point[0] for child in node.named_children)
        waiting += node.named_children


def slips(line):
    """(typed before the cursor, right of the cursor, decoded, what must come out)."""
    text = line.lstrip()
    indent = line[: len(line) - len(text)]
    yield "", "", f"{indent} {text}", line
    if indent and not len(indent) % 4:
        yield "", "", "\t" * (len(indent) // 4) + text, line
    head, space, tail = text.partition(" ")
    if tail:
        yield f"{indent}{head} ", "", f" {tail}", tail
    if text.endswith((")", "]")) and text.count("(") + text.count("[") == 1:
        at = max(text.find("("), text.find("[")) + 1
        inner = text[at:-1]
        yield indent + text[:at], text[-1], inner, inner + text[-1]
        yield indent + text[:at], text[-1], text[at:] + text[-1], inner + text[-1]


@pytest.mark.parametrize("name", ["text/edit.py", "structure/anchor.py"])
def test_slips_of_indentation_space_and_brackets_are_mended(name):
    text = (SOURCES / name).read_text("utf-8")
    lines = text.split("\n")
    parser, seen = Parser(), 0
    tree = parser.parse(Snapshot("u", 0, "python", text.encode()), None)
    for number in sorted(set(statements(tree))):
        line, below = lines[number], "\n".join(lines[number + 1 :])
        if line.lstrip().startswith(("#", '"', "'", "@")):
            continue
        for typed, right, decoded, expected in slips(line):
            before = "\n".join([*lines[:number], typed])
            data = f"{before}{right}\n{below}".encode()
            broken = parser.parse(Snapshot("u", 0, "python", data), tree)
            where = plan(broken, len(before.encode()))
            result = finish(
                f"{decoded}\n{below[:200]}".encode(), TrimContext(broken, where)
            )
            if expected.strip(PUNCTUATION.decode()):
                assert result.text == expected, (number, typed, decoded)
                seen += 1
    assert seen > 40
