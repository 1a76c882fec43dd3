import asyncio
import threading

import pytest

from codekv.completion.api import State
from codekv.config import CompletionConfig, Config
from codekv.testing.service import ScriptedService, ServiceScript
from lsp.daemon_thread import aside
from lsp.host import ServiceHolder


def host(script=None, made=None):
    def factory(config, workspace):
        service = ScriptedService(script or ServiceScript(), config, workspace)
        if made is not None:
            made.append(service)
        return service

    return ServiceHolder(lambda: factory)


async def test_several_clients_start_one_service():
    made = []
    shared = host(made=made)
    await asyncio.gather(*(shared.start(Config(), None) for _ in range(3)))
    assert len(made) == 1
    await shared.settled()
    assert shared.status().state is State.READY
    assert await shared.close()


async def test_listeners_hear_of_loading_and_of_its_end():
    states = []
    shared = host(ServiceScript(load_ms=5))
    shared.subscribe(lambda: states.append(shared.status().state))
    await shared.start(Config(), None)
    await shared.settled()
    assert states[0] is State.LOADING
    assert states[-1] is State.READY
    await shared.close()


async def test_a_pause_before_the_start_is_kept():
    shared = host()
    shared.pause(paused=True)
    assert shared.status().state is State.PAUSED
    await shared.start(Config(), None)
    assert shared.status().state is State.PAUSED
    await shared.close()


async def test_only_a_new_configuration_is_handed_over():
    made = []
    shared = host(made=made)
    await shared.start(Config(), None)
    shared.configure(Config())
    assert "reconfigured" not in made[0].counts
    shared.configure(Config(completion=CompletionConfig(max_tokens=3)))
    assert made[0].counts["reconfigured"] == 1
    await shared.close()


async def test_a_failure_to_load_is_a_state_and_its_words():
    shared = host(ServiceScript(load_error="no such model"))
    await shared.start(Config(), None)
    await shared.settled()
    assert shared.status().state is State.ERROR
    assert shared.status().message == "no such model"
    await shared.close()


async def test_closing_while_importing_never_makes_a_service():
    made, release = [], threading.Event()

    def load():
        release.wait(5)
        return lambda *_: made.append(1)

    shared = ServiceHolder(load)
    starting = asyncio.ensure_future(shared.start(Config(), None))
    await asyncio.sleep(0)
    assert await shared.close()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert made == []


async def test_work_aside_gives_results_and_errors():
    assert await aside(lambda: 3) == 3

    def fail():
        raise ValueError

    with pytest.raises(ValueError):
        await aside(fail)
    assert all(
        thread.daemon
        for thread in threading.enumerate()
        if thread.name == "codekv-aside"
    )
