"""Limiters of other libraries as limits."""

import asyncio
import threading

import anyio
import pytest

from retrykit import ConfigError, Policy, RefusedError
from retrykit.limits import Adapted
from tests._support.optional_trio import trio


class Rate:
    """A rate limiter as that of aiolimiter: permits are used up, and not returned."""

    def __init__(self, permits):
        self.permits = permits

    async def acquire(self):
        await asyncio.sleep(0)
        self.permits -= 1


def run_many(limiter, number=6):
    """Run attempts at once in tasks; return the most that ran at the same time."""
    running = most = 0

    async def attempt():
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        running -= 1

    async def main():
        policy = Policy(admission=[Adapted(limiter())])
        async with anyio.create_task_group() as group:
            for _ in range(number):
                group.start_soon(policy.acall, attempt)

    return main, lambda: most


@pytest.mark.parametrize("make", [asyncio.Semaphore, anyio.CapacityLimiter])
def test_tasks_of_asyncio_wait_for_permits(make):
    main, most = run_many(lambda: make(2))
    asyncio.run(main())
    assert most() == 2


@pytest.mark.parametrize("make", ["CapacityLimiter", "Semaphore"])
def test_tasks_of_trio_wait_for_permits(make):
    main, most = run_many(lambda: getattr(trio, make)(2))
    trio.run(main)
    assert most() == 2


@pytest.mark.needs("threads")
def test_threads_wait_for_permits():
    limit = Adapted(threading.BoundedSemaphore(2), name="db")
    running, most, lock = 0, [0], threading.Lock()
    together = threading.Barrier(2)

    def attempt():
        nonlocal running
        with lock:
            running += 1
            most[0] = max(most[0], running)
        together.wait(20)
        with lock:
            running -= 1

    policy = Policy(admission=[limit], max_elapsed=60)
    threads = [threading.Thread(target=policy.call, args=[attempt]) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(20)
    assert most == [2]


def test_a_permit_is_returned_once_whatever_the_outcome():
    semaphore = threading.BoundedSemaphore(1)
    limit = Adapted(semaphore)
    for report in ("succeeded", "failed", "ignored"):
        lease = limit.acquire()
        assert (lease.delay, lease.generation) == (float("inf"), 0)
        assert lease.wait() is None
        assert lease.delay == 0
        getattr(lease, report)()
        # A second release would be an error of the semaphore.
        lease.ignored()
    assert semaphore.acquire(blocking=False)


def test_a_permit_that_never_comes_ends_the_wait():
    semaphore = threading.Semaphore(0)
    policy = Policy(
        admission=[Adapted(semaphore, name="db")], max_elapsed="10ms", schedule=[0]
    )
    with pytest.raises(RefusedError, match="limit 'db' is busy for longer than the"):
        policy.call(int)


def test_a_permit_of_a_loop_that_never_comes_ends_the_wait():
    async def main():
        limit = Adapted(asyncio.Semaphore(0))
        policy = Policy(admission=[limit], max_elapsed="10ms", schedule=[0])
        with pytest.raises(RefusedError, match="busy for longer"):
            await policy.acall(asyncio.sleep, 0)

    asyncio.run(main())


def test_cancellation_takes_no_permit():
    async def main():
        semaphore = asyncio.Semaphore(1)
        limit = Adapted(semaphore)
        async with limit.guard():
            task = asyncio.create_task(limit.acquire().wait_async())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert semaphore.locked()
        assert not semaphore.locked()

    asyncio.run(main())


def test_a_rate_has_nothing_to_return():
    async def main():
        rate = Rate(2)
        policy = Policy(admission=[Adapted(rate)], max_elapsed=60)
        for _ in range(2):
            await policy.acall(asyncio.sleep, 0)
        assert rate.permits == 0

    asyncio.run(main())


def test_a_limiter_of_the_other_kind_is_an_error():
    with pytest.raises(ConfigError, match="blocks, where nothing can await it"):
        Policy(admission=[Adapted(asyncio.Semaphore(1))]).call(int)
    policy = Policy(admission=[Adapted(threading.Semaphore(1))])
    with pytest.raises(ConfigError, match="can be awaited, in"):
        asyncio.run(policy.acall(asyncio.sleep, 0))


def test_it_prints_as_the_expression_that_makes_it():
    assert repr(Adapted(Fake(), name="a")) == ("Adapted(Fake(), name='a')")
    assert repr(Adapted(Fake())) == "Adapted(Fake())"
    assert Adapted(Fake()).state == "adapted"


class Fake:
    def acquire(self): ...

    def __repr__(self):
        return "Fake()"
