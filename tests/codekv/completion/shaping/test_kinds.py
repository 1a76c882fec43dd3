"""Kinds of damage seen on real inputs, and generated relatives of each.

The bar marks the cursor. What a model may write is scripted: it has to come out right
whatever the model is.
"""

import random
from pathlib import Path

import pytest

from bench.quality.holes import HOLES, damage, holes, writings
from codekv.completion.shaping.shape import plan
from codekv.completion.shaping.trim import TrimContext, finish
from codekv.structure.parser import Parser
from codekv.text.snapshot import Snapshot
from grammars.registry import language_id

ROOT = Path(__file__).parents[4]


def offered(source, raw, language, **options):
    before, after = source.split("|", 1)
    data = (before + after).encode()
    tree = Parser().parse(Snapshot("file:///util.x", 0, language, data), None)
    context = TrimContext(tree, plan(tree, len(before.encode())), **options)
    return data, finish(raw.encode(), context)


def applied(source, raw, language, **options):
    data, result = offered(source, raw, language, **options)
    text = result.text.encode()
    if not text:
        return data.decode()
    return (data[: result.start_byte] + text + data[result.end_byte :]).decode()


A1 = 'def q(table, key):\n    return f"SELECT * FROM {table} WHERE id = {|} LIMIT 1"\n'
A2 = 'def refs(elems):\n    return f"  <references>\\n{|}</references>\\n"\n'
A3 = 'def report(items, total):\n    print(f"total: {|} items in {total:.2f} s")\n'
A6 = 'def rule(color):\n    return f"p {{ color: {|}; }}"\n'


@pytest.mark.parametrize("source", [A1, A2, A3, A6])
@pytest.mark.parametrize("ending", ["", "}", "rest", '}"', "half"])
def test_code_in_a_string_is_closed_once(source, ending):
    rest = source.split("|")[1].split("\n")[0]
    ending = {"rest": rest, "half": rest[: len(rest) // 2]}.get(ending, ending)
    expected = source.replace("|", "key")
    assert applied(source, f"key{ending}\n", "python") == expected


@pytest.mark.parametrize(
    ("source", "raw", "expected", "language"),
    [
        ("f(`a ${|} b`);\n", "name} b`);", "f(`a ${name} b`);\n", "javascript"),
        ("f(`a ${|} b`);\n", "name}", "f(`a ${name} b`);\n", "typescript"),
        ("f(`${|}`);\n", "g(x)}`);", "f(`${g(x)}`);\n", "tsx"),
        ("f(`a ${`b ${|}`} c`);\n", "x}`}", "f(`a ${`b ${x}`} c`);\n", "javascript"),
        ("f(`a ${|", "b}`);", "f(`a ${b}`);", "javascript"),
        ('x = f"a {|"\n', 'b}"', 'x = f"a {b}"\n', "python"),
        ('x = f"{a}|"\n', ' {b}"', 'x = f"{a} {b}"\n', "python"),
        ('x = f"a {b[|]} c"\n', "'k']} c\"", "x = f\"a {b['k']} c\"\n", "python"),
        # Text that only looks like code stays text, and is not lost.
        ('f("{|}");\n', 'a}");', 'f("{a}");\n', "rust"),
        ('f("a |; b;");\n', 'c; b;");', 'f("a c; b;");\n', "java"),
        ('p("{|;}");\n', "a", 'p("{a;}");\n', "c"),
    ],
)
def test_strings_stay_whole(source, raw, expected, language):
    assert applied(source, raw + "\n", language) == expected


B1 = "const ok = ready &&\n  | &&\n  !failed;\n"
B2 = "ok = (ready\n      | and\n      not failed)\n"
B3 = (
    "class A {\n    boolean ok(int a, int b) {\n        return a > 0 &&\n"
    "            | &&\n            a != b;\n    }\n}\n"
)
B6 = (
    "#define SWAP(T, a, b) do { \\\n        T tmp = (a); \\\n        | \\\n"
    "        (b) = tmp; \\\n    } while (0)\n"
)
B8 = "total = 1 + \\\n    | + \\\n    3\n"


@pytest.mark.parametrize(
    ("source", "raw", "operand", "language"),
    [
        (B1, "valid &&\n  !failed;\n", "valid", "javascript"),
        (B1, "valid", "valid", "javascript"),
        (B1, "&&\n", "", "javascript"),
        (B1, "!failed &&\n", "", "javascript"),
        # The line above ends without an operator, so that one belongs to the link.
        (B2, "and valid and\n      not failed)\n", "and valid", "python"),
        (B2, "valid\n", "", "python"),
        (B2, "and\n", "", "python"),
        (B3, "b > 0 &&\n            a != b;\n", "b > 0", "java"),
        (B3, "&& b > 0\n", "b > 0", "java"),
        (B6, "(a) = (b); \\\n        (b) = tmp; \\\n", "(a) = (b);", "c"),
        (B6, "\\\n", "", "c"),
        (B8, "2 + \\\n    3\n", "2", "python"),
        (B8, "2\n", "2", "python"),
        ("x = a\n  |.map(f)\n", ".filter(g)\n  .map(f)\n", ".filter(g)", "javascript"),
        ("if (a &&\n    | &&\n    c) {}\n", "b &&\n    c) {\n", "b", "javascript"),
        ("let x = a +\n    | +\n    c;\n", "b +\n    c;\n", "b", "rust"),
        ("x := a +\n\t| +\n\tc\n", "b +\n\tc\n", "b", "go"),
    ],
)
def test_a_missing_link_is_offered_alone_or_not_at_all(source, raw, operand, language):
    assert applied(source, raw, language) == source.replace("|", operand)


@pytest.mark.parametrize(
    ("source", "raw", "expected"),
    [
        # The chain's rest stands on the line, on the next one, or on both.
        ("x = | && b;\n", "a && b;", "x = a && b;\n"),
        ("x = | && b;\n", "a && b && c;", "x = a && b;\n"),
        (
            "x = a && |\n  && second;\n",
            "first && second;",
            "x = a && first\n  && second;\n",
        ),
        ("x = f(|, b, c);\n", "a, b, c);", "x = f(a, b, c);\n"),
        ("x = f(|, b);\n", "a,", "x = f(a, b);\n"),
        ("x = |.call(y);\n", "a.", "x = a.call(y);\n"),
        ("return |;\n", "return a;", "return a;\n"),
        ("x = total_;|\n", "x = total_; y();", "x = total_; y();\n"),
    ],
)
def test_the_rest_is_never_said_twice(source, raw, expected):
    assert applied(source, raw + "\n", "javascript") == expected


JAVA = "class A {\n    void f(int n) {\n        |\n    }\n}\n"


@pytest.mark.parametrize(
    ("raw", "inner"),
    [
        ("for (int i = 0; i < n; i++) {\n", "for (int i = 0; i < n; i++) {\n        }"),
        ("g(n);\n        for (int x : y) {", "g(n);"),
        (
            "for (int x : y) {\n            g(x);",
            "for (int x : y) {\n            g(x);\n        }",
        ),
    ],
)
def test_half_a_block_is_completed_or_cut_back(raw, inner):
    assert applied(JAVA, raw, "java") == JAVA.replace("|", inner)


def test_a_header_whose_block_stands_below_is_left_as_it_is():
    source = "function f(a) {\n  |\n    g(a);\n  }\n}\n"
    assert applied(source, "if (a) {\n", "javascript") == source.replace(
        "|", "if (a) {"
    )


def test_a_name_of_the_file_in_another_languages_comment_is_no_answer():
    for language in ("rust", "c", "javascript", "typescript"):
        assert offered("|\n", "# util.x\n", language)[1].text == ""


def at_second_cursor(line, column, result, other):
    """What VS Code inserts at a second cursor: the text behind its first one.

    `getSecondaryEdits` of its inline completions: as much is replaced there as stands
    behind both cursors alike.
    """
    replaced = line[column : column + result.end_byte - result.start_byte]
    behind = other[column:]
    same = 0
    while same < min(len(replaced), len(behind)) and replaced[same] == behind[same]:
        same += 1
    return other[:column] + result.text + behind[same:]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [("a))", "a))"), ("a)", "a))"), ("a", "a))"), ("a)) + 1", "a)) + 1")],
)
def test_an_answer_repeated_at_a_second_cursor_fits_there(raw, expected):
    line = "print(len())"
    _, result = offered(f"{line[:10]}|{line[10:]}\n{line}\n", raw + "\n", "python")
    assert at_second_cursor(line, 10, result, line) == f"print(len({expected}"


def sources():
    """Files of ours in every language, the longest first."""
    found: dict[str, list[Path]] = {}
    roots = ("tests/languages", "bench/samples", "codekv/completion", "codekv/text")
    for root in roots:
        for path in sorted((ROOT / root).rglob("*")):
            if path.is_file() and (language := language_id(path.name)):
                found.setdefault(language, []).append(path)
    return found


SOURCES = sources()
PLACES = 12
"""Of each kind and language; `codekv eval faults` asks at as many as are wanted."""


@pytest.mark.parametrize("language", sorted(SOURCES))
@pytest.mark.parametrize("kind", HOLES)
def test_no_writing_damages_a_file(language, kind):
    parser, places = Parser(), []
    for path in SOURCES[language]:
        data = path.read_bytes()
        tree = parser.parse(Snapshot(path.name, 0, language, data), None)
        places += [hole for hole in holes(tree) if hole.kind == kind]
    random.Random(7).shuffle(places)
    for cursor in places[:PLACES]:
        tree = parser.parse(Snapshot("u", 0, language, cursor.data), None)
        where = plan(tree, cursor.cursor_byte)
        for name, raw in writings(cursor):
            result = finish(raw, TrimContext(tree, where, is_cut="half" in name))
            if result.text:
                text = result.text.encode()
                found = damage(cursor, result.start_byte, result.end_byte, text)
                assert not found, (
                    name,
                    raw,
                    result,
                    cursor.data[: cursor.cursor_byte][-80:],
                )
