import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp.run import is_loopback, parse_address
from lsp.transport import Framer, FramingError, PipeWriter


@given(st.lists(st.binary(max_size=20), max_size=5), st.lists(st.integers(1, 9)))
def test_bodies_come_out_however_the_stream_is_cut(bodies, cuts):
    stream = b"".join(b"Content-Length: %d\r\n\r\n" % len(b) + b for b in bodies)
    framer, got = Framer(), []
    for cut in [*cuts, len(stream)]:
        got += list(framer.feed(stream[:cut]))
        stream = stream[cut:]
    assert got == bodies


@pytest.mark.parametrize(
    "header",
    [b"", b"Content-Type: x", b"Content-Length: x", b"Content-Length: -1",
     b"Content-Length: 99999999999", b"Content-Length:"],
)  # fmt: skip
def test_a_header_without_a_usable_length_ends_the_stream(header):
    with pytest.raises(FramingError):
        list(Framer().feed(header + b"\r\n\r\n"))


def test_a_message_over_the_limit_ends_the_stream_before_it_is_read():
    with pytest.raises(FramingError):
        list(Framer(10).feed(b"Content-Length: 11\r\n\r\n"))
    assert list(Framer(10).feed(b"Content-Length: 10\r\n\r\n" + b"x" * 10))


def test_a_header_without_an_end_is_not_collected_for_ever():
    with pytest.raises(FramingError):
        list(Framer().feed(b"x" * 20_000))


def test_a_writer_whose_reader_is_slow_blocks_nobody():
    entered, release = threading.Event(), threading.Event()
    written = []

    class Slow:
        def write(self, data):
            entered.set()
            release.wait(5)
            written.append(data)

        def flush(self):
            pass

    writer = PipeWriter(Slow())
    writer.write(b"a")
    writer.write(b"b")
    assert entered.wait(5)
    assert written == []
    release.set()
    writer.close()
    assert written == [b"a", b"b"]


def test_a_writer_whose_reader_is_gone_ends_quietly():
    class Gone:
        def write(self, _data):
            raise BrokenPipeError

        def flush(self):
            pass

    writer = PipeWriter(Gone())
    writer.write(b"a")
    writer.close()


def test_addresses():
    assert parse_address("127.0.0.1:80") == ("127.0.0.1", 80)
    assert parse_address("[::1]:80") == ("::1", 80)
    assert is_loopback("127.3.4.5")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("example.org")
