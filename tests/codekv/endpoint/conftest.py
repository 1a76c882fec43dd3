import asyncio
import contextlib
import http.client
import json
import socket
import threading

import pytest
import uvicorn

from codekv.config import Config
from codekv.endpoint.app import Endpoint


class Caller:
    """Asks a running endpoint over a real socket."""

    def __init__(self, port):
        self.port = port

    def send(self, method, path, body=None, headers=None):
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        line.request(method, path, raw, self.headers(headers, raw))
        answer = line.getresponse()
        data = answer.read()
        line.close()
        return answer.status, data

    def headers(self, given, raw):
        usual = {"Content-Type": "application/json"} if raw is not None else {}
        return {**usual, **(given or {})}

    def post(self, path, body, **headers):
        status, data = self.send("POST", path, body, headers)
        return status, json.loads(data)


@pytest.fixture
def serve():
    """Start an endpoint over a service on a thread of its own."""
    with contextlib.ExitStack() as stack:

        def start(service, token=None, config=None):
            config = config or Config()
            listener = socket.create_server(("127.0.0.1", 0))
            endpoint = Endpoint(service, config.completion.max_tokens, token)
            settings = uvicorn.Config(
                endpoint.app(), log_config=None, lifespan="off", access_log=False
            )
            server = uvicorn.Server(settings)

            async def main():
                service.start()
                await service.ready()
                await server.serve(sockets=[listener])
                await service.close()

            thread = threading.Thread(target=lambda: asyncio.run(main()))
            thread.start()

            def stop():
                server.should_exit = True
                thread.join(30)
                listener.close()

            stack.callback(stop)
            return Caller(listener.getsockname()[1])

        yield start
