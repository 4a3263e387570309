"""Virtual time of waits that another thread or task ends."""

import asyncio
import math
import threading

import pytest

from retrykit import aretry, retry
from retrykit._internal.clocks import sync_clock
from retrykit._internal.loop_clock import async_clock
from retrykit.testing import FakeClock, TimeStalledError, virtual_time
from tests._support.optional_trio import trio


def never(_wake):
    return False


def by_nobody(_wake):
    return True


def at_once(wake):
    wake()
    wake()
    return True


class TestThreads:
    @pytest.mark.parametrize("delay", [5, math.inf])
    @pytest.mark.parametrize("arm", [never, at_once])
    def test_a_wait_that_ends_early_takes_no_time(self, clock, arm, delay):
        sync_clock.wait_until_woken(arm, delay)
        assert (clock.now(), clock.sleeps) == (0, [])

    def test_a_wait_ends_after_its_delay(self, clock):
        sync_clock.wait_until_woken(by_nobody, 5)
        assert (clock.now(), clock.sleeps) == (5, [])

    @pytest.mark.parametrize(("arm", "passed"), [(never, 0), (by_nobody, 5)])
    def test_one_that_blocks_an_event_loop_advances_the_time(self, clock, arm, passed):
        async def main():
            sync_clock.wait_until_woken(arm, 5)

        asyncio.run(main())
        assert clock.now() == passed

    @pytest.mark.needs("threads")
    @pytest.mark.parametrize("delay", [99, math.inf])
    def test_time_stands_still_from_the_moment_of_the_wake_up(self, delay):
        """The thread that wakes it may sleep before the other one runs."""
        times, wakes, waits = [], [], threading.Event()

        @retry
        def wait():
            def arm(wake):
                wakes.append(wake)
                waits.set()
                return True

            sync_clock.wait_until_woken(arm, delay)
            times.append(sync_clock.now())

        @retry
        def wake():
            thread = threading.Thread(target=wait)
            thread.start()
            assert waits.wait(20)
            clock.sleep(3)
            wakes[0]()
            clock.sleep(3)
            thread.join(20)
            times.append(clock.now())

        with virtual_time(process_wide=True) as clock:
            wake()
        assert times == [3, 6]

    def test_a_wait_that_nothing_ends_stalls(self):
        with (
            pytest.raises(TimeStalledError),
            virtual_time(stall_timeout=0.05),
        ):
            sync_clock.wait_until_woken(by_nobody, math.inf)


class TestTasks:
    @pytest.mark.parametrize("delay", [5, math.inf])
    @pytest.mark.parametrize("arm", [never, at_once])
    def test_a_wait_that_ends_early_takes_no_time(self, loop, arm, delay):
        async def main():
            with virtual_time() as clock:
                await async_clock.wait_until_woken(arm, delay)
                return clock.now(), clock.sleeps

        assert loop(main) == (0, [])

    @pytest.mark.parametrize("arm", [never, at_once])
    def test_a_wait_on_a_loop_of_the_clock_may_end_early(self, clock, arm):
        async def main():
            await async_clock.wait_until_woken(arm, 5)

        self.run(clock, "virtual loop", main)
        assert clock.now() == 0

    @pytest.mark.parametrize("run", ["asyncio", "trio", "virtual loop"])
    def test_a_wait_ends_after_its_delay(self, clock, run):
        async def main():
            await async_clock.wait_until_woken(by_nobody, 3600)
            return clock.now(), clock.sleeps

        assert self.run(clock, run, main) == (3600, [])

    @pytest.mark.parametrize("run", ["asyncio", "trio", "virtual loop"])
    @pytest.mark.parametrize("delay", [99, math.inf])
    def test_another_task_ends_a_wait_while_it_sleeps(self, clock, run, delay):
        wakes, times = [], []

        @aretry
        async def wait():
            def arm(wake):
                wakes.append(wake)
                return True

            await async_clock.wait_until_woken(arm, delay)
            times.append(clock.now())

        @aretry
        async def wake():
            await clock.asleep(3)
            wakes[0]()
            wakes[0]()
            await clock.asleep(3)
            times.append(clock.now())

        async def main():
            if run == "trio":
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(wait)
                    nursery.start_soon(wake)
            else:
                await asyncio.gather(wait(), wake())

        self.run(clock, run, main)
        assert times == [3, 6]

    @pytest.mark.parametrize("run", ["asyncio", "trio"])
    def test_a_wait_that_nothing_ends_stalls(self, run):
        async def main():
            await async_clock.wait_until_woken(by_nobody, math.inf)

        with (
            pytest.raises(TimeStalledError),
            virtual_time(stall_timeout=0.05) as clock,
        ):
            self.run(clock, run, main)

    @pytest.mark.needs("threads")
    @pytest.mark.parametrize("run", ["asyncio", "trio", "virtual loop"])
    @pytest.mark.parametrize("delay", [99, math.inf])
    def test_time_stands_still_from_the_moment_of_the_wake_up(self, run, delay):
        """The thread that wakes it may sleep before the loop runs."""
        times, wakes, waits = [], [], threading.Event()

        @aretry
        async def wait():
            def arm(wake):
                wakes.append(wake)
                waits.set()
                return True

            await async_clock.wait_until_woken(arm, delay)
            times.append(clock.now())

        @retry
        def wake():
            thread = threading.Thread(target=self.run, args=[clock, run, wait])
            thread.start()
            assert waits.wait(20)
            clock.sleep(3)
            wakes[0]()
            clock.sleep(3)
            thread.join(20)
            times.append(clock.now())

        with virtual_time(process_wide=True) as clock:
            wake()
        assert times == [3, 6]

    def test_needs_an_event_loop(self):
        waiting = FakeClock().await_until_woken(never, 1)
        with pytest.raises(RuntimeError, match="no event loop runs here"):
            waiting.send(None)

    def run(self, clock, name, main):
        if name == "trio":
            return trio.run(main)
        factory = clock.new_event_loop if name == "virtual loop" else None
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(main())
