import logging

import pytest

from codekv.config import Config, PrivacyConfig, ServerConfig
from codekv.errors import ModelError
from lsp.log import RedactingFormatter, configure_logging

TEXT = "secret text"


def record(name, message, *args, error=None):
    info = (type(error), error, error.__traceback__) if error else None
    return logging.LogRecord(name, logging.ERROR, "f", 1, message, args, info)


def raised(error):
    def fail():
        raise error

    with pytest.raises(type(error)) as caught:
        fail()
    return caught.value


@pytest.mark.parametrize("name", ["pygls.protocol", "cattrs", "asyncio"])
def test_what_libraries_quote_is_left_out(name):
    line = RedactingFormatter().format(record(name, "failed: %s", TEXT))
    assert "failed" in line
    assert TEXT not in line


def test_our_own_messages_are_whole():
    line = RedactingFormatter().format(record("lsp.host", "took %s", 3))
    assert line.endswith("took 3")


def test_exceptions_are_places_and_kinds():
    error = raised(ValueError(TEXT))
    entry = record("lsp.host", "no", error=error)
    line = RedactingFormatter().format(entry)
    assert "ValueError" in line
    assert "test_log.py" in line
    assert TEXT not in line
    assert entry.exc_text is None


def test_our_own_errors_say_what_they_are_about():
    error = raised(ModelError("no such model: m"))
    line = RedactingFormatter().format(record("lsp.host", "no", error=error))
    assert "no such model: m" in line


def test_everything_is_shown_when_the_user_wants_it():
    error = raised(ValueError(TEXT))
    line = RedactingFormatter(shows_text=True).format(
        record("pygls", "x %s", "y", error=error)
    )
    assert "x y" in line
    assert TEXT in line


@pytest.fixture
def logging_state():
    root = logging.getLogger()
    names = ("", "codekv", "lsp", "pygls", "asyncio", "lsprotocol", "cattrs")
    levels = {name: logging.getLogger(name).level for name in names}
    yield root
    for handler in [h for h in root.handlers if h.get_name() == "codekv-log"]:
        root.removeHandler(handler)
        handler.close()
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def test_configuring_again_replaces_the_handlers(logging_state, tmp_path):
    path = tmp_path / "log.txt"
    server = ServerConfig(log_level="info", log_file=str(path))
    config = Config(server=server, privacy=PrivacyConfig())
    before = len(logging_state.handlers)
    configure_logging(config)
    configure_logging(config)
    assert len(logging_state.handlers) == before + 2
    logging.getLogger("lsp.x").info("hello")
    logging.getLogger("pygls.x").info("hidden")
    assert "hello" in path.read_text()
    assert "hidden" not in path.read_text()


def test_a_log_file_that_cannot_be_opened_is_no_disaster(logging_state, tmp_path):
    server = ServerConfig(log_file=str(tmp_path / "no" / "log.txt"))
    configure_logging(Config(server=server))
    assert logging_state.handlers
