"""Concurrency limits in the admission of a policy."""

import asyncio
import threading

import pytest

from retrykit import Policy, RefusedError, StopReason, aretry, retry, state_of
from retrykit.limits import CircuitBreaker, Concurrency
from retrykit.testing import virtual_time
from tests._support.concurrency import gather


def is_idle(limit):
    return limit.metrics[:2] == (0, 0)


def test_an_attempt_has_a_permit_and_a_delay_has_none(backend):
    limit, seen = Concurrency(1), []
    during = []

    def fails():
        seen.append(limit.metrics.running)
        if len(seen) < 3:
            raise OSError
        return "done"

    policy = Policy(
        schedule=[1, 1],
        admission=[limit],
        observers=[lambda _: during.append(limit.metrics.running)],
    )
    with virtual_time():
        assert backend(policy)(fails)() == "done"
    assert seen == [1, 1, 1]
    assert 0 in during
    assert is_idle(limit)
    assert limit.metrics.total_granted == 3


def test_a_full_limit_ends_the_call(backend):
    limit = Concurrency(1, name="db")
    _lease = limit.acquire()
    with pytest.raises(RefusedError, match="limit 'db' is full: 1 call runs") as caught:
        backend(Policy(admission=[limit]))(lambda: 1 / 0)()
    state = state_of(caught.value)
    assert (state.stop_reason, state.failures) == (StopReason.REFUSED, ())


def test_a_call_waits_for_its_place_as_long_as_it_has_time(backend):
    limit = Concurrency(1, queue=1)
    _lease = limit.acquire()
    with virtual_time() as clock, pytest.raises(RefusedError) as caught:
        backend(Policy(admission=[limit], max_elapsed=7))(lambda: 1 / 0)()
    assert str(caught.value) == "limit is full: waited 7 s for a place"
    assert clock.now() == 7
    assert limit.metrics[:2] == (1, 0)


def test_a_breaker_that_refuses_keeps_no_place(backend):
    limit, breaker = Concurrency(1), CircuitBreaker()
    breaker.open()
    with pytest.raises(RefusedError):
        backend(Policy(admission=[limit, breaker]))(lambda: 1 / 0)()
    assert is_idle(limit)


@pytest.mark.parametrize("run", ["asyncio", "trio"])
def test_retried_tasks_take_turns(run):
    from tests._support.optional_trio import trio

    limit, times = Concurrency(2, queue=9), []

    async def main():
        @aretry(admission=[limit])
        async def use():
            times.append(clock.now())
            await clock.asleep(3)

        await gather(*[use() for _ in range(6)])

    with virtual_time() as clock:
        trio.run(main) if run == "trio" else asyncio.run(main())
    assert times == [0, 0, 3, 3, 6, 6]
    assert is_idle(limit)


@pytest.mark.needs("threads")
def test_retried_threads_take_turns():
    limit, times = Concurrency(2, queue=9), []
    started = threading.Barrier(6)

    @retry
    def start():
        # An attempt of a call holds the time until all threads are there.
        started.wait(20)
        use()

    @retry(admission=[limit], nested="retry")
    def use():
        times.append(clock.now())
        clock.sleep(3)

    with virtual_time(process_wide=True) as clock:
        threads = [threading.Thread(target=start, daemon=True) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert times == [0, 0, 3, 3, 6, 6]
    assert is_idle(limit)


def test_an_algorithm_hears_of_failures_and_successes(clock):
    class Told:
        limit = 5

        def __init__(self):
            self.samples = []

        def sample(self, *, rtt, in_flight, dropped):
            self.samples.append((rtt, dropped))
            return 5

    limit, outcomes = Concurrency(Told()), [OSError, None]

    @retry(schedule=[9], admission=[limit])
    def use():
        clock.sleep(2)
        error = outcomes.pop(0)
        if error:
            raise error

    use()
    assert limit.algorithm.samples == [(2.0, True), (2.0, False)]
