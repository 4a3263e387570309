"""Sequences from the tests of the adaptive mode of AWS SDKs."""

import pytest

from retrykit.limits import AdaptiveRateLimit
from retrykit.limits._cubic_rate import start_rate
from retrykit.testing import virtual_time


class SlowDownError(Exception):
    """The service throttles."""


@pytest.fixture(autouse=True)
def clock():
    with virtual_time() as clock:
        yield clock


@pytest.fixture
def limit():
    return AdaptiveRateLimit(on=SlowDownError)


def answer(limit, *, throttled):
    lease = limit.acquire()
    lease.failed(SlowDownError()) if throttled else lease.succeeded()


def throttled_at(time, rate):
    """Return the state right after calls at a rate were throttled."""
    state = start_rate(0.0)._replace(measured_rate=rate, measured_at=time)
    return state.after_call(time, throttled=True)


class TestBotocore:
    """Version 1.44.8: ``tests/unit/retries``."""

    def test_starting_params(self):
        window = throttled_at(0.25, 10.0).window
        assert window == pytest.approx(1.9574338205844317, rel=1e-15)

    def test_success_responses_until_max_hit(self):
        state = throttled_at(0.25, 10.0)._replace(measured_rate=1e9)
        window = state.window

        def rate(after):
            return state.after_call(0.25 + after, throttled=False).fill_rate

        assert max(map(rate, [window / 3, window / 2, window / 1.1])) <= 10
        assert rate(window) == pytest.approx(10, rel=1e-12)
        assert min(rate(window * 1.1), rate(window * 2)) >= 10

    def test_error_response_decreases_rate_by_beta(self):
        state = throttled_at(0.25, 8.0)
        assert state.fill_rate == 8 * 0.7
        assert state[-3:] == (8.0, 0.25, 1.8171205928321397)

    def test_bucket_acquisition_only_if_enabled(self, limit):
        assert [limit.acquire().delay for _ in range(100)] == [0] * 100

    def test_token_bucket_enabled_on_throttling_error(self, limit):
        answer(limit, throttled=True)
        assert limit.state == "limiting"
        assert limit.metrics.expected_wait == 2.0

    def test_max_rate_cant_exceed_20_percent_max(self):
        """In spite of its name: twice the measured rate."""
        state = throttled_at(0.25, 20.0).after_call(9.25, throttled=False)
        assert state.fill_rate == 2 * state.measured_rate

    @pytest.mark.parametrize(
        ("times", "least", "most"),
        [
            ([], 0, 0),
            ([1], 0.8, 0.8),
            (range(1, 21), 1 - 1e-7, 1 + 1e-7),
            ([1, 1.5, 2, 2.5, 3, 3.5, 4], 1.99, 2),
            ([1, 1.5, 2, 2.5, 3, 3.5, 4, 14], 0.1, 2),
            ([1, 1, 1, 2, 3], 1, 9),
            ([0.1, 0.2, 0.3, 0.4, 0.49], 0, 0),
            ([0.1, 0.2, 0.3, 0.4, 0.49, 0.5], 12 * 0.8, 12 * 0.8),
        ],
        ids=[
            "initial_rate_is_0",
            "time_updates_if_after_bucket_range",
            "can_measure_constant_rate",
            "uses_smoothing_to_favor_recent_weights",
            "after a pause",
            "noop_when_delta_t_is_0",
            "times_are_grouped_per_time_bucket",
            "the next bucket",
        ],
    )
    def test_rate_clocker(self, limit, clock, times, least, most):
        for time in times:
            clock.advance(time - clock.now())
            answer(limit, throttled=False)
        assert least <= limit.metrics.measured_rate <= most

    def bucket(self, rate):
        return start_rate(0.0)._replace(fill_rate=rate, capacity=rate, limiting=True)

    def test_can_retrieve_at_max_send_rate(self):
        state = self.bucket(10.0)
        for step in range(20):
            state = state.fill(1 + 0.1 * step).add(-1)
            assert state.tokens >= 0

    def test_can_change_max_capacity_lower(self):
        state = self.bucket(10.0)
        for time in range(1, 6):
            state = state.fill(time).add(-1)
        assert state.tokens == 9
        state = state.after_call(5.0, throttled=True)
        assert (state.capacity, state.tokens) == (1.0, 1.0)

    def test_max_capacity_is_at_least_one(self, limit):
        answer(limit, throttled=True)
        assert limit.metrics[:2] == (0.5, 1.0)

    def test_acquiring_blocks_when_capacity_reached(self, limit, clock):
        limit._state = self.bucket(10.0)  # noqa: SLF001  as its own test has it
        clock.advance(0.1)
        first = limit.acquire()
        assert first.delay == 0
        assert limit.metrics.tokens == 0
        clock.advance(0.05)
        lease = limit.acquire()
        assert lease.delay == pytest.approx(0.05, rel=1e-12)
        assert lease.wait() is None
        assert clock.now() == pytest.approx(0.2, rel=1e-12)
        assert limit.metrics.tokens == pytest.approx(0, abs=1e-12)
        clock.advance(0.100001)
        assert limit.acquire().delay == 0


class TestSmithy:
    """smithy-rs of 2026-08, ``client_rate_limiter.rs``, after aws-sdk-go-v2."""

    def test_should_match_beta_decrease(self):
        assert throttled_at(1.0, 10.0).fill_rate == 7.0

    def test_calculated_rate_with_successes(self):
        state = throttled_at(5.0, 10.0)._replace(measured_rate=1e9)
        rates = [
            state.after_call(time, throttled=False).fill_rate for time in range(5, 12)
        ]
        assert rates == pytest.approx(
            [
                7.0,
                9.64893600966,
                10.000030849917364,
                10.453284520772092,
                13.408697022224185,
                21.26626835427364,
                36.425998516920465,
            ],
            rel=1e-9,
        )

    def test_calculated_rate_with_throttles(self):
        """There, the rate at the last throttling is the one after it, but here not."""
        state, rates = throttled_at(5.0, 10.0), []
        for time in range(5, 13):
            throttled = time in {7, 8}
            state = state._replace(measured_rate=1e9, measured_at=time)
            if throttled:
                state = state._replace(fill_rate=rates[-1])
            state = state.after_call(time, throttled=throttled)
            if throttled:
                rate = state.fill_rate
                window = (rate * (1 - 0.7) / 0.4) ** (1 / 3)
                state = state._replace(last_max=rate, window=window)
            rates.append(state.fill_rate)
        assert rates == pytest.approx(
            [
                7.0,
                9.64893600966,
                6.754255206761999,
                4.727978644733399,
                4.670125557970046,
                4.770870456867401,
                6.011819748005445,
                10.792973431384178,
            ],
            rel=1e-9,
        )

    def test_client_sending_rates(self, limit, clock):
        expected = [
            (0.2, 0.0, 0.5),
            (0.4, 0.0, 0.5),
            (0.6, 4.8, 0.5),
            (0.8, 4.8, 0.5),
            (1.0, 4.16, 0.5),
            (1.2, 4.16, 0.6912),
            (1.4, 4.16, 1.0976),
            (1.6, 5.632, 1.6384),
            (1.8, 5.632, 2.3328),
            (2.0, 4.3264, 3.02848),
            (2.2, 4.3264, 3.48663917347026),
            (2.4, 4.3264, 3.821874416040255),
            (2.6, 5.66528, 4.053385727709987),
            (2.8, 5.66528, 4.200373108479454),
            (3.0, 4.333056, 4.282036558348658),
            (3.2, 4.333056, 2.99742559084406),
            (3.4, 4.333056, 3.4522263943863463),
        ]
        for time, measured, fill in expected:
            # There, a time that has passed is not a sum of floats.
            clock.advance(max(time - clock.now(), 0.0))
            assert clock.now() == time
            answer(limit, throttled=time in {2.0, 3.2})
            metrics = limit.metrics
            assert metrics.measured_rate == pytest.approx(measured, rel=1e-12)
            assert metrics.fill_rate == pytest.approx(fill, rel=1e-9)

    def test_acquire_succeeds_after_sufficient_refill(self, limit, clock):
        answer(limit, throttled=True)
        clock.advance(0.1)
        assert limit.metrics.expected_wait == pytest.approx(1.9, rel=1e-12)
        clock.advance(2.0)
        lease = limit.acquire()
        assert lease.delay == 0
        assert limit.metrics.tokens == pytest.approx(0, abs=0.01)

    @pytest.mark.parametrize("seed", range(5))
    def test_when_throttling_is_enabled_requests_can_still_be_sent(self, seed, clock):
        limit, slept = AdaptiveRateLimit(on=SlowDownError), 0.0
        answer(limit, throttled=True)
        for step in range(100):
            pause = (seed * 0.37 + step * 0.618) % 1
            clock.advance(pause)
            lease = limit.acquire()
            assert lease.wait() is None
            lease.succeeded()
            slept += pause
        assert limit.state == "limiting"
        assert clock.now() == pytest.approx(slept + sum(clock.sleeps))
