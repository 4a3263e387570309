"""Waits that another thread or task ends, on the real clocks."""

import asyncio
import math
import signal
import threading
import time

import pytest

from retrykit._internal.clocks import SystemClock, sync_clock, wake_thread
from retrykit._internal.loop_clock import LoopClock, async_clock
from retrykit.testing import limit_retries
from tests._support.concurrency import under_asyncio, under_trio
from tests._support.optional_trio import trio

MOMENT = 0.003


def never(_wake):
    return False


def at_once(wake):
    wake()
    # More than once does no harm.
    wake()
    return True


def by_nobody(_wake):
    return True


class TestThreads:
    @pytest.mark.parametrize("delay", [5.0, math.inf])
    @pytest.mark.parametrize("arm", [never, at_once])
    def test_a_wait_ends_early(self, arm, delay):
        before = time.monotonic()
        SystemClock().wait_until_woken(arm, delay)
        assert time.monotonic() - before < 4

    @pytest.mark.parametrize("longest", [1e9, MOMENT / 4])
    def test_a_wait_ends_after_its_delay(self, longest):
        """Also one too long for a timer, which is split."""
        clock = SystemClock(longest_sleep=min(longest, 1e6))
        before = clock.now()
        clock.wait_until_woken(by_nobody, MOMENT)
        assert clock.now() - before >= MOMENT

    @pytest.mark.needs("threads")
    def test_another_thread_ends_a_wait(self):
        def arm(wake):
            threading.Thread(target=wake).start()
            return True

        before = time.monotonic()
        sync_clock.wait_until_woken(arm, 1e12)
        assert time.monotonic() - before < 20

    @pytest.mark.needs("signals")
    def test_a_signal_interrupts_a_wait(self):
        def interrupt(*_):
            raise KeyboardInterrupt

        previous = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, MOMENT)
        try:
            with pytest.raises(KeyboardInterrupt):
                sync_clock.wait_until_woken(by_nobody, math.inf)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)

    def test_a_lock_that_nobody_holds_is_left_alone(self):
        lock = threading.Lock()
        wake_thread(lock)
        assert not lock.locked()


class TestTasks:
    @pytest.mark.parametrize("delay", [5.0, math.inf])
    @pytest.mark.parametrize("arm", [never, at_once])
    def test_a_wait_ends_early(self, library, arm, delay):
        async def main():
            before = async_clock.now()
            await async_clock.wait_until_woken(arm, delay)
            return async_clock.now() - before

        assert library.run(main) < 1

    @pytest.mark.parametrize("run", [under_asyncio, under_trio])
    def test_a_wait_ends_after_its_delay(self, run):
        async def main():
            before = async_clock.now()
            await LoopClock().wait_until_woken(by_nobody, 3600)
            return async_clock.now() - before

        assert run(main) == pytest.approx(3600)

    def test_a_wait_for_ever_can_be_cancelled(self):
        async def main():
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(9):
                    await LoopClock().wait_until_woken(by_nobody, math.inf)

        under_asyncio(main)

    def test_a_wait_under_trio_can_be_cancelled(self):
        async def main():
            with trio.move_on_after(9) as scope:
                await LoopClock().wait_until_woken(by_nobody, math.inf)
            return scope.cancelled_caught

        assert under_trio(main)

    @pytest.mark.parametrize("delay", [5.0, math.inf])
    def test_a_callback_of_the_loop_ends_a_wait(self, delay):
        """It is no task: a signal handler may have interrupted the loop there."""

        async def main():
            def arm(wake):
                asyncio.get_running_loop().call_soon(wake)
                return True

            await LoopClock().wait_until_woken(arm, delay)

        asyncio.run(main())

    @pytest.mark.needs("threads")
    def test_another_thread_ends_a_wait(self, library):
        async def main():
            def arm(wake):
                threading.Thread(target=wake).start()
                return True

            await LoopClock().wait_until_woken(arm, math.inf)

        if library.trio:
            trio.run(main)
        else:
            asyncio.run(main())

    def test_a_wake_up_after_the_end_of_the_loop_is_an_error(self, library):
        wakes = []

        async def main():
            def arm(wake):
                wakes.append(wake)
                return False

            await LoopClock().wait_until_woken(arm, 1)

        library.run(main)
        with pytest.raises(RuntimeError):
            wakes[0]()


def test_skipping_delays_skips_no_waits(backend):
    woken = []

    def arm(wake):
        woken.append(wake)
        return False

    async def main():
        with limit_retries():
            await async_clock.wait_until_woken(arm, math.inf)

    if backend.name == "sync":
        with limit_retries():
            sync_clock.wait_until_woken(arm, math.inf)
    else:
        (trio.run if backend.name == "trio" else lambda fn: asyncio.run(fn()))(main)
    assert len(woken) == 1
