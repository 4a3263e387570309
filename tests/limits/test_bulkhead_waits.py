"""Concurrency limits: waits of threads, of tasks of asyncio and of trio."""

import asyncio
import threading

import pytest

from retrykit import RefusedError, aretry, retry
from retrykit.limits import Concurrency, Lease
from retrykit.testing import virtual_time
from tests._support.concurrency import eventually
from tests._support.optional_trio import trio

DEADLINE = 20.0


def free_of(limit):
    assert limit.metrics[:2] == (0, 0)


class InThread:
    """A function that runs in a thread, which must end soon."""

    def __init__(self, fn):
        self.results = []
        self._thread = threading.Thread(target=self._run, args=[fn], daemon=True)
        self._thread.start()

    def _run(self, fn):
        try:
            self.results.append(fn())
        except BaseException as error:  # noqa: BLE001  returned
            self.results.append(error)

    def result(self):
        self._thread.join(DEADLINE)
        [result] = self.results
        return result


def wait_in_thread(limit, at_most=None):
    """Wait in a thread, and return it once it waits; it gives the permit back."""

    def call():
        lease = limit.acquire()
        refusal = lease.wait(at_most)
        lease.succeeded()
        return refusal

    before = limit.metrics.waiting
    thread = InThread(call)
    eventually(lambda: limit.metrics.waiting == before + 1)
    return thread


async def wait_in_task(limit, at_most=None):
    lease = limit.acquire()
    assert isinstance(lease, Lease)
    refusal = await lease.wait_async(at_most)
    lease.succeeded()
    return refusal


def loop_in_thread(limit, run):
    """Wait in a task of an event loop of its own, in a thread."""
    before = limit.metrics.waiting
    thread = InThread(lambda: run(wait_in_task(limit)))
    eventually(lambda: limit.metrics.waiting == before + 1)
    return thread


def run_asyncio(coroutine):
    return asyncio.run(coroutine)


def run_trio(coroutine):
    try:
        return trio.run(lambda: coroutine)
    finally:
        # Where there is no trio, it is not run.
        coroutine.close()


async def checkpoint():
    if trio_runs():
        await trio.lowlevel.checkpoint()
    else:
        await asyncio.sleep(0)


def trio_runs():
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    return True


@pytest.mark.needs("threads")
class TestAcross:
    """A permit that comes back in one place wakes what waits in another."""

    @pytest.mark.parametrize("order", ["fifo", "lifo"])
    def test_a_thread_wakes_a_thread(self, order):
        limit = Concurrency(1, queue=5, order=order)
        running = limit.acquire()
        threads = [wait_in_thread(limit) for _ in range(5)]
        running.succeeded()
        assert [each.result() for each in threads] == [None] * 5
        free_of(limit)

    @pytest.mark.parametrize("run", [run_asyncio, run_trio])
    def test_a_thread_wakes_the_task_of_a_loop(self, run):
        limit = Concurrency(1, queue=5)
        running = limit.acquire()
        loops = [loop_in_thread(limit, run) for _ in range(3)]
        running.succeeded()
        assert [each.result() for each in loops] == [None] * 3
        free_of(limit)

    @pytest.mark.parametrize("run", [run_asyncio, run_trio])
    def test_the_task_of_a_loop_wakes_a_thread(self, run):
        limit = Concurrency(1, queue=5)

        async def main():
            async with limit.guard():
                await checkpoint()
                return wait_in_thread(limit)

        assert run(main()).result() is None
        free_of(limit)

    def test_loops_and_threads_wake_each_other_in_turn(self):
        limit = Concurrency(1, queue=9)
        running = limit.acquire()
        every = []
        for _ in range(3):
            every.append(wait_in_thread(limit))
            every.append(loop_in_thread(limit, run_asyncio))
            every.append(loop_in_thread(limit, run_trio))
        running.succeeded()
        assert [each.result() for each in every] == [None] * 9
        free_of(limit)

    def test_a_task_that_was_dropped_from_the_queue_is_woken(self):
        limit = Concurrency(1, queue=1, order="lifo")
        running = limit.acquire()
        threads = [wait_in_thread(limit)]
        loop = InThread(lambda: run_asyncio(wait_in_task(limit)))
        reason = "full: a newer call took its place"
        assert threads[0].result().reason == reason
        eventually(lambda: limit.metrics.total_displaced == 1)
        newest = limit.acquire()
        assert loop.result().reason == reason
        running.succeeded()
        assert newest.wait() is None
        newest.succeeded()
        free_of(limit)

    def test_a_new_size_wakes_those_that_wait(self):
        limit = Concurrency(1, queue=5)
        running = limit.acquire()
        threads = [wait_in_thread(limit) for _ in range(3)]
        limit.resize(4)
        assert [each.result() for each in threads] == [None] * 3
        running.succeeded()
        free_of(limit)

    def test_a_lease_that_is_given_back_by_another_thread_ends_its_wait(self):
        limit = Concurrency(1, queue=1)
        _running, waiting = limit.acquire(), limit.acquire()
        thread = InThread(waiting.wait)
        eventually(lambda: waiting.wake)
        waiting.ignored()
        assert thread.result().reason == "given back before its turn"

    def test_a_wait_ends_in_real_time(self):
        limit = Concurrency(1, queue=1)
        running = limit.acquire()
        text = "full: waited 1 ms for a place"
        assert limit.acquire().wait(at_most=1e-3).reason == text
        for run in (run_asyncio, run_trio):
            assert run(wait_in_task(limit, at_most=1e-3)).reason == text
        assert limit.metrics.total_timed_out == 3
        running.succeeded()
        free_of(limit)

    def test_a_permit_for_a_closed_loop_goes_to_the_next(self):
        limit = Concurrency(1, queue=2)
        running = limit.acquire()
        loop = asyncio.new_event_loop()
        task = loop.create_task(wait_in_task(limit))
        loop.call_soon(loop.call_soon, loop.stop)
        loop.run_forever()
        assert limit.metrics.waiting == 1
        thread = wait_in_thread(limit)
        loop.close()
        running.succeeded()
        assert thread.result() is None
        free_of(limit)
        # It is destroyed while it waits, as it is meant to be.
        task._log_destroy_pending = False  # noqa: SLF001  of asyncio


class TestWithinALoop:
    def test_a_lease_that_is_over_waits_no_more(self, loop):
        limit = Concurrency(1, queue=1)

        async def main():
            _running, waiting = limit.acquire(), limit.acquire()
            first = await waiting.wait_async(at_most=0)
            assert await waiting.wait_async() == first
            return first

        assert loop(main).reason == "full: waited 0 s for a place"

    def test_a_task_wakes_a_task(self, loop):
        limit = Concurrency(1, queue=3)
        order = []

        async def call(number):
            async with limit.guard():
                order.append(number)
                await checkpoint()

        async def main():
            if trio_runs():
                async with trio.open_nursery() as nursery:
                    for number in range(4):
                        nursery.start_soon(call, number)
            else:
                await asyncio.gather(*map(call, range(4)))

        loop(main)
        assert sorted(order) == [0, 1, 2, 3]
        free_of(limit)

    @pytest.mark.parametrize(("order", "expected"), [("fifo", 123), ("lifo", 321)])
    def test_tasks_take_turns_in_the_order(self, order, expected):
        limit = Concurrency(1, queue=3, order=order)
        seen = []

        async def call(number):
            async with limit.guard():
                seen.append(number)
                await asyncio.sleep(0)

        async def main():
            await asyncio.gather(*map(call, range(4)))

        asyncio.run(main())
        assert seen == [0, *map(int, str(expected))]

    def test_a_permit_of_a_task_that_is_cancelled_when_it_gets_it_goes_on(self, loop):
        limit = Concurrency(1, queue=2)

        async def trio_main():
            running = limit.acquire()
            async with trio.open_nursery() as nursery:
                scope = trio.CancelScope()

                async def first():
                    with scope:
                        await wait_in_task(limit)

                nursery.start_soon(first)
                await trio.testing.wait_all_tasks_blocked()
                nursery.start_soon(wait_in_task, limit)
                await trio.testing.wait_all_tasks_blocked()
                running.succeeded()
                scope.cancel()

        async def main():
            if trio_runs():
                await trio_main()
                return
            running = limit.acquire()
            first = asyncio.create_task(wait_in_task(limit))
            second = asyncio.create_task(wait_in_task(limit))
            await asyncio.sleep(0)
            running.succeeded()
            first.cancel()
            [cancelled, refusal] = await asyncio.gather(
                first, second, return_exceptions=True
            )
            assert isinstance(cancelled, asyncio.CancelledError)
            assert refusal is None

        loop(main)
        free_of(limit)
        assert limit.metrics.total_granted == 3

    def test_a_permit_that_comes_in_the_moment_of_a_timeout_is_kept(self):
        limit = Concurrency(1, queue=1)

        async def main(clock):
            running = limit.acquire()
            lease = limit.acquire()
            loop = asyncio.get_running_loop()
            loop.call_later(2, running.succeeded)
            assert await lease.wait_async(at_most=2) is None
            assert clock.now() == 2
            lease.succeeded()

        with (
            virtual_time() as clock,
            asyncio.Runner(loop_factory=clock.new_event_loop) as runner,
        ):
            runner.run(main(clock))
        free_of(limit)


class TestVirtualTime:
    @pytest.mark.parametrize("order", ["fifo", "lifo"])
    @pytest.mark.parametrize(("at_most", "waited"), [(5, 2), (1, 1), (None, 2)])
    def test_a_wait_of_a_thread_ends(self, clock, order, at_most, waited):
        limit = Concurrency(1, queue=1, max_wait="2s", order=order)
        _running = limit.acquire()
        reason = f"full: waited {waited} s for a place"
        assert limit.acquire().wait(at_most) == (reason, None)
        assert clock.now() == waited

    def test_time_that_passed_before_the_wait_counts(self, clock):
        limit = Concurrency(1, queue=1, max_wait="5s")
        _running, waiting = limit.acquire(), limit.acquire()
        clock.advance(4)
        assert waiting.wait().reason == "full: waited 1 s for a place"
        assert clock.now() == 5

    def test_a_wait_of_a_task_ends(self, loop):
        limit = Concurrency(1, queue=1, max_wait="1h")

        async def main():
            _running = limit.acquire()
            async with limit.guard():
                raise AssertionError

        if loop is trio.run:
            with virtual_time(), pytest.raises(RefusedError, match="waited 1 h"):
                loop(main)
        else:
            with pytest.raises(RefusedError, match="waited 1 h"):
                loop(main)

    @pytest.mark.parametrize("run", [run_asyncio, run_trio])
    @pytest.mark.parametrize("at_most", [None, 99])
    def test_a_task_is_woken_by_one_that_sleeps(self, run, at_most):
        """By retried calls, whose attempts hold time while they run."""
        limit = Concurrency(1, queue=2)
        times = []

        async def use(clock):
            lease = limit.acquire()
            assert (lease.delay and await lease.wait_async(at_most)) in {0, None}
            times.append(clock.now())
            await clock.asleep(3)
            lease.succeeded()

        async def main(clock):
            call = aretry()(use)
            if trio_runs():
                async with trio.open_nursery() as nursery:
                    for _ in range(3):
                        nursery.start_soon(call, clock)
            else:
                await asyncio.gather(*[call(clock) for _ in range(3)])

        with virtual_time() as clock:
            run(main(clock))
        assert times == [0, 3, 6]
        free_of(limit)

    @pytest.mark.needs("threads")
    @pytest.mark.parametrize("at_most", [None, 99])
    def test_a_thread_is_woken_by_one_that_sleeps(self, at_most):
        limit = Concurrency(1, queue=3)
        times = []
        started = threading.Barrier(3)

        @retry
        def use(clock):
            started.wait()
            lease = limit.acquire()
            if lease.delay:
                assert lease.wait(at_most) is None
            times.append(clock.now())
            clock.sleep(3)
            lease.succeeded()

        with virtual_time(process_wide=True) as clock:
            threads = [InThread(lambda: use(clock)) for _ in range(3)]
            assert [each.result() for each in threads] == [None] * 3
        assert times == [0, 3, 6]
        free_of(limit)

    @pytest.mark.needs("threads")
    def test_a_task_is_woken_by_a_thread(self):
        limit = Concurrency(1, queue=1)
        running = limit.acquire()
        with virtual_time(process_wide=True):
            for run in (run_asyncio, run_trio):
                loop = loop_in_thread(limit, run)
                running.succeeded()
                assert loop.result() is None
                running = limit.acquire()

    @pytest.mark.needs("threads")
    def test_a_task_of_a_virtual_loop_is_woken_by_a_thread(self):
        limit = Concurrency(1, queue=1)
        running = limit.acquire()
        with virtual_time(process_wide=True) as clock:

            def run(coroutine):
                with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
                    return runner.run(coroutine)

            loop = loop_in_thread(limit, run)
            running.succeeded()
            assert loop.result() is None
        free_of(limit)

    def test_a_wait_that_blocks_a_loop_advances_the_time(self, clock):
        limit = Concurrency(1, queue=1)

        async def main():
            _running = limit.acquire()
            return limit.acquire().wait(at_most=4)

        assert asyncio.run(main()).reason == "full: waited 4 s for a place"
        assert clock.now() == 4


class TestInterrupts:
    @pytest.mark.parametrize("granted", [False, True])
    def test_an_interrupt_of_a_wait_gives_back_what_it_has(self, granted):
        limit = Concurrency(1, queue=2)
        running, waiting, next_ = [limit.acquire() for _ in range(3)]

        class Interrupted:
            def now(self):
                return 0.0

            def wait_until_woken(self, arm, delay):
                assert arm(int)
                if granted:
                    running.succeeded()
                raise KeyboardInterrupt

        from retrykit._internal.clocks import sync_clock

        with sync_clock.use(Interrupted()), pytest.raises(KeyboardInterrupt):
            waiting.wait()
        running.succeeded()
        assert next_.wait(at_most=0) is None
        next_.succeeded()
        free_of(limit)

    def test_a_wake_up_without_a_permit_goes_on_waiting(self):
        """As after an interrupt of what granted it."""
        limit = Concurrency(1, queue=1)
        running, waiting = limit.acquire(), limit.acquire()

        class Early:
            time = woken = 0

            def now(self):
                return self.time

            def wait_until_woken(self, arm, delay):
                assert arm(int)
                self.time += 1
                self.woken += 1
                if self.woken == 3:
                    running.succeeded()

        from retrykit._internal.clocks import sync_clock

        with sync_clock.use(Early()):
            assert waiting.wait(at_most=9) is None
        assert sync_clock.current() is sync_clock.real
