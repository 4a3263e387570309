"""Virtual time: days pass in milliseconds."""

import asyncio
import contextvars
import re
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Thread

import looptime
import pytest

from retrykit import (
    aretry,
    aretrying,
    current_state,
    presets,
    retry,
    retrying,
    schedules as s,
    state_of,
)
from retrykit._internal.clocks import sync_clock
from retrykit._internal.loop_clock import async_clock
from retrykit.errors import NestingError
from retrykit.testing import (
    AsyncScriptedFunction,
    FakeClock,
    ScriptedFunction,
    virtual_time,
)
from retrykit.testing._scheduler import VirtualScheduler
from tests._support.concurrency import DAY, WEEK, gather, in_thread, sleep_once
from tests._support.optional_trio import trio


class TestClock:
    def test_starts_at_start_and_records_sleeps(self):
        with virtual_time(start=100) as clock:
            clock.sleep("1m")
            clock.advance(0.5)
            clock.sleep(2)
        assert (clock.now(), clock.sleeps) == (162.5, [60.0, 2.0])

    def test_coroutines_can_sleep_on_it(self, loop):
        async def main():
            with virtual_time(start=5) as clock:
                await clock.asleep("1m")
                return clock.now(), clock.sleeps

        assert loop(main) == (65.0, [60.0])

    def test_asleep_raises_outside_of_an_event_loop(self):
        sleep = FakeClock().asleep(1)
        with pytest.raises(RuntimeError, match="no event loop runs here"):
            sleep.send(None)

    def test_a_blocking_sleep_in_a_coroutine_blocks_its_loop(self):
        """As in real time, other tasks wake late."""
        woken = []

        async def main():
            with virtual_time() as clock:

                async def other():
                    await clock.asleep(3)
                    woken.append(clock.now())

                async def blocking():
                    await clock.asleep(1)
                    clock.sleep(9)

                await gather(other(), blocking())

        asyncio.run(main())
        assert woken == [10.0]

    def test_advance_wakes_the_due_sleepers_in_order(self):
        woken = []

        async def main():
            with virtual_time() as clock:

                async def sleeper(delay):
                    await clock.asleep(delay)
                    woken.append((delay, clock.now()))

                async def busy():
                    await clock.asleep(1)
                    clock.advance(6)

                await gather(sleeper(5), sleeper(3), sleeper(8), busy())

        asyncio.run(main())
        assert woken == [(3, 7.0), (5, 7.0), (8, 8.0)]


class TestCalls:
    def test_a_week_of_retries_takes_no_time(self, backend):
        calls = []

        @backend(presets.hostname_verification())
        def verify():
            calls.append(clock.now())
            raise LookupError("not yet")

        before = time.monotonic()
        with virtual_time() as clock, pytest.raises(LookupError) as caught:
            verify()
        assert time.monotonic() - before < 60
        assert (len(calls), calls[-1]) == (76, 610_263.0)
        assert state_of(caught.value).elapsed == 610_263.0

    def test_limits_use_virtual_time(self, backend):
        @backend(schedule=s.constant("1h"), max_attempts=None, max_elapsed="1d")
        def fetch():
            clock.advance("2h")
            raise OSError

        with virtual_time() as clock, pytest.raises(OSError) as caught:
            fetch()
        assert clock.sleeps == [3600.0] * 8
        assert state_of(caught.value).elapsed == 26 * 3600

    def test_blocks_use_virtual_time(self):
        with virtual_time() as clock:
            for attempt in retrying(WEEK):
                with attempt:
                    if attempt.number < 3:
                        raise OSError
        assert clock.sleeps == [DAY, DAY]

    def test_async_blocks_use_virtual_time(self, loop):
        async def main():
            with virtual_time() as clock:
                async for attempt in aretrying(WEEK):
                    with attempt:
                        if attempt.number < 3:
                            raise OSError
                return clock.sleeps

        assert loop(main) == [DAY, DAY]

    def test_elapsed_and_remaining_are_virtual(self):
        times = []

        @retry(schedule=[30], max_elapsed="1m")
        def fetch():
            state = current_state()
            times.append((state.elapsed, state.remaining))
            if state.attempt == 1:
                raise OSError

        with virtual_time(start=7):
            fetch()
        assert times == [(0.0, 60.0), (30.0, 30.0)]


class TestScope:
    @pytest.mark.needs("threads")
    def test_includes_tasks_and_their_threads(self):
        async def main():
            with virtual_time() as clock:
                assert async_clock.now() == 0.0
                await asyncio.create_task(sleep_once(5))
                await asyncio.to_thread(
                    retry(schedule=[6])(ScriptedFunction([OSError, "ok"]))
                )
            assert async_clock.current() is async_clock.real
            return clock.sleeps

        assert asyncio.run(main()) == [5.0, 6.0]

    def test_excludes_other_threads(self):
        with virtual_time():
            assert in_thread(lambda: sync_clock.current() is sync_clock.real)

    def test_process_wide_includes_all_threads(self):
        call = retry(WEEK)(ScriptedFunction([OSError, OSError, "ok"]))
        with virtual_time(process_wide=True) as clock:
            assert in_thread(call) == "ok"
            assert in_thread(lambda: asyncio.run(sleep_once(5))) == "ok"
        assert clock.sleeps == [DAY, DAY, 5.0]
        assert in_thread(lambda: sync_clock.current() is sync_clock.real)

    def test_can_be_nested(self):
        with virtual_time(start=10) as outer:
            with virtual_time(start=20, process_wide=True) as inner:
                retry(WEEK)(ScriptedFunction([OSError, "ok"]))()
            retry(WEEK)(ScriptedFunction([OSError, OSError, "ok"]))()
        assert (inner.sleeps, outer.sleeps) == ([DAY], [DAY, DAY])
        assert (inner.now(), outer.now()) == (DAY + 20, 2 * DAY + 10)

    def test_ends_after_an_error(self):
        with pytest.raises(KeyError), virtual_time():
            raise KeyError
        assert sync_clock.current() is sync_clock.real
        assert async_clock.current() is async_clock.real

    @pytest.mark.needs("threads")
    def test_concurrent_threads_have_independent_clocks(self):
        both = Barrier(2, timeout=60)

        def test(days):
            with virtual_time() as clock:
                both.wait()
                retry(WEEK)(ScriptedFunction([*[OSError] * days, "ok"]))()
                both.wait()
                return clock.sleeps

        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(test, [2, 3])) == [[DAY] * 2, [DAY] * 3]

    @pytest.mark.needs("threads")
    def test_a_call_outside_of_it_does_not_stop_time(self):
        begun, over = Event(), Event()

        def wait():
            begun.set()
            over.wait()

        outside = Thread(target=retry(wait))
        outside.start()
        begun.wait()
        with virtual_time(stall_timeout=3600) as clock:
            retry(WEEK)(ScriptedFunction([OSError, "ok"]))()
        over.set()
        outside.join()
        assert clock.sleeps == [DAY]

    def test_closing_the_outer_block_first_raises(self):
        outer, inner = virtual_time(start=1), virtual_time()
        outer.__enter__()
        inner.__enter__()
        with pytest.raises(NestingError) as caught:
            outer.__exit__(None, None, None)
        inner.__exit__(None, None, None)
        message = str(caught.value)
        assert re.sub(r" \(opened at \S+\)", "", message) == (
            "virtual_time(start=1, process_wide=False, stall_timeout=5.0, "
            "allow_real_sleep=False) must be closed after virtual_time("
            "start=0.0, process_wide=False, stall_timeout=5.0, "
            "allow_real_sleep=False), opened inside it"
        )
        assert sync_clock.current() is sync_clock.real
        assert async_clock.current() is async_clock.real

    def test_closing_it_in_another_context_raises(self):
        block = virtual_time()
        block.__enter__()
        with pytest.raises(NestingError, match="must be closed in the thread or task"):
            contextvars.Context().run(block.__exit__, None, None, None)
        assert sync_clock.current() is sync_clock.real


class TestOtherVirtualClocks:
    """An event loop with virtual time works without retrykit's virtual time."""

    def test_works_with_looptime(self):
        async def main():
            loop = asyncio.get_running_loop()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(3600 * 24 * 3.5):
                    await aretry(WEEK)(AsyncScriptedFunction([OSError, ...]))()
            return loop.time()

        with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
            assert runner.run(main()) == 3.5 * DAY

    def test_works_with_the_mock_clock_of_trio(self):
        async def main():
            with trio.move_on_after(3.5 * DAY) as scope:
                await aretry(WEEK)(AsyncScriptedFunction([OSError, ...]))()
            return scope.cancelled_caught, trio.current_time()

        clock = trio.testing.MockClock(autojump_threshold=0)
        assert trio.run(main, clock=clock) == (True, 3.5 * DAY)


def test_a_sleep_cancelled_at_its_end_raises_cancelled_error():
    async def main():
        with virtual_time() as clock:
            sleeping = asyncio.create_task(clock.asleep(5))
            await asyncio.sleep(0)
            sleeping.cancel()
            clock.advance(5)
            with pytest.raises(asyncio.CancelledError):
                await sleeping
            await asyncio.sleep(0.01)
            return clock.now()

    assert asyncio.run(main()) == 5.0


def test_an_ended_trio_run_does_not_stop_time():
    async def main():
        from retrykit.testing._trio_backend import TrioBackend

        return TrioBackend(VirtualScheduler(0.0, 5.0))

    backend = trio.run(main)
    backend.post(print)
    backend.on_stop()
    assert not backend.holds_time()
