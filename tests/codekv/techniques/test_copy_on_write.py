"""Copy-on-write: prompts of one document share the slots of what they agree on."""

import pytest

from tests.codekv.techniques.conftest import TEXT

STEM = TEXT[:700]


@pytest.mark.asyncio
async def test_four_related_prompts_take_less_than_copies(serve) -> None:
    used = await serve(
        kvcache={"max_length": 1024, "idle_work": False, "live_documents": 4},
        completion={"max_tokens": 2},
    )
    # The prompts differ before and behind the cursor: none is the start of another.
    for number in range(4):
        below = f"\n\n\ndef last_{number}():\n" + f"    call({number})\n" * 12
        text = STEM + f"\n\n\ndef f{number}(x):\n    return x" + below
        await used.complete(text, text.index("return x") + 8)

    def look(engine):
        sequences = list(engine.pool)
        full = max(seq.kv.num_bytes for seq in sequences)
        held = sum(map(len, sequences))
        return len(sequences), full, held, engine.memory.num_bytes

    count, full, held, num_bytes = await used.service.inspect(look)
    stats = await used.stats()

    assert count == 4
    assert held > 3 * len(STEM)
    assert num_bytes <= 0.7 * count * full
    assert num_bytes <= 0.7 * (stats.live_bytes + stats.live_shared_bytes)
    metrics = used.service.status().metrics
    assert metrics["live_shared_mb"] == pytest.approx(
        stats.live_shared_bytes / 2**20, abs=1e-3
    )
    await used.service.close()
