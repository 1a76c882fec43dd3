"""Where metrics go may change while the server runs."""

import asyncio
import json
import socket
import urllib.request

import pytest


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as page:  # noqa: S310
        return page.read().decode()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.asyncio
async def test_metrics_outputs_begin_and_end_while_running(serve, tmp_path) -> None:
    used = await serve()
    config, path, port = used.service.config, tmp_path / "m.jsonl", free_port()
    await used.complete()
    server = config.server.model_copy(
        update={"metrics_file": str(path), "metrics_port": port}
    )
    used.service.reconfigure(config.model_copy(update={"server": server}))
    answer = await used.complete(name="b.py")
    url = f"http://127.0.0.1:{port}/metrics"
    text = await asyncio.to_thread(fetch, url)

    assert "codekv_requests" in text
    assert 'codekv_lengths_by{name="' in text
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sum(line["kind"] == "model" for line in lines) == 1
    size = answer.tokens.context
    lengths = used.service.status().metrics
    assert lengths[f"lengths.{1 << size.bit_length()}"] >= 1

    used.service.reconfigure(config)
    await used.complete(name="c.py")
    with pytest.raises(OSError, match="refused"):
        await asyncio.to_thread(fetch, url)
    assert len(path.read_text().splitlines()) == len(lines)
    await used.service.close()


@pytest.mark.asyncio
async def test_a_metrics_file_that_cannot_be_written_is_one_warning(
    serve, tmp_path, caplog
) -> None:
    used = await serve(server={"metrics_file": str(tmp_path / "no" / "m.jsonl")})
    await used.complete()

    assert "metrics file" in caplog.text
    await used.service.close()


@pytest.mark.asyncio
async def test_without_pauses_nothing_is_stored_and_the_log_says_so(
    serve, caplog
) -> None:
    used = await serve(kvcache={"idle_work": False, "disk": True})
    await used.complete()
    await used.rest()

    assert (await used.stats()).ram_blocks == 0
    assert "nothing is stored" in caplog.text
    await used.service.close()


@pytest.mark.asyncio
async def test_a_purge_that_can_drop_nothing_is_told(serve, caplog) -> None:
    used = await serve(kvcache={"purge_strategy": {"keep_ratio": 0.9}})

    assert "nothing will be purged" in caplog.text
    await used.service.close()
