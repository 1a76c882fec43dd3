import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from bench.targets.against import HttpTarget, http_entrant, read_answer
from bench.traces.trace import Ask, Open
from codekv.config import Config
from codekv.errors import CodekvError, UsageError

URI = "file:///a.py"
TEXT = "def f():\n    ret\n\nx = f()\n"
CURSOR = TEXT.index("ret") + 3

INFILL = {
    "content": "urn 1\n",
    "tokens_evaluated": 40,
    "timings": {
        "prompt_n": 12,
        "prompt_ms": 30.5,
        "predicted_n": 4,
        "predicted_ms": 80.0,
    },
}
OPENAI = {
    "choices": [{"text": "urn 1"}],
    "usage": {
        "prompt_tokens": 40,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 28},
    },
}


@contextmanager
def server(answer, status=200):
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers["Content-Length"])
            asked.append((self.path, json.loads(self.rfile.read(length))))
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_port}", asked
        finally:
            http.shutdown()
            thread.join()


async def answer_of(url):
    target = http_entrant(url, Config()).make()
    await target.start()
    await target.open(Open(URI, "python", TEXT))
    answer = await target.ask(Ask(URI, CURSOR, "type"))
    await target.close()
    return answer


async def test_infill_sends_the_plugin_request():
    with server(INFILL) as (url, asked):
        answer = await answer_of(url)
    path, payload = asked[-1]
    assert path == "/infill"
    assert payload["input_prefix"] == "def f():\n"
    assert payload["prompt"] == "    ret"
    assert payload["input_suffix"] == "\n\nx = f()\n"
    assert payload["cache_prompt"] is True
    assert answer.text == "urn 1"
    assert answer.tokens.computed == 12
    assert answer.tokens.exact == 28
    assert answer.timing.ttft == 30.5
    assert answer.timing.decode == 80.0


async def test_openai_sends_the_same_text_with_markers():
    with server(OPENAI) as (url, asked):
        answer = await answer_of(url + "/v1/completions")
    path, payload = asked[-1]
    assert path == "/v1/completions"
    assert payload["prompt"] == (
        "<|fim_prefix|>def f():\n    ret<|fim_suffix|>\n\nx = f()\n<|fim_middle|>"
    )
    assert payload["temperature"] == 0
    assert answer.text == "urn 1"
    assert answer.tokens.computed == 12


@pytest.mark.parametrize(
    ("answer", "status"), [(INFILL, 500), (b"<html>", 200), ([], 200)]
)
async def test_a_server_that_answers_wrongly_is_one_line(answer, status):
    no_answer = pytest.raises(CodekvError, match="/infill")
    with server(answer, status) as (url, _), no_answer:
        await answer_of(url)


async def test_a_server_that_is_not_there_is_noticed_at_the_start():
    with server(INFILL) as (url, _):
        pass
    with pytest.raises(CodekvError, match="no answer"):
        await HttpTarget(f"{url}/infill", Config()).start()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "127.0.0.1", "http://x/chat"])
def test_other_urls_are_refused(url):
    with pytest.raises(UsageError, match="--against"):
        http_entrant(url, Config())


def test_unknown_costs_are_zero():
    assert read_answer({"content": ""}).text == ""
    assert read_answer({"choices": [{"text": "a"}]}).tokens.context == 0
