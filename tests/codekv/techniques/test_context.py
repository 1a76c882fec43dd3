"""Sparse cache and dynamic size: what of a long text above the cursor is kept."""

import pytest

from codekv.testing import tiny
from tests.codekv.techniques.conftest import TEXT


async def prompt_of(used, text=TEXT) -> bytes:
    """The last prompt as text."""
    await used.complete(text)
    tokens = await used.service.inspect(
        lambda engine: list(list(engine.pool)[-1].tokens)
    )
    await used.service.close()
    return bytes(token for token in tokens if token < 256)


@pytest.mark.asyncio
@pytest.mark.parametrize("has_markers", [True, False])
@pytest.mark.parametrize("option", [{"sparse_interval": 9}, {"dynamic_size": True}])
async def test_older_blocks_are_sampled(
    serve, monkeypatch, option, has_markers
) -> None:
    if not has_markers:
        monkeypatch.setattr(tiny.Letters, "fim", None)
    sizes = {"newest_share": 0.5, "idle_work": False, "max_length": 700}
    suffix = {"completion": {"suffix_tokens": 64}}
    usual = await prompt_of(await serve(kvcache=sizes, **suffix))
    sampled = await prompt_of(await serve(kvcache=sizes | option, **suffix))

    assert b"part_0(" not in usual
    assert b"import os" in sampled
    assert b"part_29(" in usual
    assert b"part_29(" in sampled
    assert len(sampled) <= 700


@pytest.mark.asyncio
async def test_unused_room_below_the_cursor_goes_to_the_text_above(serve) -> None:
    sizes = {"newest_share": 1.0, "idle_work": False, "max_length": 700}
    usual = await prompt_of(await serve(kvcache=sizes))
    filled = await prompt_of(await serve(kvcache=sizes | {"dynamic_size": True}))

    assert len(filled) > len(usual) + 100
