import io

import pytest

from codekv.testing.wire import frame, length_in, read

BODIES = [b"{}", '{"x": "é🙂"}'.encode(), b'{"x": "\\r\\n\\r\\n"}']


def test_framed_messages_are_read_one_after_the_other():
    stream = io.BytesIO(b"".join(map(frame, BODIES)))
    assert [read(stream) for _ in BODIES] == BODIES
    assert read(stream) == b""


def test_other_headers_are_passed_over_and_case_does_not_matter():
    stream = io.BytesIO(b"Content-Type: x\r\ncontent-LENGTH: 2\r\n\r\n{}")
    assert read(stream) == b"{}"


@pytest.mark.parametrize("headers", [b"", b"a message", b"Content-Length: x\r\n\r\n"])
def test_headers_without_a_length_are_refused(headers):
    with pytest.raises(ValueError, match=r"Content-Length|invalid literal"):
        length_in(headers)
