"""Leases that begin later: their waits, and what ends them."""

import asyncio

import pytest

from retrykit._internal.clocks import sync_clock
from retrykit.limits import Refusal
from retrykit.testing import virtual_time
from tests._support.scripted_limit import NotedLease, Script

TOO_LONG = Refusal("busy for longer than the call may wait", 5.0)


@pytest.fixture
def limit():
    return Script()


@pytest.fixture
def lease(limit):
    return NotedLease(limit, 5.0)


def test_a_thread_waits_for_a_lease(lease, limit):
    with virtual_time() as clock:
        assert lease.wait() is None
        assert lease.wait(5.0) is None
        assert clock.now() == 10
    assert limit.notes == []


def test_a_task_waits_for_a_lease(lease, limit):
    with virtual_time() as clock:
        assert asyncio.run(lease.wait_async()) is None
        assert asyncio.run(lease.wait_async(5.0)) is None
        assert clock.now() == 10
    assert limit.notes == []


def test_a_lease_that_begins_too_late_is_given_back(lease, limit):
    with virtual_time() as clock:
        assert lease.wait(4.9) == TOO_LONG
        assert asyncio.run(lease.wait_async(4.9)) == TOO_LONG
        assert clock.now() == 0
    assert limit.notes == ["ignored", "ignored"]


class Stop(BaseException):
    """An interrupt."""


class Interrupting:
    """A clock whose sleep is interrupted."""

    def now(self):
        return 0.0

    def sleep(self, delay):
        raise Stop


def test_an_interrupted_wait_gives_the_lease_back(lease, limit):
    with sync_clock.use(Interrupting()), pytest.raises(Stop):
        lease.wait()
    assert limit.notes == ["ignored"]


def test_a_cancelled_wait_gives_the_lease_back(lease, limit):
    async def main():
        task = asyncio.create_task(lease.wait_async())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert limit.notes == ["ignored"]
