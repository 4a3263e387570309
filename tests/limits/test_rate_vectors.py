"""Sequences from the tests of rate limiters in other languages."""

from typing import ClassVar

import pytest

from retrykit.limits import RateLimit, Refusal
from retrykit.testing import virtual_time


@pytest.fixture(autouse=True)
def clock():
    with virtual_time() as clock:
        yield clock


def go_to(clock, milliseconds):
    clock.advance((milliseconds - clock.now() * 1000) / 1000)


def last_delay(limit, number):
    """Ask for several calls; return how long the last one waits, in milliseconds."""
    for _ in range(number):
        lease = limit.acquire()
        lease.succeeded()
    return pytest.approx(lease.delay * 1000)


class TestFailsafe:
    """Commit ed3f927 of 2025-12, after version 3.3.2.

    There, time is divided into intervals from the start, and a call may use the one
    that has begun. Here, the interval begins with a call, so calls after a pause are
    as far apart as any others. Each row says what it is there, if it differs.
    """

    # Time, calls, delay of the last, when the next call could be made; in milliseconds.
    SMOOTH: ClassVar = {
        500: [
            (0, 7, 3000, 3500),
            (800, 3, 3700, 5000),
            (2300, 1, 2700, 5500),
            (3500, 3, 3000, 7000),
            # 900 and 10,500 there, as the interval began at 9,000.
            (9100, 3, 1000, 10600),
            # 0 and 11,500 there.
            (11000, 1, 0, 11500),
        ],
        200: [
            (0, 3, 400, 600),
            (550, 2, 250, 1000),
            # 190 and 2,600 there, as the interval began at 2,200.
            (2210, 2, 200, 2610),
        ],
        100: [(0, 1, 0, 100), (0, 1, 100, 200), (100, 1, 100, 300), (100, 1, 200, 400)],
    }

    @pytest.mark.parametrize("interval", SMOOTH)
    def test_acquire_permits_smoothly(self, clock, interval):
        """``SmoothRateLimiterStatsTest``."""
        limit = RateLimit(1, per=interval / 1000)
        spread = RateLimit(10, per=interval / 100, spread=True)
        for time, calls, delay, following in self.SMOOTH[interval]:
            go_to(clock, time)
            for each in [limit, spread]:
                assert last_delay(each, calls) == delay
                assert (time + each.metrics.delay * 1000) == pytest.approx(following)

    def test_acquire_initial_stats(self, clock):
        """0 at 150 ms as there; then 2 at 250 ms, where the last waits 50 there."""
        limit = RateLimit(1, per="100ms")
        assert last_delay(limit, 1) == 0
        go_to(clock, 150)
        assert last_delay(limit, 1) == 0
        go_to(clock, 250)
        assert last_delay(limit, 2) == 100

    # Time, calls and delay of the last, and the delay there. There, the calls of a
    # period are those between two seconds of the clock: at 999 ms and 1,000 ms, four
    # of 2 per second may be made.
    BURSTY: ClassVar = {
        2: [
            (0, 7, 3000, 3000),
            (800, 3, 3200, 3200),
            (2300, 1, 2700, 2700),
            (3500, 3, 2500, 2500),
            (7000, 1, 0, 0),
        ],
        5: [
            (300, 3, 0, 0),
            (1550, 10, 1000, 450),
            # Of those before, five go at 1,550 ms and five at 2,550 ms.
            (2210, 2, 1340, 790),
        ],
    }

    @pytest.mark.parametrize("calls", BURSTY)
    def test_acquire_permits_in_bursts(self, clock, calls):
        """``BurstyRateLimiterStatsTest``."""
        limit = RateLimit(calls, per="1s")
        for time, number, delay, there in self.BURSTY[calls]:
            go_to(clock, time)
            assert last_delay(limit, number) == delay
            # By less than a period, which there begins with the second.
            assert 0 <= delay - there < 1000


class TestResilience4j:
    """``AtomicRateLimiterTest`` of commit af9e7c9 of 2026-05, after version 2.4.0.

    There, the calls of a period are those between two multiples of it, so around each
    twice as many may be made. Here, the sequences begin with such a multiple. One
    call each 250 ms.
    """

    CYCLE = 0.25

    def limit(self, max_wait):
        return RateLimit(1, per=self.CYCLE, max_wait=max_wait)

    def state(self, limit):
        """Return the available permits, and the time to wait for one."""
        metrics = limit.metrics
        return limit.calls - metrics.calls - metrics.waiting, metrics.delay

    def test_acquire_and_refresh(self, clock):
        limit = self.limit(0)
        for _ in range(2):
            clock.advance(self.CYCLE)
            limit.acquire().succeeded()
            assert self.state(limit) == (0, self.CYCLE)
            assert isinstance(limit.acquire(), Refusal)
            assert self.state(limit) == (0, self.CYCLE)

    def test_reserve_and_refresh(self, clock):
        limit = self.limit(self.CYCLE)
        clock.advance(self.CYCLE)
        limit.acquire().succeeded()
        assert self.state(limit) == (0, self.CYCLE)
        lease = limit.acquire()
        assert self.state(limit) == (-1, 2 * self.CYCLE)
        assert lease.wait() is None
        clock.advance(1 / 1024)
        assert self.state(limit) == (0, self.CYCLE - 1 / 1024)

    def test_reserve_few_then_skip_cycles_before_refresh(self, clock):
        limit = self.limit(self.CYCLE)
        clock.advance(self.CYCLE)
        leases = [limit.acquire() for _ in range(2)]
        assert leases[1].delay == self.CYCLE
        assert isinstance(limit.acquire(), Refusal)
        assert self.state(limit) == (-1, 2 * self.CYCLE)
        clock.advance(5 * self.CYCLE)
        assert self.state(limit) == (1, 0)

    def test_rejected_by_timeout(self, clock):
        limit = self.limit(0)
        limit.acquire().succeeded()
        assert isinstance(limit.acquire(), Refusal)
        clock.advance(self.CYCLE - 1 / 1024)
        assert self.state(limit) == (0, 1 / 1024)

    def test_waiting_thread_is_interrupted(self, clock):
        """There, the permit stays reserved: -1, and two cycles to wait."""
        limit = self.limit(self.CYCLE)
        limit.acquire().succeeded()
        lease = limit.acquire()
        assert self.state(limit) == (-1, 2 * self.CYCLE)
        lease.ignored()
        assert self.state(limit) == (0, self.CYCLE)

    def test_reserve_permissions_upfront(self, clock):
        """3 per 10 ms, for at most 12 ms; there, from 1 ns on after a beginning.

        There, the first three give way at the next beginning, after 10 ms less the
        time that passed in the cycle; here, each 10 ms after it was made.
        """
        cycle, step = 0.01, 2**-20
        limit = RateLimit(3, per=cycle, max_wait=0.012)
        waits = []
        for _ in range(9):
            clock.advance(step)
            answer = limit.acquire()
            waits.append(None if isinstance(answer, Refusal) else answer.delay)
            if waits[-1] is not None:
                answer.succeeded()
        expected = [0, 0, 0, *[cycle - 3 * step] * 3, None, None, None]
        assert waits == [each and pytest.approx(each, abs=1e-12) for each in expected]
