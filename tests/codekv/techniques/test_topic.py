"""Topic switch: what was computed ahead for the old topic goes, if so configured."""

import pytest

from tests.codekv.techniques.conftest import TEXT

FIRST, LAST = TEXT.index("one + two"), TEXT.rindex("one + two")


async def switched(used) -> tuple[int, int, int]:
    """Blocks in memory before and after a jump to another function, and drops."""
    await used.complete(TEXT, FIRST)
    await used.rest()
    before = await used.stats()
    await used.complete(TEXT, FIRST + 3)
    same = await used.stats()
    await used.complete(TEXT, LAST)
    after = await used.stats()
    assert same.counters["reset"] == before.counters["reset"]
    return before.ram_blocks, after.ram_blocks, after.counters["reset"]


@pytest.mark.asyncio
async def test_a_new_function_drops_what_was_computed_ahead(serve) -> None:
    used = await serve(kvcache={"reset_on_topic_switch": True})
    before, after, dropped = await switched(used)

    assert 0 < after < before
    assert dropped >= before - after > 0
    await used.complete(TEXT, FIRST)
    assert used.service.status().metrics["evictions.topic"] >= dropped
    await used.service.close()


@pytest.mark.asyncio
async def test_by_default_everything_stays(serve) -> None:
    used = await serve()
    before, after, dropped = await switched(used)

    assert (after, dropped) == (before, 0)
    await used.service.close()


@pytest.mark.asyncio
async def test_what_a_prompt_has_used_stays(serve) -> None:
    used = await serve(kvcache={"reset_on_topic_switch": True, "live_documents": 1})
    await used.complete(TEXT, FIRST)
    await used.rest()
    await forget_live(used)
    answer = await used.complete(TEXT, LAST)
    used_blocks = answer.tokens.restored + answer.tokens.moved
    first = (await used.stats()).counters["reset"]
    await used.complete(TEXT, FIRST)

    # Blocks of the last function's prompt are in memory still.
    await forget_live(used)
    again = await used.complete(TEXT, LAST)
    assert again.tokens.restored + again.tokens.moved >= used_blocks > 0
    assert first > 0
    await used.service.close()


async def forget_live(used) -> None:
    def clear(engine):
        engine.pool.clear()
        engine.chains.clear()

    await used.service.inspect(clear)
