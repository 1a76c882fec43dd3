"""The prompt says which file it is of: by markers or as a comment, and nothing else."""

from pathlib import Path

import pytest

from codekv.completion.document import CodeDocuments
from codekv.completion.prompt.file_header import NO_HEADER, file_header, shown_path
from codekv.completion.prompt.layout import first_tokens
from codekv.config import Config
from codekv.structure.parser import Parser
from codekv.testing.model import ByteTokenizer
from codekv.testing.tiny import tiny_pipeline
from codekv.text.snapshot import Snapshot
from codekv.tokens.fim import Fim, NameMarkers, find_fim

ROOT = Path("/home/someone/secret-project")


class Named(ByteTokenizer):
    """A tokenizer of a family with markers for names."""

    fim = Fim(300, 301, 302, (300, 301, 302), NameMarkers(303, 304))


class Inside(ByteTokenizer):
    """The same for a family that puts the path into the prefix."""

    fim = Fim(300, 301, 302, (300, 301, 302), NameMarkers(303, 304, is_inside=True))


def snapshot(uri, language="python"):
    return Snapshot(uri, 0, language, b"x = 1\n")


@pytest.mark.parametrize(
    ("uri", "language", "path"),
    [
        (f"file://{ROOT}/src/a%20b.py", "python", "src/a b.py"),
        ("file:///elsewhere/deep/notes.py", "python", "notes.py"),
        ("untitled:Untitled-1", "rust", "Untitled-1.rs"),
        ("untitled:Untitled-1", "plaintext", ""),
        (f"vscode-notebook-cell:{ROOT}/n.ipynb#W0", "python", "n.py"),
        ("file:///x/Makefile", "makefile", ""),
        ("file:///x/a%0Ab.py", "python", ""),
    ],
)
def test_the_path_inside_the_workspace_is_told_and_nothing_else(uri, language, path):
    assert shown_path(snapshot(uri, language), ROOT) == path
    assert "secret" not in shown_path(snapshot(uri, language), ROOT)
    assert "someone" not in shown_path(snapshot(uri, language), None)


def test_markers_stand_before_the_prefix_where_the_family_has_them():
    header = file_header(Named(), snapshot(f"file://{ROOT}/a.py"), ROOT)
    tokens = first_tokens(Named(), (1, 2), header)
    assert tokens == (303, *b"project\n", 304, *b"a.py\n", 300, 1, 2)


def test_a_family_may_put_the_path_into_the_prefix():
    header = file_header(Inside(), snapshot(f"file://{ROOT}/a.py"), ROOT)
    tokens = first_tokens(Inside(), (1, 2), header)
    assert tokens == (303, *b"project", 304, 300, 1, 2, *b"a.py\n")


def test_other_families_get_a_comment():
    tokenizer = ByteTokenizer()
    header = file_header(tokenizer, snapshot("file:///x/a.go", "go"), None)
    assert bytes(header.inside) == b"// a.go\n"
    assert header.before == ()
    assert file_header(tokenizer, snapshot("file:///x/a.txt", "plaintext"), None) == (
        NO_HEADER
    )


def test_the_table_knows_families_by_their_vocabulary():
    names = {"<|fim_prefix|>": 0, "<|fim_suffix|>": 1, "<|fim_middle|>": 2}
    plain = find_fim(names, None)
    assert plain is not None
    assert plain.names is None
    named = find_fim(names | {"<|repo_name|>": 3, "<|file_sep|>": 4}, None)
    assert named is not None
    assert named.names == NameMarkers(3, 4)


def test_typing_leaves_the_header_and_its_place_as_they_are():
    config = Config()
    pipeline = tiny_pipeline(config)
    pipeline.work_in(ROOT)
    documents = CodeDocuments(ByteTokenizer(), Parser(), 64)
    uri = f"file://{ROOT}/pkg/a.py"
    firsts = set()
    for version in range(4):
        data = b"x = 1\ny = " + b"f" * version
        document = documents.update(Snapshot(uri, version, "python", data))
        firsts.add(pipeline._maker.first_tokens(document.snapshot))
    (first,) = firsts
    assert b"pkg/a.py" in bytes(token for token in first if token < 256)


def test_a_header_that_would_fill_the_window_is_left_out():
    config = Config.model_validate({"kvcache": {"max_length": 128}})
    pipeline = tiny_pipeline(config)
    with_name = pipeline._maker.first_tokens(snapshot("file:///" + "n" * 90 + ".py"))
    assert len(with_name) <= 1
