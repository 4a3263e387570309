"""No permit of a half-open breaker is lost, and none is given twice."""

import asyncio
import sys
import threading

import pytest

from retrykit import CircuitOpenError
from retrykit.limits import CircuitBreaker, Lease
from retrykit.testing import virtual_time
from tests._support.optional_trio import trio

THREADS = 64


@pytest.fixture
def quick_switches():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def on_threads(fn):
    """Run a function with the number of its thread on 64 threads at once."""
    start, errors = threading.Barrier(THREADS), []

    def target(number):
        start.wait()
        try:
            fn(number)
        except BaseException as error:  # noqa: BLE001  raised below
            errors.append(error)

    threads = [threading.Thread(target=target, args=[n]) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def half_open(clock, probes):
    breaker = CircuitBreaker(open_for=1, probes=probes, successes=probes)
    breaker.open()
    clock.advance(1)
    return breaker


@pytest.mark.needs("threads")
@pytest.mark.usefixtures("quick_switches")
@pytest.mark.parametrize("probes", [1, 2, 3, 7, 63])
def test_64_threads_get_as_many_probes_as_there_are(probes):
    with virtual_time(process_wide=True) as clock:
        breaker, answers = half_open(clock, probes), []
        on_threads(lambda _: answers.append(breaker.acquire()))
        granted = [each for each in answers if isinstance(each, Lease)]
        assert len(granted) == probes
        assert breaker.metrics.total_refused == THREADS - probes
        on_threads(lambda number: granted[number % probes].succeeded())
        assert breaker.state == "closed"
        assert breaker.metrics.total_succeeded == probes


@pytest.mark.needs("threads")
@pytest.mark.usefixtures("quick_switches")
def test_64_threads_that_drop_and_ignore_probes_lose_none():
    probes, most = 5, []
    with virtual_time(process_wide=True) as clock:
        breaker = half_open(clock, probes)
        inside = []

        def call(number):
            for step in range(50):
                lease = breaker.acquire()
                if not isinstance(lease, Lease):
                    continue
                inside.append(number)
                most.append(len(inside))
                inside.remove(number)
                if (number + step) % 2:
                    lease.ignored()
                del lease

        on_threads(call)
        assert breaker.state == "half-open"
        assert max(most) <= probes
        granted = [breaker.acquire() for _ in range(probes + 1)]
        assert [isinstance(each, Lease) for each in granted] == [True] * 5 + [False]


@pytest.mark.needs("threads")
@pytest.mark.usefixtures("quick_switches")
def test_calls_of_64_threads_are_all_counted():
    breaker = CircuitBreaker(window=100_000, minimum_calls=100_000)

    def call(number):
        for _ in range(50):
            lease = breaker.acquire()
            lease.failed() if number % 2 else lease.succeeded()

    on_threads(call)
    assert breaker.metrics[:2] == (THREADS * 50, THREADS * 25)


@pytest.mark.thorough
def test_of_10_000_tasks_as_many_probe_as_there_are():
    """Cancelled or not, and whatever the order."""
    probes, running, most = 3, [], []

    async def main(clock):
        breaker = half_open(clock, probes)

        async def call(number):
            async with breaker.guard():
                running.append(number)
                most.append(len(running))
                try:
                    await asyncio.sleep(0)
                    if number % 3:
                        raise TypeError
                    await asyncio.sleep(9)
                finally:
                    running.remove(number)

        tasks = [asyncio.create_task(call(number)) for number in range(10_000)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        refused = sum(isinstance(each, CircuitOpenError) for each in done)
        return breaker, refused

    with virtual_time() as clock:
        breaker, refused = asyncio.run(main(clock))
        assert breaker.metrics.total_refused == refused
        assert max(most) <= probes
        assert running == []
        # Those that succeeded closed it, or all places are free.
        free = probes - breaker.metrics.calls
        if breaker.state == "half-open":
            leases = [breaker.acquire() for _ in range(probes)]
            assert sum(isinstance(each, Lease) for each in leases) == free


async def steps(number):
    for _ in range(number):
        await asyncio.sleep(0)


@pytest.mark.parametrize("form", ["decorator", "block"])
@pytest.mark.parametrize("after", range(6))
def test_a_probe_that_is_cancelled_at_any_await_gives_its_place_back(form, after):
    async def main(clock):
        breaker = half_open(clock, 1)
        if form == "decorator":
            call = breaker(steps)
        else:

            async def call(number):
                async with breaker.guard():
                    await steps(number)

        task = asyncio.create_task(call(5))
        await steps(after)
        task.cancel()
        await asyncio.wait([task])
        assert {*asyncio.all_tasks()} == {asyncio.current_task()}
        return breaker

    with virtual_time() as clock:
        breaker = asyncio.run(main(clock))
        # Before its first step, it has asked for nothing.
        assert breaker.state == ("half-open" if after else "open")
        assert isinstance(breaker.acquire(), Lease)


def test_a_probe_that_trio_cancels_gives_its_place_back():
    async def main(breaker):
        with trio.move_on_after(0):
            async with breaker.guard():
                await trio.sleep_forever()

    with virtual_time() as clock:
        breaker = half_open(clock, 1)
        trio.run(main, breaker)
        assert isinstance(breaker.acquire(), Lease)
