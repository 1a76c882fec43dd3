import http.client
import json
import statistics
import time

import pytest

from codekv.completion.service import Service
from codekv.config import Config
from codekv.endpoint.gate import MAX_BODY_BYTES
from codekv.testing.service import ScriptedAnswer, ScriptedService, ServiceScript
from codekv.testing.tiny import load_tiny


def scripted(*answers, **options):
    answers = answers or (ScriptedAnswer("pass"),)
    return ScriptedService(ServiceScript(answers, **options), Config())


def test_a_completion_in_the_shape_of_the_api(serve):
    caller = serve(scripted(ScriptedAnswer("a, b)")))
    status, body = caller.post("/v1/completions", {"prompt": "f(", "max_tokens": 9})
    assert status == 200
    assert body["object"] == "text_completion"
    assert [c["text"] for c in body["choices"]] == ["a, b)"]
    assert body["usage"]["prompt_tokens"] == 10
    assert body["usage"]["prompt_tokens_details"]["cached_tokens"] == 8


def test_text_behind_the_cursor_is_never_written_again(serve):
    caller = serve(scripted(ScriptedAnswer("a, b)", span="tail")))
    _, body = caller.post("/v1/completions", {"prompt": "f(", "suffix": ")\nx = 1\n"})
    assert body["choices"][0]["text"] == "a, b"


def test_an_answer_that_would_replace_other_text_is_withheld(serve):
    caller = serve(scripted(ScriptedAnswer("a, b)", span="tail")))
    _, body = caller.post("/v1/completions", {"prompt": "f(", "suffix": "zz\n"})
    assert body["choices"][0]["text"] == ""


def test_a_stream_ends_as_the_api_says(serve):
    caller = serve(scripted(ScriptedAnswer("pass")))
    question = {"prompt": "def f():\n    ", "stream": True}
    status, data = caller.send("POST", "/v1/completions", question)
    events = data.decode().split("\n\n")
    assert status == 200
    assert json.loads(events[0].removeprefix("data: "))["choices"][0]["text"] == "pass"
    assert events[1] == "data: [DONE]"


def test_several_answers_and_stop_texts(serve):
    caller = serve(scripted(ScriptedAnswer("x\ny", num_items=3)))
    question = {"prompt": "a = ", "n": 3, "stop": ["\n"]}
    _, body = caller.post("/v1/completions", question)
    assert [c["text"] for c in body["choices"]] == ["x", "x", "x"]


# The body that llama.vim 2025-05 sends, its text replaced.
LLAMA_VIM = {
    "input_prefix": "import os\n\n\ndef home():\n",
    "input_suffix": "\n\n",
    "input_extra": [{"filename": "b.py", "text": "x = 1", "time": [1, 2]}],
    "prompt": "    return os.",
    "n_predict": 128,
    "n_indent": 4,
    "top_k": 40,
    "top_p": 0.99,
    "stream": False,
    "samplers": ["top_k", "top_p", "infill"],
    "cache_prompt": True,
    "t_max_prompt_ms": 500,
    "t_max_predict_ms": 1000,
    "response_fields": [
        "content",
        "timings/prompt_n",
        "timings/prompt_ms",
        "timings/prompt_per_second",
        "timings/predicted_n",
        "timings/predicted_ms",
        "timings/predicted_per_second",
        "truncated",
        "tokens_cached",
    ],
}


def test_what_llama_vim_asks_is_answered_field_by_field(serve):
    caller = serve(scripted(ScriptedAnswer("path")))
    status, body = caller.post("/infill", LLAMA_VIM, Authorization="Bearer  ")
    assert status == 200
    assert set(body) == set(LLAMA_VIM["response_fields"])
    assert body["content"] == "path"
    assert body["timings/prompt_n"] == 2


def test_a_request_that_only_warms_costs_nothing(serve):
    service = scripted(ScriptedAnswer("path"))
    caller = serve(service)
    _, body = caller.post("/infill", {**LLAMA_VIM, "n_predict": 0})
    assert body["content"] == ""
    assert "requests" not in service.counts


def test_a_raw_prompt_of_llama_server_is_answered(serve):
    caller = serve(scripted(ScriptedAnswer("pass")))
    prompt = "<|fim_prefix|>def f():\n    <|fim_suffix|>\n<|fim_middle|>"
    _, body = caller.post("/completion", {"prompt": prompt, "n_predict": 32})
    assert body["content"] == "pass"
    assert body["stop"] is True


def test_models_and_health(serve):
    caller = serve(scripted())
    status, data = caller.send("GET", "/v1/models")
    assert (status, json.loads(data)["data"][0]["id"]) == (200, "scripted")
    assert caller.send("GET", "/health")[0] == 200


def test_a_web_page_and_a_stranger_get_nothing(serve):
    service = scripted(ScriptedAnswer("x"))
    caller = serve(service)
    question = {"prompt": "a"}
    page = {"Origin": "https://evil.example"}
    assert caller.send("POST", "/v1/completions", question, page)[0] == 403
    named = {"Host": "evil.example"}
    assert caller.send("POST", "/v1/completions", question, named)[0] == 403
    simple = {"Content-Type": "text/plain"}
    assert caller.send("POST", "/v1/completions", question, simple)[0] == 415
    # A browser asks first whether it may send JSON; nobody says yes.
    assert caller.send("OPTIONS", "/v1/completions")[0] == 405
    assert "requests" not in service.counts


def test_a_token_opens_the_door(serve):
    caller = serve(scripted(ScriptedAnswer("x")), token="secret")
    question = {"prompt": "a"}
    assert caller.post("/v1/completions", question)[0] == 401
    right = {"Authorization": "Bearer secret"}
    assert caller.post("/v1/completions", question, **right)[0] == 200


@pytest.mark.parametrize(
    ("raw", "status"),
    [(b"{", 400), (b"[]", 400), (b'{"prompt": 3}', 400), (b"[" * 100_000, 400)],
)
def test_nonsense_is_one_line_and_the_server_stays(serve, raw, status):
    caller = serve(scripted(ScriptedAnswer("x")))
    got, data = caller.send("POST", "/v1/completions", raw)
    assert got == status
    assert "\n" not in json.loads(data)["error"]["message"]
    assert caller.post("/v1/completions", {"prompt": "a"})[0] == 200


def test_a_body_without_an_end_is_cut_off(serve):
    caller = serve(scripted(ScriptedAnswer("x")))
    line = http.client.HTTPConnection("127.0.0.1", caller.port, timeout=60)
    line.putrequest("POST", "/v1/completions")
    line.putheader("Content-Type", "application/json")
    line.putheader("Transfer-Encoding", "chunked")
    line.endheaders()
    piece = b"x" * (1 << 20)
    for _ in range((MAX_BODY_BYTES >> 20) + 1):
        line.send(b"%x\r\n" % len(piece) + piece + b"\r\n")
    assert line.getresponse().status == 413
    line.close()


def test_who_hangs_up_ends_the_work(serve):
    service = scripted(ScriptedAnswer("x", delay_ms=60_000), ScriptedAnswer("y"))
    caller = serve(service)
    line = http.client.HTTPConnection("127.0.0.1", caller.port, timeout=60)
    headers = {"Content-Type": "application/json"}
    line.request("POST", "/v1/completions", b'{"prompt": "a"}', headers)
    wait_until(lambda: service.counts.get("generations"))
    line.close()
    wait_until(lambda: service.counts.get("cancelled"))


def wait_until(check, limit=30.0):
    end = time.monotonic() + limit
    while not check():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_keystroke_costs_what_it_costs_in_an_editor(serve, monkeypatch):
    """Typing through a moving window, as a client of an HTTP API shows it."""
    monkeypatch.setattr("codekv.completion.load.load_pipeline", load_tiny)
    config = Config.model_validate(
        {"kvcache": {"max_length": 600}, "completion": {"max_tokens": 4}}
    )
    caller = serve(Service(config), config=config)
    lines = [f"v{i} = g({i})" for i in range(60)]
    typed = "total = sum(v1)"
    counts = []
    for number in range(len(typed)):
        above = "\n".join(lines[20 + number // 8 :])
        prompt = f"{above}\n{typed[: number + 1]}"
        question = {"prompt": prompt, "suffix": "\nlast = 1\n", "path": "a.py"}
        _, body = caller.post("/v1/completions", question)
        usage = body["usage"]
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        counts.append(usage["prompt_tokens"] - cached)
    assert statistics.median(counts[2:]) <= 2
