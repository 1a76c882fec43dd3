"""Memory guard: over 80 % of the budget half goes, and no request ever fails."""

import pytest
import torch

from tests.codekv.techniques.conftest import TEXT

BUDGET = 3 << 20
"""About six live sequences of the tiny model, or seven documents' pinned blocks."""


async def limit(used, num_bytes=BUDGET) -> None:
    def shrink(engine):
        engine.store._ram.manager.budget_bytes = num_bytes

    await used.service.inspect(shrink)


@pytest.mark.asyncio
async def test_live_sequences_count_and_pinned_documents_give_way(serve) -> None:
    used = await serve(
        kvcache={"precision": "fp32", "live_documents": 1, "max_length": 2000}
    )
    await limit(used)
    for number in range(6):
        answer = await used.complete(
            TEXT.replace("part", f"p{number}"), name=f"{number}.py"
        )
        assert answer.tokens.generated
        await used.rest()
    stats = await used.stats()

    assert stats.live_bytes > 0
    assert stats.ram_bytes + stats.live_bytes <= BUDGET
    assert stats.counters["guarded"] > 0
    assert stats.counters["gave_way"] > 0
    await used.complete(name="last.py")
    numbers = used.service.status().metrics
    assert numbers["guarded"] >= stats.counters["guarded"]
    assert numbers["memory_mb"] >= numbers["live_mb"] > 0
    await used.service.close()


@pytest.mark.asyncio
async def test_live_sequences_are_halved_if_they_alone_are_too_much(serve) -> None:
    used = await serve(kvcache={"live_documents": 8}, completion={"other_files": False})
    await limit(used)
    for number in range(8):
        await used.complete(TEXT.replace("part", f"p{number}"), name=f"{number}.py")
    await used.rest()
    many = (await used.stats()).live_bytes
    await limit(used, many)
    await used.complete(TEXT + "x", name="8.py")
    await used.rest()
    stats = await used.stats()

    assert stats.live_bytes <= 0.8 * many
    assert stats.counters["live_dropped"] > 0
    await used.service.close()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: 12 bytes"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_failed_allocation_frees_memory_and_answers(
    serve, monkeypatch, error
) -> None:
    used = await serve(kvcache={"idle_work": False})
    await used.complete(TEXT)
    failed = []

    def fail_once(engine):
        forward = engine.runtime.forward

        def failing(*arguments, **more):
            if not failed:
                failed.append(True)
                raise error
            return forward(*arguments, **more)

        monkeypatch.setattr(engine.runtime, "forward", failing)

    await used.service.inspect(fail_once)
    answer = await used.complete(TEXT + "def other():\n    ")
    stats = await used.stats()

    assert failed
    assert answer.tokens.generated
    assert answer.tokens.exact == 0
    assert stats.counters["out_of_memory"] == 1
    assert used.service.status().metrics["out_of_memory"] == 1
    await used.service.close()


@pytest.mark.asyncio
async def test_other_errors_are_not_taken_for_full_memory(serve, monkeypatch) -> None:
    used = await serve(kvcache={"idle_work": False})
    await used.service.inspect(
        lambda engine: monkeypatch.setattr(
            engine.runtime, "forward", lambda *_: 1 / 0, raising=True
        )
    )
    with pytest.raises(Exception, match="failed"):
        await used.complete(TEXT)

    assert (await used.stats()).counters["out_of_memory"] == 0
    await used.service.close()
