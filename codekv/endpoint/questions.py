"""Read the bodies of three completion APIs as text before and after a cursor.

`/v1/completions` (OpenAI's legacy API, which vLLM, Ollama and most editor plugins
speak): `prompt` with an optional `suffix`, or one raw fill-in-the-middle prompt.
`/infill` and `/completion` (llama-server): `input_prefix`, `prompt` and
`input_suffix`, or one raw prompt. Values only: no service, no sockets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from codekv.errors import UsageError
from codekv.tokens.fim import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_CANDIDATES = 8
"""More answers to one question than any menu shows are not worth their decoding."""

_FILE = re.compile(
    r"(?:<\|repo_name\|>[^\n]*\n)?<\|file_sep\|>(?P<path>[^\n]*)\n\Z", re.DOTALL
)
"""Qwen2.5-Coder's header: `<|repo_name|>NAME`, `<|file_sep|>PATH`, a line each."""

_LANGUAGE = re.compile(
    r"\A\W{0,8}language:[ \t]*(?P<name>[\w+#-]{1,30})", re.IGNORECASE
)
"""The first line that Neovim's minuet writes above a text: `# language: python`."""


@dataclass(frozen=True, slots=True)
class HttpQuestion:
    r"""What one request asks.

    Attributes:
        before: Text before the cursor, line ends as `\n`.
        after: Text behind it.
        path: The file's path where the request tells it, else empty.
        language: A language id where the request tells it, else empty.
        max_tokens: The client's limit, or None for the configured one.
        stop: Texts that end an answer.
        count: How many different answers are wanted.
        stream: Whether the answer is wanted as server-sent events.
    """

    before: str
    after: str = ""
    path: str = ""
    language: str = ""
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    count: int = 1
    stream: bool = False


def completions_question(body: Mapping[str, Any]) -> HttpQuestion:
    """Read a body of `/v1/completions`.

    Raises:
        UsageError: A value is missing or of a kind that cannot be answered.
    """
    prompt = _one_text(body.get("prompt"), "prompt")
    question = _common(body, prompt, "max_tokens")
    if body.get("suffix"):
        return replace(question, after=_plain(_text(body, "suffix")))
    return _from_raw(question)


def infill_question(body: Mapping[str, Any]) -> HttpQuestion:
    """Read a body of `/infill`: `prompt` is what stands between prefix and cursor.

    Raises:
        UsageError: As `completions_question`.
    """
    prompt = body.get("prompt")
    middle = _one_text(prompt, "prompt") if prompt else ""
    before = _text(body, "input_prefix") + middle
    question = _common(body, before, "n_predict")
    return replace(question, after=_plain(_text(body, "input_suffix")))


def raw_question(body: Mapping[str, Any]) -> HttpQuestion:
    """Read a body of llama-server's `/completion`: one raw prompt.

    Raises:
        UsageError: As `completions_question`.
    """
    prompt = _one_text(body.get("prompt"), "prompt")
    return _from_raw(_common(body, prompt, "n_predict"))


def _common(body: Mapping[str, Any], before: str, limit: str) -> HttpQuestion:
    stop = body.get("stop") or ()
    stop = (stop,) if isinstance(stop, str) else stop
    if not isinstance(stop, list | tuple) or not all(isinstance(s, str) for s in stop):
        raise UsageError("stop: expected a text or a list of texts")
    tokens = body.get(limit)
    if tokens is not None and (not isinstance(tokens, int) or isinstance(tokens, bool)):
        raise UsageError(f"{limit}: expected a whole number")
    count = body.get("n") or 1
    if not isinstance(count, int) or isinstance(count, bool):
        raise UsageError("n: expected a whole number")
    plain = _plain(before)
    told = _LANGUAGE.match(plain)
    return HttpQuestion(
        before=plain,
        path=_text(body, "path"),
        language=told["name"].lower() if told else "",
        # llama-server reads a negative limit as none.
        max_tokens=None if tokens is None or tokens < 0 else tokens,
        stop=tuple(text for text in stop if text),
        count=min(max(count, 1), MAX_CANDIDATES),
        stream=body.get("stream") is True,
    )


def _from_raw(question: HttpQuestion) -> HttpQuestion:
    """Take a raw fill-in-the-middle prompt apart; other prompts stay as they are."""
    prompt = question.before
    for markers in FAMILIES.values():
        for suffix_first in (False, True):
            order = (markers.prefix, markers.suffix)
            first, second = reversed(order) if suffix_first else order
            one, two = prompt.find(first), prompt.find(second)
            end = prompt.rfind(markers.middle)
            if not 0 <= one < two < end:
                continue
            left = prompt[one + len(first) : two]
            right = prompt[two + len(second) : end]
            rest = prompt[end + len(markers.middle) :]
            before, after = (right, left) if suffix_first else (left, right)
            header = _FILE.search(prompt[:one])
            path = header["path"].strip() if header else question.path
            # Text behind the middle marker has been typed already.
            return replace(question, before=before + rest, after=after, path=path)
    return question


def _one_text(value: Any, name: str) -> str:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        raise UsageError(f"{name}: several prompts or token ids; send one text")
    raise UsageError(f"{name}: expected a text")


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise UsageError(f"{name}: expected a text")
    return value


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
