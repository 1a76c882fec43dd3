"""Input that no one means to give: one line or an empty answer, and nothing lost."""

from pathlib import Path

import pytest
import pytest_asyncio

from codekv.cli import run
from codekv.completion.api import Request, Trigger
from codekv.completion.service import Service
from codekv.config import Config, apply
from codekv.text.snapshot import Snapshot

LINE = "def area(radius):\n    return 3.14 * "


def told(capsys) -> str:
    """The one line that a user sees."""
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    lines = captured.err.strip().splitlines()
    assert len(lines) == 1
    return lines[0]


@pytest.mark.parametrize(
    ("name", "data", "place", "word"),
    [
        ("binary.py", b"\x7fELF\0\0", "1:1", "binary"),
        ("latin.py", b"x = '\xe9'\n", "1:1", "UTF-8"),
        ("short.py", b"x = 1\n", "9:1", "past the end"),
        ("short.py", b"x = 1\n", "1:99", "past the end"),
        ("short.py", b"x = 1\n", "0:1", "count from 1"),
    ],
)
def test_unusable_files_and_places_are_one_line(
    tmp_path: Path, capsys, name, data, place, word
) -> None:
    path = tmp_path / name
    path.write_bytes(data)

    assert run(["complete", f"{path}:{place}"]) in {1, 2}
    assert word in told(capsys)


def test_missing_file_and_malformed_place_are_one_line(tmp_path, capsys) -> None:
    assert run(["complete", f"{tmp_path}/none.py:1:1"]) == 2
    assert "none.py" in told(capsys)
    assert run(["complete", "x.py"]) == 2
    assert "FILE:LINE:COLUMN" in told(capsys)


def test_unknown_model_is_one_line(tmp_path, capsys) -> None:
    path = tmp_path / "a.py"
    path.write_text("x = 1\n")
    option = "model.name=no-such-model"

    assert run(["complete", f"{path}:1:1", "--set", option]) == 1
    assert "no-such-model" in told(capsys)


def test_options_that_do_not_exist_or_fit_are_one_line(tmp_path, capsys) -> None:
    path = tmp_path / "a.py"
    path.write_text("x = 1\n")
    for option, word in [
        ("kvcache.max_lenght=1", "max_length"),
        ("kvcache.max_length=abc", "max_length"),
        ("nonsense", "section.key=value"),
    ]:
        assert run(["complete", f"{path}:1:1", "--set", option]) == 2
        assert word in told(capsys)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service():
    values = {"kvcache": {"disk": False}, "completion": {"latency_budget_ms": 500}}
    config, _ = apply(Config(), values, "test")
    made = Service(config)
    await made.ready()
    yield made
    await made.close()


def asked(text: str, cursor: int, name: str = "a.py") -> Request:
    snapshot = Snapshot.from_text(name, 0, "python", text)
    return Request(snapshot, cursor, Trigger.INVOKED)


@pytest.mark.model
@pytest.mark.asyncio(loop_scope="module")
async def test_server_stays_up_whatever_the_document_holds(service) -> None:
    for name, text, reason in [
        ("big.py", "x = 1\n" * 900_000, "too-large"),
        ("line.py", "x" * 1_000_000, "long-line"),
        ("same.py", "a" * 100_000, "long-line"),
    ]:
        service.document_changed(Snapshot.from_text(name, 0, "python", text))
        completion = await service.complete(asked(text, len(text), name))
        assert completion.items == ()
        assert completion.reason == reason

    empty = await service.complete(asked("", 0, "empty.py"))
    assert empty.tokens.context >= 1
    healthy = await service.complete(asked(LINE, len(LINE)))
    assert "radius" in healthy.text


@pytest.mark.model
@pytest.mark.asyncio(loop_scope="module")
async def test_runs_of_one_character_do_not_defeat_the_cache(service) -> None:
    text = "# " + "=" * 8000 + "\n" + "x = 0\n" * 40 + LINE
    first = await service.complete(asked(text, len(text), "run.py"))
    await service.idle()
    more = text + "ra"
    second = await service.complete(asked(more, len(more), "run.py"))

    assert first.tokens.context > 0
    assert second.tokens.computed <= 4
