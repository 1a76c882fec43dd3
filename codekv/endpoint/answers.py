"""Reply bodies of the completion APIs, whole and as server-sent events.

The service decides what is offered; here its items only become insertions, because
these APIs cannot replace text behind the cursor.
"""

from __future__ import annotations

import json
import time
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codekv.completion.api import Completion, Item
    from codekv.endpoint.questions import HttpQuestion
    from codekv.endpoint.texts import AskedPlace


def insertions(
    completion: Completion, placement: AskedPlace, question: HttpQuestion
) -> tuple[str, ...]:
    """Each item as text to insert at the cursor; what cannot be one is left out."""
    texts = (_insertion(item, placement) for item in completion.items)
    cut = (_until_stop(text, question.stop) for text in texts)
    return tuple(text for text in cut if text)


def _insertion(item: Item, placement: AskedPlace) -> str:
    data, cursor = placement.snapshot.data, placement.cursor_byte
    typed = data[item.start_byte : cursor].decode("utf-8", "replace")
    replaced = data[cursor : item.end_byte].decode("utf-8", "replace")
    text = item.text.removeprefix(typed)
    if replaced and not text.endswith(replaced):
        return ""
    return text.removesuffix(replaced) if replaced else text


def _until_stop(text: str, stop: Iterable[str]) -> str:
    ends = [found for end in stop if (found := text.find(end)) >= 0]
    return text[: min(ends)] if ends else text


def completions_body(
    texts: tuple[str, ...], completion: Completion, *, is_chunk: bool = False
) -> dict[str, Any]:
    """A reply of `/v1/completions`; with `is_chunk`, one event of a stream."""
    tokens = completion.tokens
    body: dict[str, Any] = {
        "id": f"cmpl-{uuid.uuid4().hex}",
        "object": "text_completion",
        "created": int(time.time()),
        "model": completion.model,
        "choices": [
            {"index": index, "text": text, "logprobs": None, "finish_reason": "stop"}
            for index, text in enumerate(texts or ("",))
        ],
    }
    if not is_chunk:
        cached = tokens.context - tokens.computed
        body["usage"] = {
            "prompt_tokens": tokens.context,
            "completion_tokens": tokens.generated,
            "total_tokens": tokens.context + tokens.generated,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
    return body


def infill_body(text: str, completion: Completion) -> dict[str, Any]:
    """A reply of llama-server's `/infill` and `/completion`."""
    tokens, timing = completion.tokens, completion.timing
    timings = {
        "cache_n": tokens.context - tokens.computed,
        **_speed("prompt", tokens.computed, timing.prefill),
        **_speed("predicted", tokens.generated, timing.decode),
    }
    return {
        "content": text,
        "stop": True,
        "model": completion.model,
        "tokens_predicted": tokens.generated,
        "tokens_evaluated": tokens.context,
        "tokens_cached": tokens.context + tokens.generated,
        "truncated": False,
        "timings": timings,
    }


def chosen_fields(body: dict[str, Any], fields: Any) -> dict[str, Any]:
    """Only the fields that a client of llama-server names, `a/b` for one inside `a`."""
    if not isinstance(fields, list) or not fields:
        return body
    flat = body | {
        f"{outer}/{inner}": value
        for outer, table in body.items()
        if isinstance(table, dict)
        for inner, value in table.items()
    }
    return {name: flat[name] for name in fields if name in flat}


def event(body: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
"""What ends a stream of OpenAI's API."""


def _speed(name: str, count: int, milliseconds: float) -> dict[str, float]:
    # Counts of zero and unmeasured times are told as zero rates, never as infinite.
    return {
        f"{name}_n": count,
        f"{name}_ms": milliseconds,
        f"{name}_per_token_ms": milliseconds / count if count else 0.0,
        f"{name}_per_second": count * 1e3 / milliseconds if milliseconds else 0.0,
    }
