"""Attention importance: blocks have a score after the first pause already."""

import pytest
import torch
from torch.nn import functional

from codekv.testing.model import HEAD, HEADS, KV_HEADS, TinyRuntime


@pytest.fixture
def watched(monkeypatch) -> None:
    """Let the tiny model call torch's attention function, as real ones do."""
    forward = TinyRuntime.forward

    def calling(self, kv, tokens, start, logits="last"):
        end = start + len(tokens)
        rows = forward(self, kv, tokens, start, logits)
        shape = KV_HEADS, HEADS // KV_HEADS, len(tokens), HEAD
        keys = kv.keys[0][:, None, :end]
        mask = torch.arange(end) <= torch.arange(start, end)[:, None]
        functional.scaled_dot_product_attention(
            torch.ones(shape), keys, keys, attn_mask=mask
        )
        return rows

    monkeypatch.setattr(TinyRuntime, "forward", calling)


async def importances(used) -> list[float]:
    def look(engine):
        return [block.importance for block in engine.store._ram.manager.blocks()]

    return await used.service.inspect(look)


@pytest.mark.asyncio
async def test_the_first_pause_gives_scores(serve, watched) -> None:
    used = await serve(kvcache={"purge_strategy": {"importance": "attention"}})
    await used.complete()
    await used.rest()
    scores = await importances(used)

    assert any(score > 0 for score in scores)
    await used.service.close()


@pytest.mark.asyncio
async def test_other_orders_measure_nothing(serve, watched) -> None:
    used = await serve()
    await used.complete()
    await used.rest()

    assert set(await importances(used)) == {0.0}
    await used.service.close()
