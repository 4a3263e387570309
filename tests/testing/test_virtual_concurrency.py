"""Concurrent calls in virtual time wake in the order of their times."""

import asyncio
import functools
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Thread

import pytest

from retrykit import Policy, aretry, current_state, retry, retrying, schedules as s
from retrykit._internal.clocks import sync_clock
from retrykit.testing import AsyncScriptedFunction, FakeClock, virtual_time
from retrykit.testing._scheduler import VirtualScheduler
from tests._support.concurrency import (
    DAY,
    WEEK,
    gather,
    in_own_context,
    in_thread,
    sleep_once,
)
from tests._support.optional_trio import trio


class TestOneEventLoop:
    def test_calls_wake_in_the_order_of_their_times(self, loop):
        order = []

        async def call(*delays):
            script = AsyncScriptedFunction([*[OSError] * len(delays), "ok"])

            async def attempt():
                order.append(clock.now())
                await script()

            await aretry(schedule=[*delays])(attempt)()

        clock = None

        async def main():
            nonlocal clock
            with virtual_time() as clock:
                await gather(call(3, 3), call(1, 1, 1), call(2, 5))

        loop(main)
        assert order == [0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 3.0, 3.0, 6.0, 7.0]

    @pytest.mark.thorough
    def test_hundreds_of_tasks_call_in_the_order_of_their_times(self, loop):
        policy = Policy(schedule=s.exponential(1).jitter(0.5), max_attempts=4)
        calls, due = [], []

        async def call():
            async def attempt():
                state = current_state()
                calls.append(clock.now())
                due.append(sum(failure.delay for failure in state.failures))
                raise OSError

            await policy.arun(attempt)

        clock = None

        async def main():
            nonlocal clock
            with virtual_time() as clock:
                await gather(*(call() for _ in range(300)))

        loop(main)
        assert len(calls) == 1200
        assert calls == sorted(calls)
        assert calls == pytest.approx(sorted(due))
        assert len(set(calls)) == 901

    def test_gather_works(self):
        async def main():
            with virtual_time() as clock:
                results = await asyncio.gather(
                    sleep_once(5), sleep_once(2), sleep_once(9)
                )
            return results, clock.sleeps, clock.now()

        assert asyncio.run(main()) == (["ok"] * 3, [5.0, 2.0, 9.0], 9.0)

    def test_equal_times_wake_in_the_order_of_their_sleeps(self):
        order = []

        async def sleeper(name, clock):
            await clock.asleep(5)
            order.append((name, clock.now()))

        async def main():
            with virtual_time() as clock:
                await gather(*(sleeper(name, clock) for name in range(50)))

        asyncio.run(main())
        assert order == [(name, 5.0) for name in range(50)]

    @pytest.mark.needs("threads")
    def test_threads_wake_in_the_order_of_their_times(self):
        calls, begun = [], Barrier(4)

        def call(number):
            def attempt():
                calls.append(clock.now())
                if not clock.now():
                    begun.wait()
                raise OSError

            Policy(schedule=[number, number]).run(attempt)

        with virtual_time(process_wide=True) as clock, ThreadPoolExecutor(4) as pool:
            list(pool.map(call, [4, 3, 2, 1]))
        assert calls == [0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 6.0, 8.0]

    @pytest.mark.needs("threads")
    def test_threads_and_tasks_share_one_time(self):
        order, begun = [], Event()

        def attempt(delay):
            order.append((delay, clock.now()))
            begun.set()
            if len([each for each in order if each[0] == delay]) == 1:
                raise OSError

        async def aattempt(delay):
            attempt(delay)

        async def main():
            # Not to_thread, which would make it a nested call.
            run = asyncio.get_running_loop().run_in_executor
            thread = run(None, retry(schedule=[3])(attempt), 3)
            await asyncio.to_thread(begun.wait)
            calls = (aretry(schedule=[n])(aattempt)(n) for n in (1, 4, 2))
            await asyncio.gather(thread, *calls)

        with virtual_time(process_wide=True) as clock:
            asyncio.run(aretry(main)())
        assert order[4:] == [(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0)]

    def test_a_task_that_is_cancelled_in_its_sleep_does_not_stop_time(self, loop):
        async def main():
            with virtual_time() as clock:
                try:
                    trio.lowlevel.current_task()
                except RuntimeError:
                    sleeper = asyncio.create_task(sleep_once(1))
                    await clock.asleep(0.5)
                    sleeper.cancel()
                else:
                    with trio.CancelScope() as scope:
                        async with trio.open_nursery() as nursery:
                            nursery.start_soon(lambda: sleep_once(1))
                            await clock.asleep(0.5)
                            scope.cancel()
                await sleep_once(5)
                return clock.now()

        assert loop(main) == 5.5


class TestSeveralLoopsAndThreads:
    @pytest.mark.needs("threads")
    def test_two_loops_share_one_time(self):
        script, begun = AsyncScriptedFunction([OSError, "ok"]), Event()

        async def attempt():
            begun.set()
            return await script()

        def other():
            return asyncio.run(aretry(schedule=[3])(attempt)())

        async def main():
            # Not to_thread, which would make it a nested call. While this call is
            # running, the other one cannot move time alone.
            thread = asyncio.get_running_loop().run_in_executor(None, other)
            await asyncio.to_thread(begun.wait)
            return await asyncio.gather(sleep_once(5), thread, sleep_once(1))

        with virtual_time(process_wide=True) as clock:
            assert asyncio.run(aretry(main)()) == ["ok", "ok", "ok"]
        assert script.times == [0.0, 3.0]
        assert clock.now() == 5.0

    def test_a_sleep_on_a_closed_loop_does_not_stop_time(self):
        """Its task sleeps forever, since the loop closed without cancelling it."""
        with virtual_time() as clock:
            gone = asyncio.new_event_loop()
            sleeper = gone.create_task(clock.asleep(1))
            gone.run_until_complete(asyncio.sleep(0))
            gone.close()
            clock.sleep(5)
            assert clock.now() == 5.0
            sleeper.get_coro().close()
            sleeper._log_destroy_pending = False  # noqa: SLF001  avoid a message

    @pytest.mark.needs("threads")
    @pytest.mark.parametrize("kind", ["asyncio", "trio"])
    def test_a_loop_is_woken_from_another_thread(self, kind):
        sleeping, over = Event(), Event()
        run_sync = asyncio.to_thread if kind == "asyncio" else trio.to_thread.run_sync

        async def main():
            async def sleep():
                sleeping.set()
                await clock.asleep(3)
                over.set()

            # A running attempt in a thread prevents the loop from moving time.
            waiting = functools.partial(run_sync, over.wait)
            await gather(aretry(waiting)(), sleep())

        def run():
            return asyncio.run(main()) if kind == "asyncio" else trio.run(main)

        with virtual_time(process_wide=True) as clock:
            other = Thread(target=run)
            other.start()
            sleeping.wait()
            while other.is_alive():
                clock.advance(1)
                other.join(0.01)
            assert over.is_set()
            assert clock.now() >= 3

    @in_own_context
    def test_a_call_that_ends_in_another_thread_does_not_stop_time(self):
        with virtual_time(process_wide=True) as clock:
            for attempt in retrying():
                attempt.__enter__()
                in_thread(functools.partial(attempt.__exit__, None, None, None))
            clock.sleep(5)
            assert clock.now() == 5.0

    def test_a_trio_run_continues_after_a_real_sleep(self):
        async def main():
            with virtual_time() as clock:
                await sleep_once(5)
                await trio.sleep(0.02)
                await sleep_once(5)
                return clock.now()

        assert trio.run(main) == 10.0

    def test_time_does_not_move_without_sleeps(self):
        scheduler = VirtualScheduler(5.0, 1.0)
        scheduler.move()
        assert scheduler.now == 5.0

    def test_a_task_that_outlives_its_call_does_not_stop_time(self):
        tasks = []

        async def start_task():
            clock = sync_clock.current()
            tasks.append(asyncio.create_task(clock.asleep(10)))

        async def main():
            with virtual_time() as clock:
                await aretry(start_task)()
                await asyncio.gather(sleep_once(5), *tasks)
                return clock.now()

        assert asyncio.run(main()) == 10.0

    def test_an_attempt_of_an_outer_clock_does_not_stop_time(self):
        with virtual_time() as clock:
            for attempt in retrying(WEEK):
                inner = virtual_time()
                with inner as other, attempt:
                    other.sleep(5)
                    if attempt.number == 1:
                        raise OSError
        assert clock.sleeps == [DAY]
        assert sys.getprofile() is None

    def test_time_stays_finite_after_huge_sleeps(self):
        clock = FakeClock()
        clock.sleep(1e308)
        clock.sleep(1e308)
        assert clock.now() < float("inf")
