import asyncio
import json

import pytest
from click.testing import CliRunner

from codekv.cli import cli
from codekv.commands import evaluation as command
from codekv.completion.api import Completion, Item

SOURCE = "import os\n\n" + "\n\n".join(
    f"def call_{i}(a, b):\n    c = a + b * {i}\n    return os.path.join(c, b)\n"
    for i in range(40)
)


class Author:
    """Knows the file: answers with the line that was taken out."""

    def __init__(self, fails_at: int = 0) -> None:
        self.fails_at = fails_at
        self.asked = 0
        self.closed = False

    async def ready(self) -> None: ...

    async def idle(self) -> None: ...

    def document_changed(self, snapshot) -> None: ...

    async def complete(self, request) -> Completion:
        self.asked += 1
        if self.asked == self.fails_at:
            # What asyncio does on an interrupt. A signal would not do: in a background
            # shell it is ignored.
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        await asyncio.sleep(0)
        cursor, whole = request.cursor_byte, SOURCE.encode()
        removed = len(whole) - len(request.snapshot.data)
        text = whole[cursor : cursor + removed].decode()
        item = Item("c", text, cursor, cursor, -0.1)
        return Completion(items=(item,) if text else ())

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / "a.py").write_text(SOURCE, "utf-8")

    def call(author, *arguments):
        monkeypatch.setattr(command, "_service", lambda *_: author)
        report = tmp_path / "report.json"
        path, out = str(tmp_path / "a.py"), ["--json", str(report)]
        result = CliRunner().invoke(cli, ["eval", *arguments, path, *out])
        return result, json.loads(report.read_text())

    return call


def test_the_author_writes_every_next_line(run) -> None:
    result, report = run(Author(), "next-line", "--limit", "20", "--calibrate")

    assert result.exit_code == 0, result.output
    assert (report["rows"], report["exact_match"], report["parses"]) == (20, 1.0, 1.0)
    assert report["partial"] is False
    assert "min_confidence" in result.output


def test_the_author_makes_no_faults(run) -> None:
    result, report = run(Author(), "faults", "--limit", "60")

    assert result.exit_code == 0, result.output
    assert report["rows"] == 60
    assert len(report["kinds"]) == 6
    assert not any(report["faults"].values()), report["faulty"]


def test_an_interrupt_keeps_what_was_done(run) -> None:
    author = Author(fails_at=8)
    result, report = run(author, "next-line", "--limit", "20")

    assert result.exit_code == 0, result.output
    assert 1 <= report["rows"] <= 8
    assert report["partial"] is True
    assert author.closed


def test_a_report_is_written_now_and_then(run, monkeypatch) -> None:
    monkeypatch.setattr(command, "SAVE_EVERY", 5)
    written = []
    monkeypatch.setattr(command, "_keep", lambda report, _: written.append(report))
    with pytest.raises(FileNotFoundError):
        run(Author(), "next-line", "--limit", "12")

    assert [report["rows"] for report in written] == [5, 10, 12]
