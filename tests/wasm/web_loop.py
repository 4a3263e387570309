"""Tests on the event loop of a browser, which runs beside Python."""

import asyncio
import time

import pytest

from retrykit import (
    AttemptTimeout,
    StopReason,
    aretry,
    aretrying,
    current_state,
    retry,
    state_of,
)
from retrykit.testing import AsyncScriptedFunction, ScriptedFunction, virtual_time

MOMENT = 0.01


async def forever():
    await asyncio.Event().wait()


async def run_tests():
    """Run each test of this module."""
    for name, test in [*globals().items()]:
        if name.startswith("test_"):
            await test()
            print(f"tests/wasm/web_loop.py::{name} PASSED")


async def test_a_coroutine_waits_by_the_timers_of_the_browser():
    loop = asyncio.get_running_loop()
    assert type(loop).__name__ == "WebLoop"
    begun = loop.time()
    fetch = AsyncScriptedFunction([OSError, OSError, "ok"])
    assert await aretry(schedule=[MOMENT, MOMENT])(fetch)() == "ok"
    assert loop.time() - begun >= 2 * MOMENT * 0.9


async def test_a_function_waits_for_its_delays():
    begun = time.monotonic()
    assert retry(schedule=[MOMENT])(ScriptedFunction([OSError, "ok"]))() == "ok"
    assert time.monotonic() - begun >= MOMENT * 0.9


async def test_an_attempt_that_takes_too_long_is_cancelled():
    fetch = aretry(schedule=[0], attempt_timeout=MOMENT)(forever)
    with pytest.raises(AttemptTimeout) as caught:
        await fetch()
    assert state_of(caught.value).attempt == 2


async def test_an_attempt_with_hardly_any_time_is_cancelled():
    # In a browser, some of them pass while the timer is set.
    for timeout in range(1, 200):
        with pytest.raises(AttemptTimeout):
            await aretry(max_attempts=1, attempt_timeout=timeout * 1e-6)(
                asyncio.Event().wait
            )()


async def test_tasks_have_states_of_their_own():
    @aretry(schedule=[MOMENT])
    async def fetch(number):
        await asyncio.sleep(MOMENT / (1 + number))
        if current_state().attempt == 1:
            raise OSError
        return number, current_state().attempt

    results = await asyncio.gather(*map(fetch, range(3)))
    assert results == [(0, 2), (1, 2), (2, 2)]


async def test_a_block_is_retried():
    seen = []
    async for attempt in aretrying(schedule=[MOMENT]):
        with attempt:
            seen.append(attempt.number)
            if len(seen) == 1:
                raise OSError
    assert seen == [1, 2]


async def test_a_task_is_cancelled_while_it_waits():
    fetch = AsyncScriptedFunction([OSError, ...])
    task = asyncio.ensure_future(aretry(schedule=["1h"])(fetch)())
    await asyncio.sleep(MOMENT)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert state_of(caught.value).stop_reason is StopReason.CANCELLED


async def test_virtual_time_passes_at_once():
    with virtual_time() as clock:
        fetch = AsyncScriptedFunction([OSError] * 3 + ["ok"])
        assert await aretry(schedule=["1d"] * 3)(fetch)() == "ok"
    assert clock.sleeps == [86_400] * 3
