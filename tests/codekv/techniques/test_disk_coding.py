"""Disk coding: files get smaller, and whatever wrote them, they are read again."""

import pytest

from codekv.config import cache_dir
from tests.codekv.techniques.conftest import TEXT


async def written(serve, coding: str, precision: str) -> int:
    """Bytes on disk after one document."""
    used = await serve(kvcache=options(coding, precision))
    await used.complete()
    await used.rest()
    size = (await used.stats()).disk_bytes
    await used.service.close()
    return size


def options(coding: str, precision: str) -> dict:
    return {"disk": True, "disk_coding": coding, "precision": precision}


@pytest.mark.asyncio
@pytest.mark.parametrize("precision", ["balanced", "fp16", "int8", "fp32"])
@pytest.mark.parametrize("coding", ["zstd", "huffman", "differences"])
async def test_files_are_smaller_and_a_restart_reads_them(
    serve, coding, precision
) -> None:
    coded = await written(serve, coding, precision)
    again = await serve(kvcache=options("plain", precision))
    answer = await again.complete(TEXT + "x")
    stats = await again.stats()
    await again.service.close()

    assert answer.tokens.restored + answer.tokens.moved > 0
    assert stats.counters["loaded_disk"] > 0
    assert stats.counters["corrupt"] == 0
    for path in cache_dir().rglob("*.kv"):
        path.unlink()
    assert coded < await written(serve, "plain", precision)


@pytest.mark.asyncio
async def test_old_files_are_read_under_a_new_coding(serve) -> None:
    await written(serve, "plain", "balanced")
    again = await serve(kvcache=options("differences", "balanced"))
    answer = await again.complete(TEXT + "x")
    stats = await again.stats()

    assert answer.tokens.restored + answer.tokens.moved > 0
    assert stats.counters["loaded_disk"] > 0
    await again.service.close()


@pytest.mark.asyncio
async def test_a_damaged_coding_is_a_miss(serve, monkeypatch) -> None:
    from codekv.errors import BlockFormatError
    from codekv.storage.entropy import DiskForm

    await written(serve, "zstd", "balanced")
    again = await serve(kvcache=options("zstd", "balanced"))

    def refuse(_form, _stored):
        raise BlockFormatError("damaged")

    monkeypatch.setattr(DiskForm, "expand", refuse)
    answer = await again.complete(TEXT + "x")
    stats = await again.stats()

    assert answer.tokens.computed == answer.tokens.context
    assert stats.counters["corrupt"] > 0
    await again.service.close()
