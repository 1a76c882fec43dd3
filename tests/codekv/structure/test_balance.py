import pytest
from hypothesis import given
from hypothesis import strategies as st

from codekv.structure.balance import balance
from grammars.registry import grammar_for, grammar_names


@pytest.mark.parametrize(
    ("language", "text", "opened", "extra"),
    [
        ("python", "f('a', (1, [2", "(([", ""),
        ("python", 'x = """a\n(b', '"""', ""),
        ("python", "x = ''", "", ""),
        ("python", "x = 'a\ny = (", "(", ""),
        ("python", "# (\n)", "", ")"),
        ("python", r"'a\'", "'", ""),
        ("python", r"'a\\'", "", ""),
        ("rust", "fn f<'a>(x: &'a str) { let c = '('; ", "{", ""),
        ("rust", 'let a = "x\n(', '"', ""),
        ("javascript", "/* ( */ `a${b", "`{", ""),
        ("javascript", "f(`a${b[`c${d}`]}`, {", "({", ""),
        ("javascript", "`a${{b: '}'}}` + (", "(", ""),
        ("javascript", "`a\\${(`", "", ""),
        ("javascript", "`a\n${(b\n)} (", "`", ""),
        ("python", 'f"a {b", (', "(", ""),
        ("python", "f\"a {b['c']} {{ ( {d", '"{', ""),
        ("python", 'f"a {b["c"]}" + (', "(", ""),
        ("python", 'f"a {b:#x} {(c)}", [', "[", ""),
        ("python", 'f"a {b\n(', "(", ""),
        ("python", 'x = "a {b" (', "(", ""),
        ("rust", 'let a = r#"x " ( "#; [', "[", ""),
        ("cpp", 'auto a = R"x( " ( )" )x"; [', "[", ""),
        ("cpp", 'auto a = R"x( " (', '"', ""),
        ("go", "x := `(\n(", "`", ""),
        ("java", '"""\n(', '"""', ""),
        ("c", "'(' + \"[\" // {", "", ""),
        ("plaintext", 'a "b(" (', "(", ""),
    ],
)
def test_what_is_open_and_what_is_extra(language, text, opened, extra):
    found = balance(grammar_for(language), text.encode())
    assert b"".join(found.opened).decode() == opened
    assert b"".join(found.extra).decode() == extra


def test_crossed_brackets_are_extra():
    found = balance(grammar_for("python"), b"([)]")
    assert found.opened == (b"(",)
    assert found.extra == (b")",)


def test_text_may_begin_inside_a_string():
    python = grammar_for("python")
    assert balance(python, b'a(b""" + (', (b'"""',)).extra == (b'"""',)
    assert balance(python, b'a(b""" + (', (b'"""',)).opened == (b"(",)
    assert balance(python, b"no end (", (b'"',)).extra == ()


@pytest.mark.parametrize("language", grammar_names())
@given(st.text(alphabet="()[]{}\"'`/*#\\\nab", max_size=40))
def test_any_text_can_be_weighed(language, text):
    found = balance(grammar_for(language), text.encode())
    assert len(found.opened) + len(found.extra) <= len(text)


@pytest.mark.parametrize("unit", [b"(", b"'", b'"', b"\\", b'"""', b"/*", b"'a\\"])
def test_repetitive_text_is_weighed_in_linear_time(unit):
    for language in grammar_names():
        balance(grammar_for(language), unit * 20_000)
