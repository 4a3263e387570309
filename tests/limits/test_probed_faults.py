"""Faults of other breakers: probes a to g of eleven for Python, and a list for Rust.

The probes trip a breaker, wait for its time, and then make calls. Each name says what
must happen; the docstring, what was seen instead.
"""

import asyncio
import threading

import pytest

from retrykit import CircuitOpenError, ConfigError
from retrykit.limits import CircuitBreaker, Lease
from retrykit.testing import virtual_time
from tests._support import required


def tripped(clock, **settings):
    """Return a breaker that opened, and whose time is over."""
    breaker = CircuitBreaker(consecutive_failures=1, open_for="10s", **settings)
    breaker.acquire().failed()
    clock.advance("10s")
    return breaker


async def gather(breaker, fn, number=50):
    """Make calls at once; return how many were refused."""

    async def call():
        async with breaker.guard():
            await fn()

    calls = (call() for _ in range(number))
    done = await asyncio.gather(*calls, return_exceptions=True)
    return sum(isinstance(each, CircuitOpenError) for each in done)


@pytest.mark.parametrize("probes", [1, 3])
def test_a_of_50_calls_as_many_as_there_are_probes_go_through(probes):
    """aiobreaker, circuitbreaker, hyx, purgatory, pyresilience: 50."""
    with virtual_time() as clock:
        breaker = tripped(clock, probes=probes)
        assert asyncio.run(gather(breaker, lambda: asyncio.sleep(0))) == 50 - probes
        assert breaker.state == "closed"


def test_b_an_error_that_is_no_failure_leaves_it_half_open():
    """circuitbreaker, pybreaker: closes; backon, redress: opens; grit: stuck."""
    with virtual_time() as clock:
        breaker = tripped(clock, on=OSError)
        for _ in range(3):
            with pytest.raises(KeyError), breaker.guard():
                raise KeyError
        assert breaker.state == "half-open"
        assert isinstance(breaker.acquire(), Lease)


async def cancel(breaker, number):
    """Cancel calls that run."""

    async def call():
        async with breaker.guard():
            await asyncio.Event().wait()

    tasks = [asyncio.create_task(call()) for _ in range(number)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert all(task.cancelled() for task in tasks)


def test_c_a_cancelled_probe_gives_its_place_back():
    """backon, purgatory: opens; circuitbreaker: closes; grit: refuses forever."""
    with virtual_time() as clock:
        breaker = tripped(clock)
        for _ in range(3):
            asyncio.run(cancel(breaker, 1))
            assert breaker.state == "half-open"
        assert isinstance(breaker.acquire(), Lease)


def test_d_a_probe_that_never_ends_expires():
    """nopanic, resilix, redress, backon, grit, Polly: all calls refused forever."""
    with virtual_time() as clock:
        breaker = tripped(clock, probe_timeout="1m")
        hanging = breaker.acquire()
        for _ in range(10):
            assert not isinstance(breaker.acquire(), Lease)
        clock.advance("1m")
        breaker.acquire().succeeded()
        assert breaker.state == "closed"
        hanging.failed()
        assert breaker.state == "closed"


def test_e_cancelled_calls_do_not_open_it():
    """backon, purgatory: opens."""
    breaker = CircuitBreaker(consecutive_failures=1, failure_rate=0.1, window=1)
    asyncio.run(cancel(breaker, 4))
    assert breaker.state == "closed"


@pytest.mark.parametrize("state", ["open", "half-open"])
def test_f_a_call_of_before_the_outage_does_not_close_it(state):
    """circuitbreaker, redress: closes; nopanic: counts in the next half-open period."""
    with virtual_time() as clock:
        breaker = CircuitBreaker(consecutive_failures=1, open_for="10s")
        early = breaker.acquire()
        breaker.acquire().failed()
        if state == "half-open":
            clock.advance("10s")
            breaker.acquire().ignored()
        early.succeeded()
        assert breaker.state == state


def test_f_a_probe_of_an_earlier_half_open_period_does_not_count():
    """nopanic: in flight -1, and closed after one of two successes."""
    with virtual_time() as clock:
        breaker = tripped(clock, probes=2)
        stale, failing = breaker.acquire(), breaker.acquire()
        failing.failed()
        clock.advance("10s")
        first = breaker.acquire()
        stale.succeeded()
        first.succeeded()
        assert breaker.state == "half-open"
        second = breaker.acquire()
        assert not isinstance(breaker.acquire(), Lease)
        second.succeeded()
        assert breaker.state == "closed"


def test_g_no_call_waits_for_another():
    """pybreaker: one after the other. Here, all ten are in the function at once."""
    required.skip_without("threads")
    breaker, inside = CircuitBreaker(), threading.Barrier(10, timeout=30)
    fetch = breaker(inside.wait)
    threads = [threading.Thread(target=fetch) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert breaker.metrics[:2] == (10, 0)


def test_a_place_is_taken_before_the_probe_runs():
    """tower-resilience #382, #407: probes were not reserved."""
    with virtual_time() as clock:
        breaker = tripped(clock)
        with breaker.guard():
            with pytest.raises(CircuitOpenError), breaker.guard():
                pass
            assert breaker.state == "half-open"


def test_refusals_are_no_failures():
    with virtual_time() as clock:
        breaker = tripped(clock)
        breaker.isolate()
        for _ in range(50):
            breaker.acquire()
        breaker.close()
        assert breaker.metrics[:2] == (0, 0)
        assert isinstance(breaker.acquire(), Lease)


@pytest.mark.parametrize(
    "settings",
    [
        {"failure_rate": 0},
        {"failure_rate": 1.1},
        {"window": 10, "minimum_calls": 11},
        {"window": 0},
        {"open_for": 0},
        {"probes": 0},
        {"probes": 2, "successes": 3},
        {"successes": 0},
        {"probe_timeout": 0},
    ],
    ids=", ".join,
)
def test_settings_that_make_no_sense_are_rejected(settings):
    """tower-resilience #417, #431, #437: were accepted."""
    with pytest.raises(ConfigError):
        CircuitBreaker(**settings)
