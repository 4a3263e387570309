"""The time of day in virtual time: it goes on from now, as the clock does."""

import asyncio
import time
from email.utils import formatdate
from types import SimpleNamespace

import pytest
import trio

from retrykit import Policy, current_state, hints, retry
from retrykit._internal.clocks import wall
from retrykit.errors import NestingError
from retrykit.integrations.logging import observer
from retrykit.testing import virtual_time
from tests._support.carried import HOURLY, Made, carried, refuse
from tests._support.side import DAY, in_thread


def test_begins_now_whatever_the_clock_shows():
    with virtual_time(start=1000):
        assert abs(wall() - time.time()) < 60


def test_goes_on_with_the_clock_and_with_nothing_else():
    with virtual_time() as clock:
        began = wall()
        assert wall() == began
        clock.advance("1d")
        clock.sleep(5)
        assert wall() - began == DAY + 5
    assert wall() - began < 60, "and is the real one again"


def test_goes_on_in_a_block_within_a_block():
    with virtual_time() as outer:
        outer.advance("1d")
        began = wall()
        with virtual_time(start=50) as inner:
            assert wall() == began
            inner.advance(7)
            assert wall() == began + 7
        assert wall() == began
        outer.advance(1)
        assert wall() == began + 1


def test_is_that_of_its_own_context():
    with virtual_time() as clock:
        clock.advance("1d")
        assert in_thread(wall) < wall() - DAY / 2


def test_is_that_of_every_thread_where_it_is_asked_to():
    with virtual_time(process_wide=True) as clock:
        clock.advance("1d")
        assert in_thread(wall) == wall()
    assert abs(in_thread(wall) - time.time()) < 60


@pytest.mark.parametrize("run", [asyncio.run, trio.run], ids=["asyncio", "trio"])
def test_is_that_of_coroutines(run):
    async def main():
        with virtual_time() as clock:
            began = wall()
            await clock.asleep("1d")
            return wall() - began

    async def begun_outside():
        return wall()

    assert run(main if run is trio.run else main()) == DAY
    with virtual_time() as clock:
        clock.advance("1d")
        assert run(begun_outside if run is trio.run else begun_outside()) == wall()


def test_blocks_that_are_closed_in_the_wrong_order_are_told():
    one, two = virtual_time(), virtual_time()
    one.__enter__()
    two.__enter__()
    with pytest.raises(NestingError):
        one.__exit__(None, None, None)
    two.__exit__(None, None, None)
    assert abs(wall() - time.time()) < 60


class BusyError(ConnectionError):
    """With a response that says until when the server is busy."""

    def __init__(self, name, value):
        super().__init__("busy")
        self.response = SimpleNamespace(headers={name: value})


def test_a_date_in_a_response_is_obeyed(colour):
    """Three times, each an hour after the one before, by the clock of the test."""
    policy = Policy(
        schedule=[1] * 3, hint=hints.retry_after(), hint_cap=None, max_elapsed=None
    )

    def fetch():
        raise BusyError("Retry-After", formatdate(wall() + 3600, usegmt=True))

    with virtual_time() as clock:
        colour.run(policy, fetch)
    assert clock.sleeps == [pytest.approx(3600, abs=1)] * 3


def test_the_time_at_which_a_limit_is_reset_is_obeyed():
    policy = Policy(schedule=[1] * 3, hint=hints.reset_at("X-RateLimit-Reset"))

    def fetch():
        raise BusyError("X-RateLimit-Reset", str(int(reset)))

    with virtual_time() as clock:
        reset = wall() + 50
        policy.run(fetch)
    first, second, _ = clock.sleeps
    assert first == pytest.approx(50, abs=1)
    assert second <= 1, "by then it is reset"


def test_a_call_began_when_the_clock_of_the_test_showed():
    @retry
    def fetch():
        return current_state().started_at.timestamp()

    with virtual_time() as clock:
        clock.advance("1d")
        assert fetch() == pytest.approx(wall(), abs=1e-3)


def test_a_job_is_due_by_the_clock_of_the_test():
    with virtual_time() as clock:
        made = Made("blocking", refuse)
        began = wall()
        after = carried(made.job, made.envelope, clock).envelope
        assert after.due == pytest.approx(began + 3600)
        assert after.time_left(wall()) == pytest.approx(3600)
        clock.advance(3600)
        assert after.time_left(wall()) == pytest.approx(0)


def test_the_log_tells_once_when_a_job_goes_on(caplog):
    policy = HOURLY.replace(schedule=["4h"], observers=[observer()])
    with virtual_time() as clock:
        made = Made("blocking", refuse, policy)
        while made.envelope.status == "waiting":
            made.envelope = carried(made.job, made.envelope, clock).envelope
    error = "ConnectionError: connection refused"
    ended = "gave up after 2 attempts in 4h: the schedule has ended"
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("WARNING", f"job-7: attempt 1 failed, retrying in 4h; {error}"),
        ("ERROR", f"job-7: {ended}; {error}"),
    ]
    assert caplog.records[0].retrykit["delay"] == 4 * 3600
