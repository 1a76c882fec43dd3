"""Precision: what is kept at how many bits changes memory and what comes back."""

import pytest

from codekv.storage import classtable
from tests.codekv.techniques.conftest import TEXT

NAMES = ["fp32", "fp16", "heads", "seed", "balanced"]
"""Without `small`: the tiny model has only edge layers, whose bits never go below 8."""


async def stored(serve, precision: str) -> float:
    """Bytes per stored token, after a prompt was answered from such blocks."""
    used = await serve(kvcache={"precision": precision})
    await used.complete()
    await used.rest()

    def forget_live(engine):
        engine.pool.clear()
        engine.chains.clear()

    await used.service.inspect(forget_live)
    answer = await used.complete(TEXT + "x")
    stats = await used.stats()
    await used.service.close()
    assert answer.tokens.restored + answer.tokens.moved > 0
    assert stats.counters["corrupt"] == 0
    return stats.ram_bytes / stats.ram_tokens


@pytest.mark.asyncio
async def test_each_precision_takes_its_own_memory(serve, monkeypatch) -> None:
    monkeypatch.setattr(classtable, "shipped_heads", lambda _: ((0, 1),))
    sizes = {name: await stored(serve, name) for name in NAMES}

    assert sizes["fp32"] > sizes["fp16"] > sizes["heads"] > sizes["balanced"]
    assert sizes["seed"] > sizes["balanced"]


@pytest.mark.asyncio
async def test_important_heads_cost_memory_and_unknown_ones_are_told(
    serve, monkeypatch, caplog
) -> None:
    plain = await stored(serve, "heads")
    assert "nothing is known" in caplog.text
    monkeypatch.setattr(classtable, "shipped_heads", lambda _: ((0, 1), (1, 0)))

    assert await stored(serve, "heads") > plain


@pytest.mark.parametrize("model", ["qwen2.5-coder-0.5b", "smollm2-135m"])
def test_heads_of_the_catalogs_models_are_shipped(model) -> None:
    heads = classtable.shipped_heads(model)

    assert len(heads) == len(set(heads)) >= 12
    assert classtable.shipped_heads("another") == ()
