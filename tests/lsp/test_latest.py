import asyncio

import pytest

from lsp.latest import Latest, RequestSlot


async def forever():
    await asyncio.Event().wait()


async def give(value):
    return value


async def test_a_turn_gives_what_its_work_gives():
    turn = Latest().take("a")
    assert await turn.run(give(3)) == 3


async def test_a_newer_turn_ends_the_older_one_at_once_and_cancels_its_work():
    latest = Latest()
    older = latest.take("a")
    ended = asyncio.Event()

    async def work():
        try:
            await forever()
        finally:
            ended.set()

    task = asyncio.ensure_future(older.run(work()))
    await asyncio.sleep(0)
    newer = latest.take("a")
    assert await task is None
    await ended.wait()
    assert newer.is_current
    assert not older.is_current


async def test_turns_of_other_keys_live_on():
    latest = Latest()
    first, second = latest.take("a"), latest.take("b")
    latest.drop("a")
    assert not first.is_current
    assert second.is_current
    latest.drop_all()
    assert not second.is_current


async def test_a_lost_turn_does_not_begin():
    latest = Latest()
    turn = latest.take("a")
    latest.drop("a")
    assert await turn.run(forever()) is None


async def test_a_result_that_comes_with_its_loss_is_dropped():
    latest = Latest()
    turn = latest.take("a")

    async def work():
        latest.drop("a")
        return 1

    assert await turn.run(work()) is None


async def test_cancelling_the_caller_cancels_the_work():
    turn = RequestSlot()
    cancelled = asyncio.Event()

    async def work():
        try:
            await forever()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    task = asyncio.ensure_future(turn.run(work()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await cancelled.wait()


async def test_errors_of_current_work_come_through_and_of_lost_work_do_not():
    async def fail():
        raise ValueError

    async def fail_later():
        try:
            await forever()
        finally:
            raise ValueError

    with pytest.raises(ValueError):
        await RequestSlot().run(fail())
    turn = RequestSlot()
    task = asyncio.ensure_future(turn.run(fail_later()))
    await asyncio.sleep(0)
    turn.lose()
    assert await task is None


async def test_a_released_turn_leaves_nothing_and_never_a_newer_ones_place():
    latest = Latest()
    older = latest.take("a")
    newer = latest.take("a")
    latest.release("a", older)
    latest.drop("a")
    assert not newer.is_current
    last = latest.take("a")
    latest.release("a", last)
    latest.drop("a")
    assert last.is_current
