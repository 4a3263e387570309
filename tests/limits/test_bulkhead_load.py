"""No permit of a concurrency limit is lost, and none is given twice."""

import asyncio
import threading

import pytest

from retrykit import RefusedError
from retrykit.limits import Concurrency, Lease
from retrykit.testing import virtual_time
from tests._support.concurrency import switching_often
from tests._support.optional_trio import trio
from tests._support.thorough import first_are_quick

THREADS = 64


class Gauge:
    """How many calls run, and how many did at most."""

    def __init__(self):
        self.running, self.most, self.calls = [], 0, 0

    def __enter__(self):
        self.running.append(1)
        self.most = max(self.most, len(self.running))

    def __exit__(self, *_):
        self.running.pop()
        self.calls += 1


def on_threads(fn, threads=THREADS):
    """Run a function with the number of its thread on many threads at once."""
    start, errors = threading.Barrier(threads), []

    def target(number):
        start.wait()
        try:
            fn(number)
        except BaseException as error:  # noqa: BLE001  raised below
            errors.append(error)

    every = [
        threading.Thread(target=target, args=[n], daemon=True) for n in range(threads)
    ]
    with switching_often():
        for thread in every:
            thread.start()
        for thread in every:
            thread.join(60)
            assert not thread.is_alive(), "waits for ever"
    if errors:
        raise errors[0]


def is_idle(limit):
    return limit.metrics[:2] == (0, 0)


@pytest.mark.needs("threads")
class TestThreads:
    @pytest.mark.parametrize("at_most", [1, 2, 7, 63])
    def test_64_threads_get_as_many_permits_as_there_are(self, at_most):
        limit, answers = Concurrency(at_most), []
        on_threads(lambda _: answers.append(limit.acquire()))
        granted = [each for each in answers if isinstance(each, Lease)]
        assert len(granted) == at_most
        assert limit.metrics.total_refused == THREADS - at_most
        on_threads(lambda number: granted[number % at_most].succeeded())
        assert is_idle(limit)

    @pytest.mark.parametrize("order", ["fifo", "lifo"])
    @pytest.mark.parametrize("at_most", [1, 5])
    def test_64_threads_all_get_their_turn(self, at_most, order):
        limit, gauge = Concurrency(at_most, queue=THREADS, order=order), Gauge()

        def call(number):
            for step in range(20):
                lease = limit.acquire()
                assert not lease.delay or lease.wait() is None
                with gauge:
                    pass
                if (number + step) % 3:
                    lease.succeeded()
                # Else it is dropped.
                del lease

        on_threads(call)
        assert gauge.most <= at_most
        assert gauge.running == []
        assert limit.metrics.total_granted == THREADS * 20
        assert is_idle(limit)

    @pytest.mark.parametrize("order", ["fifo", "lifo"])
    def test_64_threads_that_give_up_lose_nothing(self, order):
        limit, gauge = Concurrency(2, queue=9, order=order), Gauge()
        ended = []

        def call(number):
            for step in range(30):
                lease = limit.acquire()
                if not isinstance(lease, Lease):
                    ended.append("refused")
                    continue
                refusal = lease.delay and lease.wait((number + step) % 4 / 10_000)
                if refusal:
                    ended.append(refusal.reason.split()[1])
                    continue
                with gauge:
                    if number == step:
                        limit.resize(1 + number % 2)
                ended.append("granted")
                lease.failed()

        on_threads(call)
        metrics = limit.metrics
        assert gauge.most <= 2
        assert is_idle(limit)
        assert ended.count("refused") == metrics.total_refused
        assert ended.count("waited") == metrics.total_timed_out
        assert ended.count("a") == metrics.total_displaced
        assert ended.count("granted") == metrics.total_granted
        assert len(ended) == sum(metrics[3:]) == THREADS * 30

    def test_threads_and_the_tasks_of_loops_share_it(self):
        limit, gauge = Concurrency(3, queue=1000), Gauge()

        async def task():
            async with limit.guard():
                with gauge:
                    await asyncio.sleep(0)

        async def trio_task():
            async with limit.guard():
                with gauge:
                    await trio.lowlevel.checkpoint()

        async def tasks():
            await asyncio.gather(*[task() for _ in range(40)])

        async def trio_tasks():
            async with trio.open_nursery() as nursery:
                for _ in range(40):
                    nursery.start_soon(trio_task)

        def call(number):
            if number % 4 == 0:
                asyncio.run(tasks())
            elif number % 4 == 1:
                trio.run(trio_tasks)
            else:
                for _ in range(20):
                    with limit.guard(), gauge:
                        pass

        on_threads(call, threads=12)
        assert gauge.most <= 3
        assert limit.metrics.total_granted == 6 * 40 + 6 * 20
        assert is_idle(limit)


class TestTasks:
    @pytest.mark.thorough
    @pytest.mark.parametrize("order", first_are_quick(1, ["fifo", "lifo"]))
    def test_10_000_tasks_lose_no_permit(self, order):
        """Cancelled or not, and whatever the order."""
        limit, gauge = Concurrency(3, queue=6_000, order=order, max_wait=50), Gauge()

        async def main(clock):
            async def call(number):
                async with limit.guard():
                    with gauge:
                        if number % 3:
                            raise TypeError
                        await clock.asleep(1)

            tasks = [asyncio.create_task(call(number)) for number in range(10_000)]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            return await asyncio.gather(*tasks, return_exceptions=True)

        with virtual_time() as clock:
            done = asyncio.run(main(clock))
        metrics = limit.metrics
        assert gauge.most == 3
        assert gauge.running == []
        refused = sum(isinstance(each, RefusedError) for each in done)
        assert refused <= sum(metrics[4:])
        assert metrics.total_granted >= gauge.calls
        assert is_idle(limit)

    @pytest.mark.thorough
    def test_10_000_tasks_all_get_their_turn(self):
        limit, seen = Concurrency(5, queue=10_000), []

        async def call(number):
            async with limit.guard():
                seen.append(number)
                await asyncio.sleep(0)

        async def main():
            await asyncio.gather(*map(call, range(10_000)))

        asyncio.run(main())
        assert seen == [*range(10_000)]
        assert is_idle(limit)


async def steps(number):
    for _ in range(number):
        await asyncio.sleep(0)


@pytest.mark.parametrize("form", ["decorator", "block"])
@pytest.mark.parametrize("after", range(9))
def test_a_task_that_is_cancelled_at_any_await_gives_all_back(form, after):
    limit = Concurrency(1, queue=2)

    async def main():
        if form == "decorator":
            call = limit(steps)
        else:

            async def call(number):
                async with limit.guard():
                    await steps(number)

        running, task, other = [asyncio.create_task(call(3)) for _ in range(3)]
        await steps(after)
        task.cancel()
        await asyncio.wait([running, task, other])
        assert running.exception() is other.exception() is None
        return task.cancelled()

    # It waits for two steps, and runs for three.
    assert asyncio.run(main()) or after > 6
    assert is_idle(limit)


@pytest.mark.parametrize("after", range(8))
def test_a_task_that_trio_cancels_at_any_await_gives_all_back(after):
    limit, ended = Concurrency(1, queue=2), []

    async def call(scope):
        with scope:
            async with limit.guard():
                for _ in range(3):
                    await trio.lowlevel.checkpoint()
                ended.append(scope)

    async def main():
        running, cancelled, other = [trio.CancelScope() for _ in range(3)]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, running)
            await trio.lowlevel.checkpoint()
            nursery.start_soon(call, cancelled)
            nursery.start_soon(call, other)
            for _ in range(after):
                await trio.lowlevel.checkpoint()
            cancelled.cancel()
        assert {running, other} <= {*ended}

    trio.run(main)
    assert is_idle(limit)
