"""The virtual wall clock starts at the real time, and advances with the clock."""

import asyncio
import time
from email.utils import formatdate
from types import SimpleNamespace

import pytest

from retrykit import Policy, current_state, hints, retry
from retrykit._internal.clocks import wall
from retrykit.errors import NestingError
from retrykit.integrations.logging import observer
from retrykit.testing import virtual_time
from tests._support.concurrency import DAY, in_thread
from tests._support.durable_jobs import (
    HOURLY,
    JobHarness,
    attempt_when_due,
    fail_to_connect,
)
from tests._support.optional_trio import trio


def test_starts_at_the_real_time_whatever_start_is():
    with virtual_time(start=1000):
        assert abs(wall() - time.time()) < 60


def test_advances_only_with_the_clock():
    with virtual_time() as clock:
        start = wall()
        assert wall() == start
        clock.advance("1d")
        clock.sleep(5)
        assert wall() - start == DAY + 5
    assert wall() - start < 60, "the real clock is back"


def test_continues_in_a_nested_block():
    with virtual_time() as outer:
        outer.advance("1d")
        start = wall()
        with virtual_time(start=50) as inner:
            assert wall() == start
            inner.advance(7)
            assert wall() == start + 7
        assert wall() == start
        outer.advance(1)
        assert wall() == start + 1


def test_excludes_other_threads():
    with virtual_time() as clock:
        clock.advance("1d")
        assert in_thread(wall) < wall() - DAY / 2


def test_process_wide_includes_all_threads():
    with virtual_time(process_wide=True) as clock:
        clock.advance("1d")
        assert in_thread(wall) == wall()
    assert abs(in_thread(wall) - time.time()) < 60


@pytest.mark.parametrize("run", [asyncio.run, trio.run], ids=["asyncio", "trio"])
def test_includes_coroutines(run):
    async def main():
        with virtual_time() as clock:
            start = wall()
            await clock.asleep("1d")
            return wall() - start

    async def begun_outside():
        return wall()

    assert run(main if run is trio.run else main()) == DAY
    with virtual_time() as clock:
        clock.advance("1d")
        assert run(begun_outside if run is trio.run else begun_outside()) == wall()


def test_is_real_again_after_blocks_are_closed_in_the_wrong_order():
    first, second = virtual_time(), virtual_time()
    first.__enter__()
    second.__enter__()
    with pytest.raises(NestingError):
        first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert abs(wall() - time.time()) < 60


class BusyError(ConnectionError):
    """An error with a response whose header says when to retry."""

    def __init__(self, name, value):
        super().__init__("busy")
        self.response = SimpleNamespace(headers={name: value})


def test_retry_after_dates_use_the_virtual_wall_clock(backend):
    """Three times, each an hour after the previous one."""
    policy = Policy(schedule=[1] * 3, hint=hints.retry_after(), hint_jitter=0)

    def fetch():
        raise BusyError("Retry-After", formatdate(wall() + 3600, usegmt=True))

    with virtual_time() as clock:
        backend.run(policy, fetch)
    assert clock.sleeps == [pytest.approx(3600, abs=1)] * 3


def test_reset_at_hints_use_the_virtual_wall_clock():
    policy = Policy(schedule=[1] * 3, hint=hints.reset_at(), hint_jitter=0)

    def fetch():
        raise BusyError("X-RateLimit-Reset", str(int(reset)))

    with virtual_time() as clock:
        reset = wall() + 50
        policy.run(fetch)
    first, second, _ = clock.sleeps
    assert first == pytest.approx(50, abs=1)
    assert second <= 1, "the limit has been reset"


def test_started_at_uses_the_virtual_wall_clock():
    @retry
    def fetch():
        return current_state().started_at.timestamp()

    with virtual_time() as clock:
        clock.advance("1d")
        assert fetch() == pytest.approx(wall(), abs=1e-3)


def test_the_due_time_of_a_job_uses_the_virtual_wall_clock():
    with virtual_time() as clock:
        harness = JobHarness("sync", fail_to_connect)
        start = wall()
        envelope = attempt_when_due(harness.job, harness.envelope, clock).envelope
        assert envelope.due == pytest.approx(start + 3600)
        assert envelope.time_left(wall()) == pytest.approx(3600)
        clock.advance(3600)
        assert envelope.time_left(wall()) == pytest.approx(0)


def test_the_log_has_one_line_for_each_failure_of_a_job(caplog):
    policy = HOURLY.replace(schedule=["4h"], observers=[observer()])
    with virtual_time() as clock:
        harness = JobHarness("sync", fail_to_connect, policy)
        while harness.envelope.status == "waiting":
            harness.envelope = attempt_when_due(
                harness.job, harness.envelope, clock
            ).envelope
    error = "ConnectionError: connection refused"
    ended = "gave up after 2 attempts in 4 h: the schedule has ended"
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("WARNING", f"retrying job-7 in 4 h after {error} (attempt 2 of 2)"),
        ("ERROR", f"job-7 {ended}; {error}"),
    ]
    assert caplog.records[0].retrykit["delay"] == 4 * 3600
