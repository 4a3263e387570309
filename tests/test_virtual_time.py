"""Virtual time: days pass in milliseconds, and nobody is overtaken."""

import asyncio
import contextvars
import functools
import queue
import re
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Thread

import anyio
import anyio.to_thread
import pytest
import trio
import trio.testing

from retrykit import (
    Policy,
    aretry,
    aretrying,
    current_state,
    dialects,
    retry,
    retrying,
    schedules as s,
    state_of,
)
from retrykit.clocks import task, thread
from retrykit.errors import NestingError
from retrykit.testing import AsyncScript, FakeClock, Script, virtual_time
from retrykit.testing.timeline import Timeline

DAY = 86_400.0
WEEK = Policy(schedule=["1d"] * 7, max_attempts=None, max_elapsed=None)


def in_thread(fn):
    results = []
    thread = Thread(target=lambda: results.append(fn()))
    thread.start()
    thread.join()
    return results[0]


def once(delay):
    """Return a coroutine that sleeps once for *delay* in a retried call."""
    return aretry(schedule=[delay], max_elapsed=None)(AsyncScript([OSError, "ok"]))()


@pytest.fixture(params=["asyncio", "uvloop", "trio", "virtual loop"])
def loop(request):
    """What runs an async function: each kind of event loop there is."""
    if request.param == "trio":
        return trio.run

    def run(main):
        with virtual_time() as clock:
            factory = None
            if request.param == "uvloop":
                factory = pytest.importorskip("uvloop").new_event_loop
            elif request.param == "virtual loop":
                factory = clock.new_event_loop
            with asyncio.Runner(loop_factory=factory) as runner:
                return runner.run(main())

    return run


async def together(*calls):
    """Await coroutines side by side, in the way of the loop that runs."""
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        async with asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(call)
    else:
        # Trio begins the tasks of one round in an order of its own.
        async with trio.open_nursery() as nursery:
            for call in calls:
                nursery.start_soon(lambda call=call: call)


class TestTheClock:
    def test_shows_its_start_and_what_was_slept(self):
        with virtual_time(start=100) as clock:
            clock.sleep("1m")
            clock.advance(0.5)
            clock.sleep(2)
        assert (clock.now(), clock.naps) == (162.5, [60.0, 2.0])

    def test_is_slept_on_by_coroutines(self, loop):
        async def main():
            with virtual_time(start=5) as clock:
                await clock.asleep("1m")
                return clock.now(), clock.naps

        assert loop(main) == (65.0, [60.0])

    def test_outside_of_a_loop_no_coroutine_sleeps(self):
        sleep = FakeClock().asleep(1)
        with pytest.raises(RuntimeError, match="no event loop runs here"):
            sleep.send(None)

    def test_a_blocking_sleep_in_a_coroutine_holds_up_its_loop(self):
        """As it really would: the other one wakes late."""
        woken = []

        async def main():
            with virtual_time() as clock:

                async def other():
                    await clock.asleep(3)
                    woken.append(clock.now())

                async def blocking():
                    await clock.asleep(1)
                    clock.sleep(9)

                await together(other(), blocking())

        asyncio.run(main())
        assert woken == [10.0]

    def test_advancing_wakes_those_who_are_due_in_their_order(self):
        woken = []

        async def main():
            with virtual_time() as clock:

                async def sleeper(delay):
                    await clock.asleep(delay)
                    woken.append((delay, clock.now()))

                async def busy():
                    await clock.asleep(1)
                    clock.advance(6)

                await together(sleeper(5), sleeper(3), sleeper(8), busy())

        asyncio.run(main())
        assert woken == [(3, 7.0), (5, 7.0), (8, 8.0)]


class TestCalls:
    def test_a_week_passes_at_once(self, colour):
        calls = []

        @colour(dialects.hostname_verification())
        def verify():
            calls.append(clock.now())
            raise LookupError("not yet")

        before = time.monotonic()
        with virtual_time() as clock, pytest.raises(LookupError) as caught:
            verify()
        assert time.monotonic() - before < 60
        assert (len(calls), calls[-1]) == (76, 610_263.0)
        assert state_of(caught.value).elapsed == 610_263.0

    def test_their_limits_are_virtual_too(self, colour):
        @colour(schedule=s.constant("1h"), max_attempts=None, max_elapsed="1d")
        def fetch():
            clock.advance("2h")
            raise OSError

        with virtual_time() as clock, pytest.raises(OSError) as caught:
            fetch()
        assert clock.naps == [3600.0] * 8
        assert state_of(caught.value).elapsed == 26 * 3600

    def test_blocks_are_virtual_too(self):
        with virtual_time() as clock:
            for attempt in retrying(WEEK):
                with attempt:
                    if attempt.number < 3:
                        raise OSError
        assert clock.naps == [DAY, DAY]

    def test_async_blocks_are_virtual_too(self, loop):
        async def main():
            with virtual_time() as clock:
                async for attempt in aretrying(WEEK):
                    with attempt:
                        if attempt.number < 3:
                            raise OSError
                return clock.naps

        assert loop(main) == [DAY, DAY]

    def test_what_a_state_tells_is_virtual_too(self):
        told = []

        @retry(schedule=[30], max_elapsed="1m")
        def fetch():
            state = current_state()
            told.append((state.elapsed, state.remaining))
            if state.attempt == 1:
                raise OSError

        with virtual_time(start=7):
            fetch()
        assert told == [(0.0, 60.0), (30.0, 30.0)]


class TestScope:
    def test_is_this_context_and_its_tasks(self):
        async def main():
            with virtual_time() as clock:
                assert task.now() == 0.0
                await asyncio.create_task(once(5))
                await asyncio.to_thread(retry(schedule=[6])(Script([OSError, "ok"])))
            assert task.chosen() is task.real
            return clock.naps

        assert asyncio.run(main()) == [5.0, 6.0]

    def test_is_no_other_thread(self):
        with virtual_time():
            assert in_thread(lambda: thread.chosen() is thread.real)

    def test_is_every_thread_if_asked_to(self):
        call = retry(WEEK)(Script([OSError, OSError, "ok"]))
        with virtual_time(everywhere=True) as clock:
            assert in_thread(call) == "ok"
            assert in_thread(lambda: asyncio.run(once(5))) == "ok"
        assert clock.naps == [DAY, DAY, 5.0]
        assert in_thread(lambda: thread.chosen() is thread.real)

    def test_nests(self):
        with virtual_time(start=10) as outer:
            with virtual_time(start=20, everywhere=True) as inner:
                retry(WEEK)(Script([OSError, "ok"]))()
            retry(WEEK)(Script([OSError, OSError, "ok"]))()
        assert (inner.naps, outer.naps) == ([DAY], [DAY, DAY])
        assert (inner.now(), outer.now()) == (DAY + 20, 2 * DAY + 10)

    def test_ends_after_an_error(self):
        with pytest.raises(KeyError), virtual_time():
            raise KeyError
        assert thread.chosen() is thread.real
        assert task.chosen() is task.real

    def test_two_threads_do_not_see_each_other(self):
        both = Barrier(2, timeout=60)

        def test(days):
            with virtual_time() as clock:
                both.wait()
                retry(WEEK)(Script([*[OSError] * days, "ok"]))()
                both.wait()
                return clock.naps

        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(test, [2, 3])) == [[DAY] * 2, [DAY] * 3]

    def test_closing_the_outer_one_first_is_an_error(self):
        outer, inner = virtual_time(start=1), virtual_time()
        outer.__enter__()
        inner.__enter__()
        with pytest.raises(NestingError) as caught:
            outer.__exit__(None, None, None)
        told = str(caught.value)
        assert re.sub(r" \(opened at \S+\)", "", told) == (
            "virtual_time(start=1, everywhere=False, patience=5.0, real_sleep=False) "
            "must be closed after virtual_time(start=0.0, everywhere=False, "
            "patience=5.0, real_sleep=False), opened inside of it"
        )
        inner.__exit__(None, None, None)
        assert thread.chosen() is thread.real
        assert task.chosen() is task.real

    def test_closing_it_in_another_task_is_an_error(self):
        block = virtual_time()
        block.__enter__()
        with pytest.raises(NestingError, match="must be closed in the thread or task"):
            contextvars.Context().run(block.__exit__, None, None, None)
        assert thread.chosen() is thread.real


class TestSideBySide:
    def test_calls_wake_in_the_order_of_their_times(self, loop):
        order = []

        async def call(*delays):
            script = AsyncScript([*[OSError] * len(delays), "ok"])

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

    def test_a_thousand_tasks_call_in_the_order_of_their_times(self, loop):
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
                await together(*(call() for _ in range(1000)))

        loop(main)
        assert len(calls) == 4000
        assert calls == sorted(calls)
        assert calls == pytest.approx(sorted(due))
        assert len(set(calls)) == 3001

    def test_gather_works(self):
        async def main():
            with virtual_time() as clock:
                results = await asyncio.gather(once(5), once(2), once(9))
            return results, clock.naps, clock.now()

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
        calls = []

        def call(number):
            def attempt():
                calls.append(clock.now())
                raise OSError

            Policy(schedule=[number, number], max_elapsed=None).run(attempt)

        with virtual_time(everywhere=True) as clock, ThreadPoolExecutor(4) as pool:
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
            thread = asyncio.create_task(
                asyncio.to_thread(retry(schedule=[3])(noted), 3)
            )
            await asyncio.to_thread(begun.wait)
            calls = (aretry(schedule=[n])(anoted)(n) for n in (1, 4, 2))
            await asyncio.gather(thread, *calls)

        with virtual_time(patience=3600) as clock:
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

    def test_two_loops_share_one_time(self):
        script, begun = AsyncScript([OSError, "ok"]), Event()

        async def attempt():
            begun.set()
            return await script()

        def other():
            return asyncio.run(aretry(schedule=[3])(attempt)())

        async def main():
            thread = asyncio.create_task(asyncio.to_thread(other))
            # While this is at work, the other one cannot move time alone.
            await asyncio.to_thread(begun.wait)
            return await asyncio.gather(once(5), thread, once(1))

        with virtual_time(patience=3600) as clock:
            assert asyncio.run(aretry(main)()) == ["ok", "ok", "ok"]
        assert script.times == [0.0, 3.0]
        assert clock.now() == 5.0

    def test_a_loop_that_is_gone_is_woken_no_more(self):
        """Its task sleeps for ever: it was not cancelled before its loop closed."""
        with virtual_time(patience=0.05) as clock:
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

        with virtual_time(everywhere=True, patience=3600) as clock:
            other = Thread(target=run)
            other.start()
            lies.wait()
            while other.is_alive():
                clock.advance(1)
                other.join(0.01)

    def test_a_call_that_ends_in_another_thread_has_ended(self):
        with virtual_time(everywhere=True, patience=3600) as clock:
            for attempt in retrying():
                attempt.__enter__()
                in_thread(functools.partial(attempt.__exit__, None, None, None))
            clock.sleep(5)

    def test_a_run_of_trio_goes_on_when_nobody_sleeps_any_more(self):
        async def main():
            with virtual_time() as clock:
                await once(5)
                await trio.sleep(0.02)
                await once(5)
                return clock.now()

        assert trio.run(main) == 10.0

    def test_where_nobody_sleeps_time_does_not_move(self):
        timeline = Timeline(5.0, 1.0)
        timeline.move()
        assert timeline.now == 5.0

    def test_a_task_that_outlives_its_call_sleeps_for_nobody(self):
        tasks = []

        async def leaves_a_task_behind():
            clock = thread.chosen()
            tasks.append(asyncio.create_task(clock.asleep(10)))

        async def main():
            with virtual_time(patience=3600) as clock:
                await aretry(leaves_a_task_behind)()
                await asyncio.gather(once(5), *tasks)
                return clock.now()

        assert asyncio.run(main()) == 10.0

    def test_a_call_that_began_before_is_not_waited_for(self):
        with virtual_time(patience=3600) as clock:
            for attempt in retrying(WEEK):
                inner = virtual_time(patience=3600)
                with inner as other, attempt:
                    other.sleep(5)
                    if attempt.number == 1:
                        raise OSError
        assert clock.naps == [DAY]

    def test_what_was_slept_is_finite(self):
        clock = FakeClock()
        clock.sleep(1e308)
        clock.sleep(1e308)
        assert clock.now() < float("inf")


class TestRealThings:
    """Time stands still for what an attempt waits for."""

    def test_a_socket_is_not_overtaken(self):
        async def serve(reader, writer):
            await reader.readline()
            await asyncio.sleep(0.1)
            writer.write(b"data\n")
            writer.close()

        async def main():
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]

            async def fetch():
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"get\n")
                data = await reader.readline()
                writer.close()
                return data

            with virtual_time(patience=30):
                outcome, _ = await asyncio.gather(Policy().arun(fetch), once("7d"))
            server.close()
            return outcome

        outcome = asyncio.run(main())
        assert (outcome.value, outcome.state.elapsed) == (b"data\n", 0.0)

    def test_a_socket_of_trio_is_not_overtaken(self):
        outcomes = []

        async def serve(stream):
            await stream.receive_some()
            await trio.sleep(0.1)
            await stream.send_all(b"data")

        async def main():
            async with trio.open_nursery() as nursery:
                serving = functools.partial(trio.serve_tcp, serve, 0, host="127.0.0.1")
                listeners = await nursery.start(serving)

                async def fetch():
                    async with await trio.testing.open_stream_to_socket_listener(
                        listeners[0]
                    ) as stream:
                        await stream.send_all(b"get")
                        return await stream.receive_some()

                async def call():
                    outcomes.append(await Policy().arun(fetch))

                with virtual_time(patience=30):
                    await together(call(), once("7d"))
                nursery.cancel_scope.cancel()

        trio.run(main)
        assert [each.value for each in outcomes] == [b"data"]
        assert [each.state.elapsed for each in outcomes] == [0.0]

    def test_a_thread_of_an_attempt_is_not_overtaken(self, loop):
        outcomes = []

        async def fetch():
            try:
                trio.lowlevel.current_task()
            except RuntimeError:
                await asyncio.to_thread(time.sleep, 0.1)
            else:
                await trio.to_thread.run_sync(time.sleep, 0.1)

        async def call():
            outcomes.append(await Policy().arun(fetch))

        async def main():
            with virtual_time(patience=30):
                await together(call(), once("7d"))

        loop(main)
        assert [each.state.elapsed for each in outcomes] == [0.0]

    def test_an_attempt_in_another_thread_is_not_overtaken(self):
        begun = Event()

        def fetch():
            begun.set()
            end = time.monotonic() + 0.1
            while time.monotonic() < end:
                pass

        with virtual_time(everywhere=True, patience=30), ThreadPoolExecutor(1) as pool:
            outcome = pool.submit(Policy().run, fetch)
            begun.wait()
            retry(WEEK)(Script([OSError, "ok"]))()
        assert outcome.result().state.elapsed == 0.0

    def test_a_thread_that_was_begun_meanwhile_is_not_overtaken(self):
        up = Event()

        def begin():
            time.sleep(0.05)
            up.set()

        @retry(schedule=s.constant(10), max_attempts=None, max_elapsed="1m")
        def fetch():
            if not up.is_set():
                raise OSError

        with virtual_time(patience=30) as clock:
            server = Thread(target=begin)
            server.start()
            fetch()
            server.join()
        assert clock.naps == [10.0]

    def test_a_thread_of_a_pool_is_not_overtaken_in_its_second_task_either(self):
        first, up = Event(), Event()

        def begin():
            time.sleep(0.05)
            up.set()

        @retry(schedule=s.constant(10), max_attempts=None, max_elapsed="1m")
        def fetch():
            if not up.is_set():
                raise OSError

        with virtual_time(patience=0.2) as clock, ThreadPoolExecutor(1) as pool:
            waits = pool.submit(first.wait)
            clock.sleep(5)
            first.set()
            waits.result()
            clock.sleep(5)
            pool.submit(begin)
            fetch()
        assert clock.naps == [5.0, 5.0, 10.0]

    def test_a_timer_of_the_loop_in_an_attempt_is_not_overtaken(self):
        async def fetch():
            await asyncio.sleep(0.03)

        async def main():
            with virtual_time(patience=30, real_sleep=True):
                outcome, _ = await asyncio.gather(Policy().arun(fetch), once("7d"))
            return outcome

        assert asyncio.run(main()).state.elapsed == 0.0

    def test_calls_inside_of_an_attempt_do_not_hold_their_own_time(self, loop):
        async def outer():
            await together(once(5), once(7))
            await once(9)

        async def main():
            with virtual_time(patience=3600) as clock:
                await aretry(outer)()
                return clock.now()

        assert loop(main) == 16.0

    def test_an_attempt_that_waits_for_a_call_that_sleeps_does_not_hold_it(self, loop):
        async def main():
            slept = []

            async def waiting():
                while not slept:
                    await checkpoint()

            async def sleeping():
                await once(5)
                slept.append(True)

            with virtual_time(patience=0.05) as clock:
                await together(aretry(waiting)(), sleeping())
                return clock.now()

        async def checkpoint():
            try:
                trio.lowlevel.current_task()
            except RuntimeError:
                await asyncio.sleep(0)
            else:
                await trio.sleep(0.001)

        assert loop(main) == 5.0

    def test_where_nothing_real_can_come_there_is_no_need_for_patience(self):
        async def main():
            slept = asyncio.Event()

            async def sleeping():
                await once(5)
                slept.set()

            with virtual_time(patience=3600) as clock:
                await asyncio.gather(aretry(slept.wait)(), sleeping())
                return clock.now()

        assert asyncio.run(main()) == 5.0

    def test_in_trio_too(self):
        async def main():
            slept = trio.Event()

            async def sleeping():
                await once(5)
                slept.set()

            with virtual_time(patience=3600) as clock:
                await together(aretry(slept.wait)(), sleeping())
                return clock.now()

        assert trio.run(main) == 5.0

    def test_patience_ends_and_is_not_needed_twice(self):
        """The thread of an attempt waits for a call that sleeps: nobody can know."""
        slept = Event()

        def waiting():
            slept.wait()

        polling = Policy(schedule=[1] * 50, max_attempts=None)
        virtual = virtual_time(everywhere=True, patience=0.1)
        with virtual as clock, ThreadPoolExecutor(1) as pool:
            outcome = pool.submit(Policy().run, waiting)
            before = time.monotonic()
            retry(polling)(Script([*[OSError] * 50, "ok"]))()
            took = time.monotonic() - before
            slept.set()
        assert outcome.result().ok
        assert clock.now() == 50.0
        assert took < 4

    def test_what_a_signal_handler_raises_leaves_the_loop(self):
        """As pytest-timeout does it: the loop itself would log it and go on."""

        class TimedOutError(Exception):
            pass

        def raise_it(_signal, frame):
            # It comes while the loop looks around, as it nearly always does.
            if frame.f_globals["__name__"] != "retrykit.clocks":
                signal.setitimer(signal.ITIMER_REAL, 0.001)
                return
            raise TimedOutError

        async def main():
            with virtual_time(patience=3600):
                await asyncio.gather(once(5), asyncio.to_thread(time.sleep, 0.2))

        kept = signal.signal(signal.SIGALRM, raise_it)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            with pytest.raises(TimedOutError):
                asyncio.run(main())
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, kept)

    def test_after_an_interrupt_the_loop_goes_on(self):
        def interrupt(_signal, frame):
            # Elsewhere in asyncio's loop an interrupt may lose what is to be run.
            if frame.f_globals["__name__"] != "retrykit.clocks":
                signal.setitimer(signal.ITIMER_REAL, 0.001)
                return
            raise KeyboardInterrupt

        async def sleeping(clock):
            await clock.asleep(5)
            return clock.now()

        loop = asyncio.new_event_loop()
        kept = signal.signal(signal.SIGALRM, interrupt)
        try:
            with virtual_time(patience=3600) as clock:
                work = aretry(asyncio.to_thread)(time.sleep, 0.3)
                waiting = loop.create_task(work)
                first = loop.create_task(sleeping(clock))
                for _ in range(5):
                    signal.setitimer(signal.ITIMER_REAL, 0.02)
                    with pytest.raises(KeyboardInterrupt):
                        loop.run_until_complete(first)
                assert loop.run_until_complete(first) == 5.0
                loop.run_until_complete(waiting)
        finally:
            signal.signal(signal.SIGALRM, kept)
            loop.close()

    def test_two_clocks_on_one_loop_do_not_disturb_each_other(self):
        async def test():
            with virtual_time(patience=3600) as clock:
                await once(5)
                return clock.now()

        async def main():
            return await asyncio.gather(test(), test())

        assert asyncio.run(main()) == [5.0, 5.0]

    def test_a_task_that_asks_again_and_again_holds_nobody_up(self):
        async def main():
            with virtual_time(patience=3600):
                call = asyncio.create_task(once(5))
                while not call.done():  # noqa: ASYNC110  it is what is tested
                    await asyncio.sleep(0)

        asyncio.run(main())

    def test_a_thread_of_ones_own_that_serves_attempts_is_not_overtaken(self):
        """It was there before, and waits for work as no pool does."""
        jobs = queue.SimpleQueue()

        def serve():
            while (job := jobs.get()) is not None:
                time.sleep(0.05)
                job()

        async def ask():
            loop = asyncio.get_running_loop()
            answer = loop.create_future()
            jobs.put(lambda: loop.call_soon_threadsafe(answer.set_result, 1))
            return await answer

        async def main():
            with virtual_time(patience=30):
                outcome, _ = await asyncio.gather(Policy().arun(ask), once("7d"))
            return outcome

        server = Thread(target=serve)
        server.start()
        try:
            assert asyncio.run(main()).state.elapsed == 0.0
        finally:
            jobs.put(None)
            server.join()

    def test_threads_of_anyio_are_not_overtaken(self):
        async def main():
            await anyio.to_thread.run_sync(time.sleep, 0)
            work = functools.partial(anyio.to_thread.run_sync, time.sleep, 0.05)
            with virtual_time(patience=30):
                outcome, _ = await asyncio.gather(Policy().arun(work), once("7d"))
            return outcome

        assert asyncio.run(main()).state.elapsed == 0.0

    def test_a_thread_with_the_number_of_another_is_not_overtaken(self):
        up = Event()

        def begin():
            time.sleep(0.1)
            up.set()

        @retry(schedule=[10] * 5, max_elapsed=None)
        def fetch():
            if not up.is_set():
                raise OSError

        first = Thread(target=time.sleep, args=[0.02])
        first.start()
        with virtual_time(patience=30) as clock:
            first.join()
            second = Thread(target=begin)
            second.start()
            fetch()
            second.join()
        assert clock.naps == [10.0]

    @pytest.mark.parametrize("way", ["timeout", "wait_for"])
    def test_a_timeout_of_an_attempt_that_waits_for_a_call_is_no_false_one(self, way):
        async def main():
            slept = asyncio.Event()

            async def waiting():
                if way == "wait_for":
                    await asyncio.wait_for(slept.wait(), 3)
                    return
                async with asyncio.timeout(3):
                    await slept.wait()

            async def sleeping():
                await once(5)
                slept.set()

            with virtual_time(patience=3600) as clock:
                await asyncio.gather(aretry(waiting, max_attempts=1), sleeping())
                return clock.now()

        async def aretry(fn, **changes):
            return await Policy(**changes).acall(fn)

        assert asyncio.run(main()) == 5.0

    def test_a_timeout_shorter_than_patience_is_no_false_one(self):
        """A connection is open that nobody uses: something real might come."""

        async def main():
            slept = asyncio.Event()

            async def waiting():
                async with asyncio.timeout(0.4):
                    await slept.wait()

            async def sleeping():
                await once(5)
                slept.set()

            async with await asyncio.start_server(print, "127.0.0.1", 0):
                with virtual_time(patience=3600) as clock:
                    await asyncio.gather(aretry(waiting)(), sleeping())
                    return clock.now()

        assert asyncio.run(main()) == 5.0

    def test_a_socket_outside_of_calls_is_not_overtaken_on_any_loop(self, loop):
        ready = []

        @aretry(schedule=[10] * 5, max_elapsed=None)
        async def poll():
            if not ready:
                raise OSError

        async def ask(address):
            reader, writer = await asyncio.open_connection(*address)
            await reader.read()
            writer.close()
            ready.append(True)

        async def main():
            try:
                trio.lowlevel.current_task()
            except RuntimeError:
                pass
            else:
                pytest.skip("it is written for asyncio")
            with socket.create_server(("127.0.0.1", 0)) as listener:
                server = Thread(target=serve, args=[listener])
                server.start()
                with virtual_time(patience=30) as clock:
                    await asyncio.gather(poll(), ask(listener.getsockname()))
                server.join()
            return clock.naps

        def serve(listener):
            connection, _ = listener.accept()
            with connection:
                time.sleep(0.1)

        assert loop(main) == [10.0]

    def test_a_call_that_began_before_keeps_the_time_that_it_began_with(self):
        begun, go = Event(), Event()
        outcomes = []

        @retry(schedule=[1], max_attempts=1)
        def fetch(*, fails):
            if fails:
                begun.set()
                go.wait()
                raise OSError

        def call():
            try:
                fetch(fails=True)
            except OSError as error:
                outcomes.append(state_of(error))

        fetch(fails=False)
        thread = Thread(target=call)
        thread.start()
        begun.wait()
        with virtual_time(everywhere=True):
            go.set()
            thread.join()
        assert 0 <= outcomes[0].elapsed < 60


class TestTheVirtualLoop:
    def run(self, main):
        with (
            virtual_time() as clock,
            asyncio.Runner(loop_factory=clock.new_event_loop) as runner,
        ):
            return runner.run(main())

    def test_its_timeouts_and_sleeps_are_virtual(self):
        async def main():
            loop = asyncio.get_running_loop()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(100):
                    await aretry(WEEK)(AsyncScript([OSError, ...]))()
            await asyncio.wait_for(asyncio.sleep(50), 60)
            return loop.time(), thread.now(), thread.chosen().naps

        assert self.run(main) == (150.0, 150.0, [DAY])

    def test_a_timeout_of_each_attempt_is_virtual(self):
        @aretry(schedule=[10, 10], max_elapsed=None)
        async def fetch():
            async with asyncio.timeout(5):
                await asyncio.sleep(3600)

        async def main():
            with pytest.raises(TimeoutError) as caught:
                await fetch()
            return state_of(caught.value).elapsed

        assert self.run(main) == 35.0

    def test_blocking_calls_share_its_time(self):
        async def main():
            retry(schedule=[100], max_elapsed=None)(Script([OSError, "ok"]))()
            await asyncio.sleep(50)
            return asyncio.get_running_loop().time()

        assert self.run(main) == 150.0

    def test_a_thread_is_not_overtaken_by_its_timeouts(self):
        async def main():
            async with asyncio.timeout(60):
                await asyncio.to_thread(time.sleep, 0.1)
            await asyncio.to_thread(time.sleep, 0.001)
            return asyncio.get_running_loop().time()

        assert self.run(main) == 0.0

    def test_a_socket_is_not_overtaken_by_its_timeouts(self):
        async def main():
            with socket.create_server(("127.0.0.1", 0)) as listener:
                server = Thread(target=serve, args=[listener])
                server.start()
                async with asyncio.timeout(60):
                    reader, writer = await asyncio.open_connection(
                        *listener.getsockname()
                    )
                    writer.write(b"get")
                    data = await reader.read()
                    writer.close()
                server.join()
            return data, asyncio.get_running_loop().time()

        def serve(listener):
            connection, _ = listener.accept()
            with connection:
                connection.recv(10)
                time.sleep(0.1)
                connection.sendall(b"data")

        assert self.run(main) == (b"data", 0.0)

    def test_a_server_that_only_listens_holds_time_once(self):
        async def main():
            loop = asyncio.get_running_loop()
            server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
            before = time.monotonic()
            for _ in range(20):
                await asyncio.sleep(3600)
            server.close()
            return loop.time(), time.monotonic() - before

        elapsed, took = self.run(main)
        assert elapsed == 20 * 3600
        assert took < 10

    def test_it_moves_by_steps_that_its_clock_can_hardly_show(self):
        async def main():
            for start in (1e7, 1e9, 1e15, 1e300):
                thread.chosen().advance(start)
                await asyncio.sleep(1e-9)
                await asyncio.sleep(1)
            return asyncio.get_running_loop().time()

        assert self.run(main) == pytest.approx(1e300)

    def test_equal_times_come_in_the_order_in_which_they_were_asked_for(self):
        order = []

        async def main():
            loop = asyncio.get_running_loop()
            for number in range(50):
                loop.call_later(5, order.append, number)
            await asyncio.gather(*(call(number) for number in range(50, 100)))

        async def call(number):
            await once(5)
            order.append(number)

        self.run(main)
        assert order == [*range(100)]

    def test_a_pool_is_waited_for_with_all_patience(self):
        async def main():
            async with asyncio.timeout(3600):
                await asyncio.to_thread(time.sleep, 1.1)
            return asyncio.get_running_loop().time()

        assert self.run(main) == 0.0

    def test_it_watches_files_as_other_loops_do(self):
        async def main():
            loop = asyncio.get_running_loop()
            one, other = socket.socketpair()
            with one, other:
                one.setblocking(False)
                readable, writable = asyncio.Event(), asyncio.Event()
                loop.add_reader(one, readable.set)
                loop.add_writer(one, writable.set)
                await writable.wait()
                loop.remove_writer(one)
                other.send(b"x")
                await readable.wait()
                loop.remove_reader(one)

        self.run(main)


class TestOtherVirtualTimes:
    """Where the loop's own time is virtual, retrykit obeys it."""

    def test_looptime_works_unchanged(self):
        looptime = pytest.importorskip("looptime")

        async def main():
            loop = asyncio.get_running_loop()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(3600 * 24 * 3.5):
                    await aretry(WEEK)(AsyncScript([OSError, ...]))()
            return loop.time()

        with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
            assert runner.run(main()) == 3.5 * DAY

    def test_the_mock_clock_of_trio_works_unchanged(self):
        async def main():
            with trio.move_on_after(3.5 * DAY) as scope:
                await aretry(WEEK)(AsyncScript([OSError, ...]))()
            return scope.cancelled_caught, trio.current_time()

        clock = trio.testing.MockClock(autojump_threshold=0)
        assert trio.run(main, clock=clock) == (True, 3.5 * DAY)
