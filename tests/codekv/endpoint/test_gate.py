import pytest

from codekv.endpoint.gate import body_refusal, is_this_machine, refusal

HERE = {"host": "127.0.0.1:8012"}


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:80", "127.9.9.9", "[::1]:80", "::1"]
)
def test_names_of_this_machine(host):
    assert is_this_machine(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
    ],
)
def test_names_of_others(host):
    assert not is_this_machine(host)
    assert refusal({"host": host}, None).status == 403


def test_a_web_page_is_refused_even_with_a_token():
    page = {**HERE, "origin": "http://localhost:3000", "authorization": "Bearer t"}
    assert refusal(page, None).status == 403
    assert refusal(page, "t").status == 403


def test_a_token_is_asked_for_where_there_is_one():
    assert refusal(HERE, "secret").status == 401
    assert refusal({**HERE, "authorization": "Bearer wrong"}, "secret").status == 401
    assert refusal({**HERE, "authorization": "Basic secret"}, "secret").status == 401
    assert refusal({"host": "box", "authorization": "Bearer secret"}, "secret") is None


def test_without_a_token_any_authorization_passes():
    assert refusal({**HERE, "authorization": "Bearer  "}, None) is None


def test_a_body_has_to_be_json_of_bounded_size():
    assert body_refusal({"content-type": "text/plain"}).status == 415
    assert body_refusal({}).status == 415
    json = {"content-type": "application/json; charset=utf-8"}
    assert body_refusal(json) is None
    assert body_refusal({**json, "content-length": str(1 << 30)}).status == 413
