"""Rate limits: when calls get their time, what is refused, and what is given back."""

import asyncio
import gc
import math

import pytest

from retrykit import RefusedError
from retrykit._internal.clocks import sync_clock
from retrykit.limits import RateLimit, Refusal, states
from retrykit.testing import virtual_time


@pytest.fixture
def clock():
    with virtual_time() as clock:
        yield clock


def ask(limit, number):
    """Return the leases of several calls, or refusals."""
    return [limit.acquire() for _ in range(number)]


def delays(limit, number):
    return [each.delay for each in ask_and_use(limit, number)]


def ask_and_use(limit, number):
    """Return the leases of several calls that are made, whenever that is."""
    leases = ask(limit, number)
    for lease in leases:
        lease.succeeded()
    return leases


class TestTimes:
    def test_as_many_go_at_once_as_the_rate_allows_and_others_each_at_a_time(
        self, clock
    ):
        limit = RateLimit(3, per="1s")
        assert delays(limit, 8) == [0, 0, 0, 1, 1, 1, 2, 2]
        clock.advance("2s")
        assert delays(limit, 2) == [0, 1]

    def test_twice_the_rate_in_the_first_period_is_too_much(self, clock):
        """aiolimiter and nopanic let 20 of 10 per second through in 1 s."""
        limit, starts = RateLimit(10, per="1s"), []
        while clock.now() < 1:
            starts += [clock.now() + delay for delay in delays(limit, 1)]
            clock.advance(1 / 64)
        assert len([start for start in starts if start < 1]) == 10

    def test_calls_can_be_spread_over_the_period(self, clock):
        limit = RateLimit(4, per="1s", spread=True)
        assert delays(limit, 5) == [0, 0.25, 0.5, 0.75, 1]
        clock.advance("1.125s")
        assert delays(limit, 2) == [0.125, 0.375]
        clock.advance("1m")
        assert delays(limit, 2) == [0, 0.25]

    def test_unused_time_is_not_saved(self, clock):
        limit = RateLimit(2, per="1s")
        clock.advance("1h")
        assert delays(limit, 3) == [0, 0, 1]

    def test_a_wait_that_no_clock_shows_is_none(self, clock):
        limit = RateLimit(1, per=5e-10, max_wait=0)
        assert delays(limit, 2) == [0, 0]
        assert limit.state == "free"
        assert limit.metrics.delay == 0

    def test_one_refused_a_moment_before_its_time_is_not_refused_again(self):
        """Otherwise it would ask without end: the clock has no time between."""
        now = 0.1
        with sync_clock.use(Readings(lambda: now)):
            limit = RateLimit(1, per=10.2, max_wait=0)
            limit.acquire()
            now = 1.7
            now += limit.acquire().retry_in
            assert not isinstance(limit.acquire(), Refusal)

    def test_old_times_are_forgotten(self, clock):
        limit = RateLimit(100, per="1s")
        for _ in range(500):
            ask_and_use(limit, 1)
            clock.advance(1 / 16)
        assert len(limit._times) < 20  # noqa: SLF001  there is no other way
        assert limit.metrics.calls == 15


class Readings:
    """A clock with readings of its own."""

    def __init__(self, now):
        self.now = now


class TestRefusals:
    def test_a_call_that_would_wait_for_too_long_is_refused(self, clock):
        limit = RateLimit(2, per="1s", max_wait="1s")
        assert delays(limit, 4) == [0, 0, 1, 1]
        assert limit.acquire() == ("busy: 2 calls per 1 s", 2)
        clock.advance("250ms")
        assert limit.acquire().retry_in == 1.75

    def test_a_refused_call_takes_nothing_away(self, clock):
        limit = RateLimit(1, per="1s", max_wait=0)
        ask_and_use(limit, 1)
        assert [each.retry_in for each in ask(limit, 50)] == [1] * 50
        clock.advance("1s")
        assert delays(limit, 1) == [0]
        assert limit.metrics == (1, 0, 1, 2, 0, 50)

    def test_by_default_a_call_waits_for_a_minute(self, clock):
        limit = RateLimit(1, per="60s")
        assert delays(limit, 2) == [0, 60]
        assert limit.acquire().retry_in == 120

    @pytest.mark.parametrize(
        ("limit", "reason"),
        [
            (RateLimit(1, per="2s", max_wait=0), "busy: 1 call per 2 s"),
            (
                RateLimit(5, "90s", spread=True, max_wait=1),
                "busy: 5 calls per 1 min 30 s",
            ),
        ],
    )
    def test_the_reason_names_the_rate(self, clock, limit, reason):
        assert [*ask(limit, 6)][-1].reason == reason

    def test_a_decorated_function_raises_it(self, clock):
        fetch = RateLimit(1, per="1m", max_wait="10s", name="api")(lambda: "fetched")
        assert fetch() == "fetched"
        with pytest.raises(RefusedError) as caught:
            fetch()
        assert str(caught.value) == (
            "limit 'api' is busy: 1 call per 1 min; try again in 1 min"
        )
        clock.advance("50s")
        assert fetch() == "fetched"
        assert clock.sleeps == [10]


class TestGivenBack:
    def test_a_call_of_now_is_used_whatever_is_reported(self, clock):
        limit = RateLimit(2, per="1s")
        first, second = ask(limit, 2)
        first.ignored()
        second.failed(OSError())
        del first, second
        assert limit.acquire().delay == 1

    @pytest.mark.parametrize("how", ["ignored", "dropped"])
    def test_a_call_that_waits_leaves_its_time_to_the_next(self, clock, how):
        limit = RateLimit(1, per="1s")
        leases = ask(limit, 4)
        if how == "ignored":
            leases[2].ignored()
        leases[2] = None
        gc.collect()
        assert limit.metrics[:3] == (1, 2, 2)
        assert [lease.delay for lease in ask(limit, 2)] == [2, 4]

    def test_those_that_wait_keep_their_times(self, clock):
        limit = RateLimit(1, per="1s")
        leases = ask(limit, 3)
        leases[1].ignored()
        assert leases[2].delay == 2

    def test_if_all_that_wait_give_up_it_is_as_if_they_had_never_asked(self, clock):
        limit = RateLimit(3, per="1s", max_wait="1h")
        waiting = ask(limit, 1000)[3:]
        for lease in waiting[::2] + waiting[1::2]:
            lease.ignored()
        assert limit.metrics == (3, 0, 1, 1000, 997, 0)
        clock.advance("1.5s")
        assert delays(limit, 4) == [0, 0, 0, 1]

    def test_a_time_that_nobody_takes_is_lost(self, clock):
        limit = RateLimit(1, per="1s")
        leases = ask(limit, 3)
        leases[1].ignored()
        clock.advance("1.5s")
        assert limit.acquire().delay == 1.5

    def test_it_is_given_back_once(self, clock):
        limit = RateLimit(1, per="1s")
        leases = ask(limit, 4)
        for _ in range(3):
            leases[1].ignored()
        leases[1] = None
        gc.collect()
        assert [lease.delay for lease in ask(limit, 2)] == [1, 4]

    @pytest.mark.parametrize("report", ["succeeded", "failed"])
    def test_a_report_keeps_the_time(self, clock, report):
        limit = RateLimit(1, per="1s")
        leases = ask(limit, 2)
        getattr(leases[1], report)()
        leases[1].ignored()
        del leases
        assert limit.acquire().delay == 2

    def test_a_call_that_is_interrupted_after_its_time_was_perhaps_made(self, clock):
        limit = RateLimit(1, per="1s")
        leases = ask(limit, 3)
        clock.advance("1s")
        leases[1].ignored()
        assert limit.acquire().delay == 2

    def test_a_timer_that_ends_early_may_have_made_the_call(self, clock):
        limit = RateLimit(1, per="1s")
        leases = ask(limit, 3)
        clock.advance("0.99s")
        leases[1].ignored()
        assert limit.metrics.total_returned == 0

    def test_a_task_that_is_cancelled_while_it_waits_gives_its_time_back(self, clock):
        async def main():
            limit = RateLimit(1, per="10s")
            call = limit(asyncio.sleep)
            await call(0)
            waiting = asyncio.create_task(call(0))
            await asyncio.sleep(0)
            assert limit.metrics.waiting == 1
            waiting.cancel()
            await asyncio.wait([waiting])
            return limit.metrics

        assert asyncio.run(main()) == (1, 0, 10, 2, 1, 0)

    def test_a_call_without_the_time_to_wait_gives_it_back(self, clock):
        limit = RateLimit(1, per="10s")
        ask_and_use(limit, 1)
        lease = limit.acquire()
        assert lease.wait(at_most=5) == ("busy for longer than the call may wait", 10)
        assert limit.acquire().delay == 10


class TestState:
    def test_is_busy_if_the_next_call_would_wait(self, clock):
        limit = RateLimit(2, per="1s")
        seen = []
        for _ in range(3):
            seen.append(limit.state)
            ask_and_use(limit, 1)
        assert seen == ["free", "free", "busy"]
        clock.advance("2s")
        assert limit.state == "free"

    def test_metrics_count_calls_of_the_last_period(self, clock):
        limit = RateLimit(10, per="1s", spread=True)
        leases = ask(limit, 15)
        assert limit.metrics == (1, 14, pytest.approx(1.5), 15, 0, 0)
        clock.advance("1.2s")
        assert limit.metrics[:2] == (10, 2)
        leases[14].ignored()
        assert limit.metrics[:2] == (10, 1)
        leases[13].ignored()
        assert limit.metrics == (10, 0, pytest.approx(0.1), 15, 2, 0)

    def test_it_is_listed(self):
        from retrykit.limits import shared

        shared("key:rate-1", make=lambda: RateLimit(5))
        assert states()["key:rate-1"] == "free"


class TestClock:
    def test_starts_anew_if_the_clock_is_replaced(self):
        limit = RateLimit(1, per="1m")
        for _ in range(2):
            with virtual_time():
                leases = ask(limit, 2)
                assert [lease.delay for lease in leases] == [0, 60]
        with virtual_time(start=1000):
            assert limit.state == "free"
            # Of the clock before.
            leases[1].ignored()
            assert delays(limit, 2) == [0, 60]
            assert limit.metrics.total_returned == 0
        assert limit.acquire().delay == 0

    def test_starts_anew_if_time_goes_back(self):
        now = 100.0
        with sync_clock.use(Readings(lambda: now)):
            limit = RateLimit(1, per="1s")
            assert delays(limit, 2) == [0, 1]
            now = 50.0
            assert delays(limit, 2) == [0, 1]
            assert limit.acquire().generation == 2

    def test_leases_tell_what_they_are(self, clock):
        limit = RateLimit(1, per="1s")
        first, second = ask(limit, 2)
        assert repr(first) == repr(second) == "<lease of a rate limit>"
        assert (first.generation, second.generation) == (1, 1)


def test_a_wait_is_exact_for_any_period(clock):
    for per in [1e-3, 1.0, 86_400.0, 1e9]:
        limit = RateLimit(2, per=per, max_wait=1e300)
        assert delays(limit, 6)[2:] == [per, per, 2 * per, 2 * per]
    assert math.isclose(limit.metrics.delay, 3e9)
