"""Another completion server as a target: llama.cpp's `/infill`, or OpenAI's way.

Sends what today's plugins send for the same cursor (`layouts.surroundings`), greedy and
one line long, so that a user can compare on their own machine. Only the URL that the
user named is talked to.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bench.run import Entrant
from bench.targets.layouts import surroundings
from bench.targets.target import TargetDocuments
from codekv.completion.api import Completion, Item, Timing, TokenCounts
from codekv.errors import CodekvError, UsageError

if TYPE_CHECKING:
    from bench.traces.trace import Ask, Open, TypedEdit
    from codekv.config import Config

TIMEOUT_S = 120
"""A server that is still loading its model answers late."""

QWEN = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
"""Markers where the configuration names none: those of the default model."""


def http_entrant(url: str, config: Config) -> Entrant:
    """Make an entrant of a running server.

    Raises:
        UsageError: The URL is not one that completions can be asked from.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise UsageError(f"--against {url}: give a URL such as http://127.0.0.1:8012")
    path = parts.path.rstrip("/")
    if path in {"", "/infill"}:
        url = f"{parts.scheme}://{parts.netloc}/infill"
        return Entrant(f"infill {parts.netloc}", lambda: HttpTarget(url, config))
    if path.endswith("/completions"):
        return Entrant(f"openai {parts.netloc}", lambda: HttpTarget(url, config))
    raise UsageError(f"--against {url}: the path must be /infill or /v1/completions")


class HttpTarget:
    """Asks over HTTP, one question at a time."""

    def __init__(self, url: str, config: Config) -> None:
        self._url = url
        self._config = config
        self._documents = TargetDocuments()

    async def start(self) -> None:
        """Ask once, so that a server that is not there is noticed at once."""
        payload = self._payload(b"", b"x", b"")
        await asyncio.to_thread(self._post, payload)

    async def open(self, step: Open) -> None:
        """See `Target`."""
        self._documents.open(step)

    async def edit(self, step: TypedEdit) -> None:
        """See `Target`."""
        self._documents.edit(step)

    async def focus(self, uri: str) -> None:
        """See `Target`: such a server knows no documents."""

    async def ask(self, step: Ask) -> Completion:
        """See `Target`."""
        data = self._documents[step.uri].data
        payload = self._payload(*surroundings(data, step.cursor_byte))
        return read_answer(await asyncio.to_thread(self._post, payload))

    async def account(self, answer: Completion) -> Completion:
        """See `Target`: the answer told everything."""
        return answer

    async def settle(self, seconds: float) -> None:
        """See `Target`: nobody can see what another server does meanwhile."""

    async def restart(self) -> None:
        """See `Target`: another server is not ours to restart."""
        self._documents.clear()

    async def close(self) -> None:
        """See `Target`."""

    @property
    def pid(self) -> int | None:
        """See `Target`: its memory is not seen."""
        return None

    @property
    def metrics(self) -> dict[str, Any]:
        """See `Target`."""
        return {}

    def _payload(self, above: bytes, line: bytes, below: bytes) -> dict[str, Any]:
        limit = self._config.completion.max_tokens
        before, here, after = (
            part.decode(errors="replace") for part in (above, line, below)
        )
        if self._url.endswith("/infill"):
            return {
                "input_prefix": before,
                "input_suffix": after,
                "input_extra": [],
                "prompt": here,
                "n_predict": limit,
                "n_indent": 0,
                "samplers": ["top_k"],
                "top_k": 1,
                "cache_prompt": True,
                "stop": ["\n"],
                "stream": False,
            }
        fim = self._config.model.fim
        prefix, suffix, middle = (fim.prefix, fim.suffix, fim.middle) if fim else QWEN
        return {
            "model": self._config.model.name,
            "prompt": f"{prefix}{before}{here}{suffix}{after}{middle}",
            "max_tokens": limit,
            "temperature": 0,
            "stop": ["\n"],
        }

    def _post(self, payload: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - scheme checked above
            self._url,
            json.dumps(payload).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:  # noqa: S310
                answer = json.load(reply)
        except urllib.error.HTTPError as error:
            with error:
                raise CodekvError(f"{self._url}: answers {error.code}") from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise CodekvError(f"{self._url}: no answer ({error})") from error
        if not isinstance(answer, dict):
            raise CodekvError(f"{self._url}: the answer is not a JSON object")
        return answer


def read_answer(answer: dict[str, Any]) -> Completion:
    """Read text and costs out of either kind of answer; unknown costs are zero."""
    choices = answer.get("choices")
    text = choices[0].get("text", "") if choices else answer.get("content", "")
    shown = str(text).split("\n", 1)[0].rstrip()
    items = (Item("", shown, 0, 0),) if shown.strip() else ()
    times = answer.get("timings") or {}
    usage = answer.get("usage") or {}
    prefill = float(times.get("prompt_ms", 0.0))
    decode = float(times.get("predicted_ms", 0.0))
    context = int(answer.get("tokens_evaluated") or usage.get("prompt_tokens") or 0)
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    computed = min(int(times.get("prompt_n", context - cached)), context)
    generated = times.get("predicted_n") or usage.get("completion_tokens") or 0
    return Completion(
        items,
        str(answer.get("model", "")),
        Timing(prefill + decode, prefill, decode, prefill),
        TokenCounts(
            context,
            exact=context - computed,
            computed=computed,
            generated=int(generated),
            steps=int(generated),
        ),
    )
