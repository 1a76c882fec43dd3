"""The routes: three completion APIs over one `CompletionService`.

A newer request for the same document ends an older one, which is then answered with
an empty text; a client that hangs up ends its own.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from codekv.completion.api import AnswerSource, Completion, Request, State, Trigger
from codekv.endpoint import answers, gate
from codekv.endpoint.questions import (
    completions_question,
    infill_question,
    raw_question,
)
from codekv.endpoint.texts import KnownTexts
from codekv.errors import CancelledWorkError, CodekvError, UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping

    from starlette.requests import Request as HttpRequest

    from codekv.completion.api import CompletionService
    from codekv.endpoint.questions import HttpQuestion

Reply = tuple[tuple[str, ...], Completion]
"""Texts to insert, best first, and the completion they come from."""

_NOTHING = Completion(source=AnswerSource.NONE)


class _RefusedError(Exception):
    def __init__(self, refused: gate.Refusal) -> None:
        super().__init__(refused.message)
        self.refused = refused


class Endpoint:
    """Answers HTTP requests with one service."""

    def __init__(
        self, service: CompletionService, max_tokens: int, token: str | None
    ) -> None:
        """Prepare the routes.

        Args:
            service: Started by the caller.
            max_tokens: The configured limit; clients may ask for less.
            token: What clients must send as a bearer token, or None.
        """
        self._service = service
        self._max_tokens = max_tokens
        self._token = token
        self._texts = KnownTexts(service.document_closed)

    def app(self) -> Starlette:
        """The ASGI application."""
        post = [
            ("/v1/completions", self._completions),
            ("/infill", self._infill),
            ("/completion", self._raw),
            ("/completions", self._raw),
        ]
        get = [("/v1/models", self._models), ("/health", self._health)]
        routes = [Route(p, self._guarded(f), methods=["POST"]) for p, f in post]
        routes += [Route(p, self._guarded(f), methods=["GET"]) for p, f in get]
        return Starlette(routes=routes)

    def _guarded(
        self, handler: Callable[[HttpRequest], Awaitable[Response]]
    ) -> Callable[[HttpRequest], Coroutine[Any, Any, Response]]:
        """Refuse strangers, and turn faults of a request into one line."""

        async def guarded(request: HttpRequest) -> Response:
            refused = gate.refusal(request.headers, self._token)
            if refused is not None:
                return _error(refused.status, refused.message)
            try:
                return await handler(request)
            except _RefusedError as error:
                return _error(error.refused.status, error.refused.message)
            except UsageError as error:
                return _error(400, str(error))
            except CodekvError as error:
                return _error(503, str(error))

        return guarded

    async def _completions(self, request: HttpRequest) -> Response:
        question = completions_question(await _body(request))
        texts, completion = await self._answer(request, question)
        if question.stream:
            chunk = answers.completions_body(texts, completion, is_chunk=True)
            return _stream(answers.event(chunk), answers.DONE)
        return JSONResponse(answers.completions_body(texts, completion))

    async def _infill(self, request: HttpRequest) -> Response:
        body = await _body(request)
        return await self._llama(request, body, infill_question(body))

    async def _raw(self, request: HttpRequest) -> Response:
        body = await _body(request)
        return await self._llama(request, body, raw_question(body))

    async def _llama(
        self, request: HttpRequest, body: Mapping[str, Any], question: HttpQuestion
    ) -> Response:
        texts, completion = await self._answer(request, question)
        reply = answers.infill_body(texts[0] if texts else "", completion)
        if question.stream:
            return _stream(answers.event(reply))
        return JSONResponse(answers.chosen_fields(reply, body.get("response_fields")))

    async def _models(self, _request: HttpRequest) -> Response:
        name = self._service.status().model
        entry = {"id": name, "object": "model", "owned_by": "codekv"}
        return JSONResponse({"object": "list", "data": [entry] if name else []})

    async def _health(self, _request: HttpRequest) -> Response:
        status = self._service.status()
        if status.state is State.LOADING:
            return _error(503, "the model is loading")
        if status.state is State.ERROR:
            return _error(500, status.message)
        return JSONResponse({"status": "ok"})

    async def _answer(self, request: HttpRequest, question: HttpQuestion) -> Reply:
        """Ask the service; an empty answer if something newer came or nobody waits."""
        if question.max_tokens == 0:
            # llama.vim sends such requests ahead to warm another server's cache.
            return (), _NOTHING
        placement = self._texts.place(question)
        self._service.document_changed(placement.snapshot)
        wanted = Request(
            placement.snapshot,
            placement.cursor_byte,
            Trigger.INVOKED if question.count > 1 else Trigger.AUTOMATIC,
            question.count,
            max_tokens=min(question.max_tokens or self._max_tokens, self._max_tokens),
        )
        try:
            completion = await _unless_gone(request, self._service.complete(wanted))
        except CancelledWorkError:
            return (), _NOTHING
        if completion is None:
            return (), _NOTHING
        if completion.reason in ("loading", "error"):
            message = self._service.status().message or "the model is loading"
            raise _RefusedError(gate.Refusal(503, message))
        return answers.insertions(completion, placement, question), completion


async def _unless_gone(
    request: HttpRequest, work: Coroutine[Any, Any, Completion]
) -> Completion | None:
    """Await `work`, or end it and return None once the client has hung up."""
    asked = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({asked, gone}, return_when=asyncio.FIRST_COMPLETED)
        return asked.result() if asked.done() else None
    finally:
        for task in (asked, gone):
            task.cancel()
        # What a cancelled task still raises concerns nobody any more.
        await asyncio.gather(asked, gone, return_exceptions=True)


async def _disconnected(request: HttpRequest) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _body(request: HttpRequest) -> Mapping[str, Any]:
    """Read a JSON object of bounded size.

    Raises:
        UsageError: It is not one.
        _RefusedError: It is too large or says that it is something else.
    """
    refused = gate.body_refusal(request.headers)
    if refused is not None:
        raise _RefusedError(refused)
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > gate.MAX_BODY_BYTES:
            raise _RefusedError(gate.too_large())
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageError("the body is not JSON") from error
    if not isinstance(body, dict):
        raise UsageError("the body is not a JSON object")
    return body


def _stream(*events: bytes) -> Response:
    """Send server-sent events; an answer is shaped as a whole, so it comes at once."""

    async def parts() -> AsyncIterator[bytes]:
        for part in events:
            yield part

    return StreamingResponse(parts(), media_type="text/event-stream")


def _error(status: int, message: str) -> Response:
    body = {"error": {"code": status, "message": message, "type": "codekv_error"}}
    return JSONResponse(body, status)
