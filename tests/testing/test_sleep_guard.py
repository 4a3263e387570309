"""An attempt that really sleeps in virtual time is told, wherever it does."""

import asyncio
import contextlib
import contextvars
import inspect
import sys
import threading
import time
from time import sleep as nap

import pytest
import trio
import trio.testing

from retrykit import Policy, aretry, retry, retrying
from retrykit.testing import RealSleepError, ScriptedFunction, virtual_time

LONG = 600


@pytest.mark.parametrize(
    "sleep", [time.sleep, nap], ids=["time.sleep", "its other name"]
)
def test_time_sleep_is_told_where_it_is_called(sleep):
    @retry(schedule=[1])
    def fetch():
        sleep(LONG)

    with pytest.raises(RealSleepError) as caught, virtual_time() as clock:
        fetch()
    assert str(caught.value) == (
        "attempt 1 of tests.testing.test_sleep_guard."
        "test_time_sleep_is_told_where_it_is_called.<locals>.fetch must not really "
        "sleep in virtual time, got time.sleep; clock.sleep() stands for a slow "
        "attempt, and allow_real_sleep=True allows it, for virtual_time and the marker "
        "retry_time"
    )
    frames = [each.name for each in caught.traceback]
    assert frames[-2] == "fetch"
    assert clock.sleeps == []


def test_in_a_later_attempt_too():
    attempts = ScriptedFunction([OSError, "go on"])

    def fetch():
        attempts()
        time.sleep(LONG)

    with pytest.raises(RealSleepError, match="attempt 2 of fetch"), virtual_time():
        Policy(name="fetch").call(fetch)


def test_in_a_block_too():
    with pytest.raises(RealSleepError, match="attempt 1 of poll"), virtual_time():
        for attempt in retrying(name="poll"):
            with attempt:
                time.sleep(LONG)


def test_time_sleep_in_a_coroutine_is_told():
    @aretry(name="fetch")
    async def fetch():
        await asyncio.sleep(0)
        time.sleep(LONG)  # noqa: ASYNC251  it is what the test is about

    async def main():
        with virtual_time():
            await fetch()

    with pytest.raises(RealSleepError, match="attempt 1 of fetch"):
        asyncio.run(main())


def test_the_sleep_of_asyncio_is_told():
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
    assert "the fixture retry_loop make it virtual" in str(caught.value)
    assert "fetch" in [each.name for each in caught.traceback]


def test_the_sleep_of_trio_is_told():
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


def test_short_sleeps_of_event_loops_pass():
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


def test_a_sleep_after_many_turns_of_none_is_told():
    @aretry(name="fetch")
    async def fetch():
        for _ in range(100):
            await asyncio.sleep(0)
        await asyncio.sleep(LONG)

    with pytest.raises(RealSleepError), virtual_time():
        asyncio.run(fetch())


def test_an_attempt_that_waits_for_something_else_is_let_alone(loop):
    async def main():
        with virtual_time() as clock:
            if loop is trio.run:
                await aretry(trio.to_thread.run_sync)(int)
            else:
                await aretry(asyncio.to_thread)(int)
            return clock.errors

    assert loop(main) == []


def test_it_is_allowed_if_asked_for():
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


def test_what_is_no_attempt_may_really_sleep():
    with virtual_time() as clock:
        time.sleep(0.001)
        retry(lambda: None)()
        time.sleep(0.001)
    assert clock.errors == []


def test_other_tasks_may_really_sleep_meanwhile():
    """One of the attempt itself, too: it may be a heartbeat of its client."""

    async def main():
        done = asyncio.Event()

        async def fetch():
            beats = asyncio.create_task(asyncio.sleep(LONG))
            await done.wait()
            beats.cancel()

        with virtual_time() as clock:
            call = asyncio.create_task(aretry(fetch)())
            await asyncio.sleep(0.06)
            time.sleep(0.001)  # noqa: ASYNC251  it is what the test is about
            done.set()
            await call
        return clock.errors

    assert asyncio.run(main()) == []


def test_on_a_virtual_loop_nothing_but_time_sleep_is_told():
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


def test_a_coroutine_function_of_the_same_name_is_no_sleep():
    @aretry
    async def fetch():
        await sleep()

    async def sleep():
        return "data"

    with virtual_time():
        asyncio.run(fetch())


def test_another_thread_of_an_attempt_may_really_sleep():
    @retry
    def fetch():
        thread = threading.Thread(target=time.sleep, args=[0.001])
        thread.start()
        thread.join()

    with virtual_time() as clock:
        fetch()
    assert clock.errors == []


def test_a_thread_is_profiled_no_longer_than_an_attempt_runs(colour, flaky):
    fn = flaky(OSError(), OSError())
    with virtual_time():
        colour(schedule=[1, 1])(fn)()
        assert sys.getprofile() is None


def test_a_thread_that_is_profiled_already_is_left_to_its_profiler():
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


def test_an_attempt_that_never_ends_is_watched_no_longer_than_virtual_time():
    with virtual_time():
        attempt = next(iter(retrying()))
        assert sys.getprofile() is not None
    assert sys.getprofile() is None
    time.sleep(0.001)
    assert attempt.number == 1


def test_nothing_but_a_sleep_is_told():
    """Python does not show to others what a profiler does: here it is called."""

    @retry(name="fetch")
    def fetch():
        listen, frame = sys.getprofile(), inspect.currentframe()
        listen(frame, "c_call", len)
        listen(frame, "c_return", time.sleep)
        contextvars.Context().run(listen, frame, "c_call", time.sleep)
        with pytest.raises(RealSleepError):
            listen(frame, "c_call", time.sleep)
        return "data"

    with pytest.raises(RealSleepError), virtual_time():
        assert fetch() == "data"


def test_a_thread_that_has_the_context_of_an_attempt_is_not_told():
    heard = []

    @retry
    def fetch():
        listen, frame = sys.getprofile(), inspect.currentframe()
        context = contextvars.copy_context()
        told = [listen, frame, "c_call", time.sleep]
        other = threading.Thread(target=lambda: heard.append(context.run(*told)))
        other.start()
        other.join()

    with virtual_time():
        fetch()
    assert heard == [None]


def test_of_calls_inside_of_one_another_the_innermost_is_told(caplog):
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


def test_one_that_gets_lost_is_raised_at_the_end_of_the_block():
    ended = []

    @retry(name="fetch")
    def fetch():
        with contextlib.suppress(RealSleepError):
            time.sleep(LONG)

    with pytest.raises(RealSleepError, match="attempt 1 of fetch"), virtual_time():
        fetch()
        ended.append(True)
    assert ended == [True]


def test_attempts_of_other_threads_are_not_looked_into():
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


def test_on_the_mock_clock_of_trio_a_sleep_is_told_too():
    async def main():
        with virtual_time():
            await aretry(trio.sleep)(LONG)

    clock = trio.testing.MockClock()
    with pytest.raises(RealSleepError):
        trio.run(main, clock=clock)
