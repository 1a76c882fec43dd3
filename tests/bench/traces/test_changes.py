"""Changes read from commits and releases: every hunk can be put back."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.traces.changes import (
    Hunk,
    between_releases,
    hunks_of,
    in_order,
    make_change,
    readable,
    trimmed,
)
from bench.traces.commits import commits
from codekv.errors import UsageError

LINES = st.lists(st.sampled_from(["a = 1", "b = a", "", "    c()", "déf", "x" * 5]))


def text_of(lines):
    return "".join(f"{line}\n" for line in lines)


@given(LINES, LINES)
def test_hunks_turn_the_old_text_into_the_new_one(before, after):
    old, new = text_of(before), text_of(after)
    for hunk in sorted(hunks_of("a.py", old, new), key=lambda each: -each.start):
        assert old[hunk.start : hunk.start + len(hunk.old)] == hunk.old
        old = old[: hunk.start] + hunk.new + old[hunk.start + len(hunk.old) :]
    assert old == new


def test_equal_ends_are_left_out_up_to_whole_words():
    hunk = trimmed(Hunk("a.py", 10, "x = counted + 1\n", "x = counter + 1\n"))
    assert (hunk.start, hunk.old, hunk.new) == (14, "counted", "counter")
    same = trimmed(Hunk("a.py", 0, "ab\n", "ab\ncd\n"))
    assert same.old + "cd\n" == same.new or same.new == "cd\n"


def test_a_definition_is_typed_before_its_use():
    use = Hunk("a.py", 0, "", "total = price(3)\n")
    define = Hunk("a.py", 90, "", "def price(count):\n    return count\n")
    other = Hunk("a.py", 40, "", "import json\n")
    assert in_order([use, other, define]) == (other, define, use)


def test_hunks_that_need_each_other_keep_their_order():
    one = Hunk("a.py", 0, "", "def ping():\n    pong()\n")
    two = Hunk("a.py", 9, "", "def pong():\n    ping()\n")
    assert in_order([one, two]) == (one, two)


def test_moved_and_tiny_hunks_are_not_typed():
    body = "def moved():\n    return 'somewhere else'\n"
    old, new = body + "x = 1\n" * 9, "x = 1\n" * 9 + body
    assert make_change("r", "c", [("a.py", old, new)]) is None
    assert make_change("r", "c", [("a.py", "x = 1\n", "x = 12\n")]) is None


@pytest.mark.parametrize("data", [b"\0\n", b"\xff\n", b"x" * 900, b"a" * 200_000])
def test_what_is_no_ordinary_text_is_not_read(data):
    assert readable(data) is None


def git(folder, *words):
    subprocess.run(
        ["git", "-C", folder, "-c", "user.name=A", "-c", "user.email=a@b", *words],
        check=True,
        capture_output=True,
    )


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init", "-q")
    for text in ("x = 1\ny = 2\n", "x = 1\nprice = 12 * x\ny = 2\n"):
        (folder / "shop.py").write_text(text)
        (folder / "notes.txt").write_text(text)
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", "work")
    return folder


def test_commits_give_their_source_files_changes(repository):
    (change,) = commits(repository, 10)
    assert change.repository == "shop"
    assert change.before == {"shop.py": "x = 1\ny = 2\n"}
    assert [hunk.new for hunk in change.hunks] == ["price = 12 * x\n"]


def test_a_repository_cannot_run_programs(repository, tmp_path):
    mark = tmp_path / "ran"
    for key in ("core.fsmonitor", "diff.external", "core.sshCommand", "core.pager"):
        git(repository, "config", key, f"touch {mark}")
    git(repository, "config", "diff.evil.textconv", f"touch {mark}; cat")
    git(repository, "config", "diff.evil.command", f"touch {mark}")
    (repository / ".git" / "info" / "attributes").write_text("*.py diff=evil\n")
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        path = repository / ".git" / "hooks" / hook
        path.write_text(f"#!/bin/sh\ntouch {mark}\n")
        path.chmod(0o755)
    assert len(list(commits(repository, 10))) == 1
    assert not mark.exists()


def test_what_is_no_repository_is_one_clear_line(tmp_path):
    with pytest.raises(UsageError, match="not a git repository"):
        list(commits(tmp_path, 3))


def test_releases_differ_file_by_file(tmp_path):
    for name, text in (("p-1", "a = 1\n"), ("p-2", "a = 1\nanswer = 42 + a\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "p.py").write_text(text)
    (tmp_path / "p-2" / "new.py").write_text("whole_new_file = 1\n")
    (change,) = between_releases(tmp_path / "p-1", tmp_path / "p-2", "p")
    assert change.name == "p-2/p.py"
    assert [hunk.new for hunk in change.hunks] == ["answer = 42 + a\n"]
