"""Calls side by side in virtual time wake in the order of their times."""

import asyncio
import functools
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Thread

import pytest
import trio

from retrykit import Policy, aretry, current_state, retry, retrying, schedules as s
from retrykit._internal.clocks import sync_clock
from retrykit.testing import AsyncScriptedFunction, FakeClock, virtual_time
from retrykit.testing.scheduler import VirtualScheduler
from tests._support.side import DAY, WEEK, in_thread, once, together


class TestOnOneLoop:
    def test_calls_wake_in_the_order_of_their_times(self, loop):
        order = []

        async def call(*delays):
            script = AsyncScriptedFunction([*[OSError] * len(delays), "ok"])

            async def attempt():
                order.append(clock.now())
                await script()

            await aretry(schedule=[*delays], max_elapsed=None)(attempt)()

        clock = None

        async def main():
            nonlocal clock
            with virtual_time() as clock:
                await together(call(3, 3), call(1, 1, 1), call(2, 5))

        loop(main)
        assert order == [0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 3.0, 3.0, 6.0, 7.0]

    def test_hundreds_of_tasks_call_in_the_order_of_their_times(self, loop):
        policy = Policy(
            schedule=s.exponential(1).jitter(0.5), max_attempts=4, max_elapsed=None
        )
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
                await together(*(call() for _ in range(300)))

        loop(main)
        assert len(calls) == 1200
        assert calls == sorted(calls)
        assert calls == pytest.approx(sorted(due))
        assert len(set(calls)) == 901

    def test_gather_works(self):
        async def main():
            with virtual_time() as clock:
                results = await asyncio.gather(once(5), once(2), once(9))
            return results, clock.sleeps, clock.now()

        assert asyncio.run(main()) == (["ok"] * 3, [5.0, 2.0, 9.0], 9.0)

    def test_equals_wake_together_in_the_order_in_which_they_lay_down(self):
        order = []

        async def sleeper(name, clock):
            await clock.asleep(5)
            order.append((name, clock.now()))

        async def main():
            with virtual_time() as clock:
                await together(*(sleeper(name, clock) for name in range(50)))

        asyncio.run(main())
        assert order == [(name, 5.0) for name in range(50)]

    def test_threads_wake_in_the_order_of_their_times(self):
        calls, begun = [], Barrier(4)

        def call(number):
            def attempt():
                calls.append(clock.now())
                if not clock.now():
                    begun.wait()
                raise OSError

            Policy(schedule=[number, number], max_elapsed=None).run(attempt)

        with virtual_time(process_wide=True) as clock, ThreadPoolExecutor(4) as pool:
            list(pool.map(call, [4, 3, 2, 1]))
        assert calls == [0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 6.0, 8.0]

    def test_threads_and_tasks_share_one_time(self):
        order, begun = [], Event()

        def noted(delay):
            order.append((delay, clock.now()))
            begun.set()
            if len([each for each in order if each[0] == delay]) == 1:
                raise OSError

        async def anoted(delay):
            noted(delay)

        async def main():
            # Not to_thread, which would make it a call inside of this one.
            run = asyncio.get_running_loop().run_in_executor
            thread = run(None, retry(schedule=[3])(noted), 3)
            await asyncio.to_thread(begun.wait)
            calls = (aretry(schedule=[n])(anoted)(n) for n in (1, 4, 2))
            await asyncio.gather(thread, *calls)

        with virtual_time(process_wide=True) as clock:
            asyncio.run(aretry(main)())
        assert order[4:] == [(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0)]

    def test_a_task_that_is_cancelled_in_its_sleep_holds_up_nobody(self, loop):
        async def main():
            with virtual_time() as clock:
                try:
                    trio.lowlevel.current_task()
                except RuntimeError:
                    sleeper = asyncio.create_task(once(1))
                    await clock.asleep(0.5)
                    sleeper.cancel()
                else:
                    with trio.CancelScope() as scope:
                        async with trio.open_nursery() as nursery:
                            nursery.start_soon(lambda: once(1))
                            await clock.asleep(0.5)
                            scope.cancel()
                await once(5)
                return clock.now()

        assert loop(main) == 5.5


class TestOnSeveral:
    def test_two_loops_share_one_time(self):
        script, begun = AsyncScriptedFunction([OSError, "ok"]), Event()

        async def attempt():
            begun.set()
            return await script()

        def other():
            return asyncio.run(aretry(schedule=[3])(attempt)())

        async def main():
            # Not to_thread, which would make it a call inside of this one: while
            # this is at work, the other one cannot move time alone.
            thread = asyncio.get_running_loop().run_in_executor(None, other)
            await asyncio.to_thread(begun.wait)
            return await asyncio.gather(once(5), thread, once(1))

        with virtual_time(process_wide=True) as clock:
            assert asyncio.run(aretry(main)()) == ["ok", "ok", "ok"]
        assert script.times == [0.0, 3.0]
        assert clock.now() == 5.0

    def test_a_loop_that_is_gone_is_woken_no_more(self):
        """Its task sleeps for ever: it was not cancelled before its loop closed."""
        with virtual_time() as clock:
            gone = asyncio.new_event_loop()
            sleeper = gone.create_task(clock.asleep(1))
            gone.run_until_complete(asyncio.sleep(0))
            gone.close()
            clock.sleep(5)
            assert clock.now() == 5.0
            sleeper.get_coro().close()
            sleeper._log_destroy_pending = False  # noqa: SLF001  on purpose

    @pytest.mark.parametrize("kind", ["asyncio", "trio"])
    def test_a_loop_is_woken_from_another_thread(self, kind):
        lies, over = Event(), Event()
        run_sync = asyncio.to_thread if kind == "asyncio" else trio.to_thread.run_sync

        async def main():
            async def sleeping():
                lies.set()
                await clock.asleep(3)
                over.set()

            # A thread of an attempt holds time, so that the loop cannot move it.
            waiting = functools.partial(run_sync, over.wait)
            await together(aretry(waiting)(), sleeping())

        def run():
            return asyncio.run(main()) if kind == "asyncio" else trio.run(main)

        with virtual_time(process_wide=True) as clock:
            other = Thread(target=run)
            other.start()
            lies.wait()
            while other.is_alive():
                clock.advance(1)
                other.join(0.01)
            assert over.is_set()
            assert clock.now() >= 3

    def test_a_call_that_ends_in_another_thread_has_ended(self):
        with virtual_time(process_wide=True) as clock:
            for attempt in retrying():
                attempt.__enter__()
                in_thread(functools.partial(attempt.__exit__, None, None, None))
            clock.sleep(5)
            assert clock.now() == 5.0

    def test_a_run_of_trio_goes_on_when_nobody_sleeps_any_more(self):
        async def main():
            with virtual_time() as clock:
                await once(5)
                await trio.sleep(0.02)
                await once(5)
                return clock.now()

        assert trio.run(main) == 10.0

    def test_where_nobody_sleeps_time_does_not_move(self):
        scheduler = VirtualScheduler(5.0, 1.0)
        scheduler.move()
        assert scheduler.now == 5.0

    def test_a_task_that_outlives_its_call_sleeps_for_nobody(self):
        tasks = []

        async def leaves_a_task_behind():
            clock = sync_clock.current()
            tasks.append(asyncio.create_task(clock.asleep(10)))

        async def main():
            with virtual_time() as clock:
                await aretry(leaves_a_task_behind)()
                await asyncio.gather(once(5), *tasks)
                return clock.now()

        assert asyncio.run(main()) == 10.0

    def test_a_call_that_began_before_is_not_waited_for(self):
        with virtual_time() as clock:
            for attempt in retrying(WEEK):
                inner = virtual_time()
                with inner as other, attempt:
                    other.sleep(5)
                    if attempt.number == 1:
                        raise OSError
        assert clock.sleeps == [DAY]
        assert sys.getprofile() is None

    def test_what_was_slept_is_finite(self):
        clock = FakeClock()
        clock.sleep(1e308)
        clock.sleep(1e308)
        assert clock.now() < float("inf")
