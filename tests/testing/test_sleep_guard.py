"""A real sleep of an attempt in virtual time is an error."""

import asyncio
import contextlib
import contextvars
import functools
import inspect
import sys
import threading
import time
from time import sleep as nap

import pytest

from retrykit import Policy, aretry, retry, retrying
from retrykit.testing import RealSleepError, ScriptedFunction, virtual_time
from tests._support.concurrency import in_own_context, in_thread
from tests._support.optional_trio import trio

LONG = 600


@pytest.mark.parametrize("sleep", [time.sleep, nap], ids=["time.sleep", "alias"])
def test_raises_at_the_line_that_calls_time_sleep(sleep):
    @retry(schedule=[1])
    def fetch():
        sleep(LONG)

    with pytest.raises(RealSleepError) as caught, virtual_time() as clock:
        fetch()
    assert str(caught.value) == (
        "attempt 1 of tests.testing.test_sleep_guard."
        "test_raises_at_the_line_that_calls_time_sleep.<locals>.fetch must not sleep "
        "in real time, got time.sleep; use clock.sleep() to simulate a slow attempt; "
        "to allow it, pass allow_real_sleep=True to virtual_time or the marker "
        "retry_time"
    )
    # In Pyodide, time.sleep is a function of this name.
    frames = [each.name for each in caught.traceback if each.name != "_sleep"]
    assert frames[-2] == "fetch"
    assert clock.sleeps == []


def test_raises_even_if_time_sleep_is_wrapped(monkeypatch):
    sleep = time.sleep

    def wrapper(delay):
        sleep(delay)

    monkeypatch.setattr(time, "sleep", wrapper)
    with pytest.raises(RealSleepError), virtual_time():
        retry(lambda: time.sleep(0.001))()


def test_raises_in_a_later_attempt():
    attempts = ScriptedFunction([OSError, "go on"])

    def fetch():
        attempts()
        time.sleep(LONG)

    with pytest.raises(RealSleepError, match="attempt 2 of fetch"), virtual_time():
        Policy(name="fetch").call(fetch)


def test_raises_in_a_block():
    with pytest.raises(RealSleepError, match="attempt 1 of poll"), virtual_time():
        for attempt in retrying(name="poll"):
            with attempt:
                time.sleep(LONG)


def test_raises_for_time_sleep_in_a_coroutine():
    @aretry(name="fetch")
    async def fetch():
        await asyncio.sleep(0)
        time.sleep(LONG)  # noqa: ASYNC251  under test

    async def main():
        with virtual_time():
            await fetch()

    with pytest.raises(RealSleepError, match="attempt 1 of fetch"):
        asyncio.run(main())


def test_raises_for_asyncio_sleep():
    @aretry(name="fetch")
    async def fetch():
        await asyncio.sleep(LONG)

    async def main():
        with virtual_time() as clock:
            await asyncio.gather(fetch(), clock.asleep(1))

    with pytest.raises(RealSleepError) as caught:
        asyncio.run(main())
    assert "attempt 1 of fetch must not" in str(caught.value)
    assert "got asyncio.sleep(600);" in str(caught.value)
    assert "the fixture retry_loop to make it virtual" in str(caught.value)
    assert "fetch" in [each.name for each in caught.traceback]


def test_raises_for_trio_sleep():
    @aretry(name="fetch")
    async def fetch():
        await trio.sleep(LONG)

    async def main():
        with virtual_time():
            await fetch()

    with pytest.raises(RealSleepError) as caught:
        trio.run(main)
    assert "got trio.sleep(600);" in str(caught.value)
    assert "fetch" in [each.name for each in caught.traceback]


def test_allows_short_sleeps_of_event_loops():
    @aretry
    async def fetch():
        await asyncio.sleep(0.001)
        return "data"

    @aretry
    async def tfetch():
        await trio.sleep(0.001)
        return "data"

    with virtual_time():
        assert asyncio.run(fetch()) == "data"
        assert trio.run(tfetch) == "data"


def test_raises_for_a_sleep_after_many_checkpoints():
    @aretry(name="fetch")
    async def fetch():
        for _ in range(100):
            await asyncio.sleep(0)
        await asyncio.sleep(LONG)

    with pytest.raises(RealSleepError), virtual_time():
        asyncio.run(fetch())


@pytest.mark.needs("threads")
def test_allows_an_attempt_that_waits_for_a_thread(loop):
    async def main():
        with virtual_time() as clock:
            if loop is trio.run:
                await aretry(trio.to_thread.run_sync)(int)
            else:
                await aretry(asyncio.to_thread)(int)
            return clock.errors

    assert loop(main) == []


def test_allows_real_sleeps_with_allow_real_sleep():
    @retry
    def fetch():
        time.sleep(0.001)

    @aretry
    async def afetch():
        await asyncio.sleep(0.06)

    with virtual_time(allow_real_sleep=True) as clock:
        fetch()
        asyncio.run(afetch())
    assert clock.errors == []


def test_allows_real_sleeps_outside_of_attempts():
    with virtual_time() as clock:
        time.sleep(0.001)
        retry(lambda: None)()
        time.sleep(0.001)
    assert clock.errors == []


def test_allows_real_sleeps_of_other_tasks():
    """A task of the attempt, too: it may be a heartbeat of its client."""

    async def main():
        done = asyncio.Event()

        async def fetch():
            beats = asyncio.create_task(asyncio.sleep(LONG))
            await done.wait()
            beats.cancel()

        with virtual_time() as clock:
            call = asyncio.create_task(aretry(fetch)())
            await asyncio.sleep(0.06)
            time.sleep(0.001)  # noqa: ASYNC251  under test
            done.set()
            await call
        return clock.errors

    assert asyncio.run(main()) == []


def test_raises_only_for_time_sleep_on_a_virtual_loop():
    @aretry(name="fetch")
    async def fetch(sleep):
        await asyncio.sleep(LONG)
        sleep(LONG)

    with (
        pytest.raises(RealSleepError, match="attempt 1 of fetch"),
        virtual_time() as clock,
        asyncio.Runner(loop_factory=clock.new_event_loop) as runner,
    ):
        runner.run(fetch(clock.advance))
        assert clock.now() == 2 * LONG
        runner.run(fetch(time.sleep))


def test_allows_another_coroutine_function_named_sleep():
    @aretry
    async def fetch():
        await sleep()

    async def sleep():
        return "data"

    with virtual_time():
        asyncio.run(fetch())


@pytest.mark.needs("threads")
def test_allows_real_sleeps_in_other_threads_of_an_attempt():
    @retry
    def fetch():
        thread = threading.Thread(target=time.sleep, args=[0.001])
        thread.start()
        thread.join()

    with virtual_time() as clock:
        fetch()
    assert clock.errors == []


def test_profiles_a_thread_only_during_attempts(backend, flaky):
    fn = flaky(OSError(), OSError())
    with virtual_time():
        backend(schedule=[1, 1])(fn)()
        assert sys.getprofile() is None


def test_does_not_replace_an_existing_profiler():
    def profiler(*_):
        pass

    seen = []

    @retry
    def fetch():
        seen.append(sys.getprofile())
        time.sleep(0.001)

    sys.setprofile(profiler)
    try:
        with virtual_time():
            fetch()
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(None)
    assert seen == [profiler]


def test_stops_profiling_at_the_end_of_virtual_time():
    with virtual_time():
        attempt = next(iter(retrying()))
        assert sys.getprofile() is not None
    assert sys.getprofile() is None
    time.sleep(0.001)
    assert attempt.number == 1


@in_own_context
def test_stops_profiling_a_thread_whose_attempt_ends_in_another_thread():
    with virtual_time(process_wide=True):
        attempt = next(iter(retrying()))
        attempt.__enter__()
        assert sys.getprofile() is not None
        in_thread(functools.partial(attempt.__exit__, None, None, None))
        assert sys.getprofile() is None


def test_ignores_all_profiler_events_but_sleeps():
    """Python does not profile profilers: the test calls the profiler itself."""

    @retry(name="fetch")
    def fetch():
        listen, frame = sys.getprofile(), inspect.currentframe()
        sleep = inspect.unwrap(time.sleep)
        listen(frame, "c_call", len)
        listen(frame, "c_return", sleep)
        contextvars.Context().run(listen, frame, "c_call", sleep)
        with pytest.raises(RealSleepError):
            listen(frame, "c_call", sleep)
        return "data"

    with pytest.raises(RealSleepError), virtual_time():
        assert fetch() == "data"


@pytest.mark.needs("threads")
def test_ignores_another_thread_with_the_context_of_an_attempt():
    results = []

    @retry
    def fetch():
        listen, frame = sys.getprofile(), inspect.currentframe()
        context = contextvars.copy_context()
        arguments = [listen, frame, "c_call", time.sleep]
        other = threading.Thread(target=lambda: results.append(context.run(*arguments)))
        other.start()
        other.join()

    with virtual_time():
        fetch()
    assert results == [None]


def test_names_the_innermost_of_nested_calls(caplog):
    @aretry(name="inner")
    async def inner(sleep):
        await sleep(LONG)

    @aretry(name="outer")
    async def outer(sleep):
        await inner(sleep)

    with pytest.raises(RealSleepError, match="attempt 1 of inner"), virtual_time():
        asyncio.run(outer(asyncio.sleep))
    with pytest.raises(RealSleepError, match="attempt 1 of inner"), virtual_time():
        trio.run(outer, trio.sleep)
    assert caplog.records == []


def test_raises_a_suppressed_error_at_the_end_of_the_block():
    ended = []

    @retry(name="fetch")
    def fetch():
        with contextlib.suppress(RealSleepError):
            time.sleep(LONG)

    with pytest.raises(RealSleepError, match="attempt 1 of fetch"), virtual_time():
        fetch()
        ended.append(True)
    assert ended == [True]


@pytest.mark.needs("threads")
def test_ignores_nested_attempts_of_other_threads():
    asleep, over = threading.Event(), threading.Event()

    @retry
    def working():
        asleep.set()
        over.wait()

    async def main():
        call = asyncio.create_task(aretry(asyncio.to_thread)(working))
        await asyncio.to_thread(asleep.wait)
        await asyncio.sleep(0.06)
        over.set()
        await call

    with virtual_time() as clock:
        asyncio.run(main())
    assert clock.errors == []


def test_raises_with_the_mock_clock_of_trio():
    async def main():
        with virtual_time():
            await aretry(trio.sleep)(LONG)

    clock = trio.testing.MockClock()
    with pytest.raises(RealSleepError):
        trio.run(main, clock=clock)
