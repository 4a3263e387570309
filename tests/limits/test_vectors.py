"""Sequences from the tests and documents of breakers in other languages."""

import pytest

from retrykit import schedules as s
from retrykit.limits import CircuitBreaker, Lease, Refusal
from retrykit.limits._windows import CountWindow, TimeWindow
from retrykit.testing import virtual_time


@pytest.fixture(autouse=True)
def clock():
    with virtual_time() as clock:
        yield clock


def call(breaker, outcomes):
    for outcome in outcomes:
        lease = breaker.acquire()
        lease.succeeded() if outcome == "S" else lease.failed()


class TestResilience4j:
    """Version 2.4.0, ``resilience4j-circuitbreaker``, of 2026."""

    @pytest.fixture
    def breaker(self):
        """Return the breaker of ``CircuitBreakerStateMachineTest.setUp``.

        There, a half-open breaker stays so if fewer than half of 4 calls failed: at
        least 3 must succeed. ``COUNT_BASED`` is used where the window's size matters.
        """
        return CircuitBreaker(
            failure_rate=0.5,
            window="5s",
            minimum_calls=5,
            slow_after="4s",
            slow_rate=0.5,
            open_for="5s",
            probes=4,
            successes=3,
        )

    def half_open(self, breaker, clock):
        breaker.open()
        clock.advance("5s")
        breaker.acquire().ignored()
        assert breaker.state == "half-open"

    def test_should_open_after_failure_rate_threshold_exceeded(self, breaker):
        for outcome, failures in zip("FFFS", [1, 2, 3, 3], strict=True):
            call(breaker, outcome)
            assert breaker.state == "closed"
            assert breaker.metrics.failures == failures
        call(breaker, "S")
        assert breaker.state == "open"
        assert breaker.metrics[:4] == (5, 3, 0, 0.6)
        assert isinstance(breaker.acquire(), Refusal)
        assert breaker.metrics.total_refused == 1

    def test_should_open_after_slow_call_rate_threshold_exceeded(self, clock):
        breaker = CircuitBreaker(
            window=5, slow_after="4s", slow_rate=0.5, failure_rate=0.9
        )
        for duration in [5, 5, 0.1, 0.1, 5]:
            assert breaker.state == "closed"
            lease = breaker.acquire()
            clock.advance(duration)
            lease.succeeded()
        assert breaker.state == "open"
        assert breaker.metrics[:5] == (5, 0, 3, 0.0, 0.6)

    def test_should_only_permit_four_calls_in_half_open_state(self, breaker, clock):
        for _ in range(2):
            self.half_open(breaker, clock)
            leases = [breaker.acquire() for _ in range(6)]
            kinds = [isinstance(lease, Lease) for lease in leases]
            assert kinds == [True] * 4 + [False] * 2

    def test_should_increase_counter_on_release_permission(self, breaker, clock):
        self.half_open(breaker, clock)
        leases = [breaker.acquire() for _ in range(4)]
        assert isinstance(breaker.acquire(), Refusal)
        leases[0].ignored()
        assert isinstance(breaker.acquire(), Lease)

    def test_release_permission_of_an_earlier_state_adds_no_permit(
        self, breaker, clock
    ):
        """There, it does: ``releasePermission`` asks the current state."""
        early = [breaker.acquire() for _ in range(9)]
        self.half_open(breaker, clock)
        leases = [breaker.acquire() for _ in range(4)]
        for lease in early:
            lease.ignored()
        assert isinstance(breaker.acquire(), Refusal)
        assert len(leases) == 4

    def test_should_transition_to_half_open_after_wait_duration(self, breaker, clock):
        breaker.open()
        for _ in range(2):
            assert isinstance(breaker.acquire(), Refusal)
            clock.advance("3s")
        assert isinstance(breaker.acquire(), Lease)
        assert breaker.state == "half-open"

    def test_should_transition_to_half_open_after_wait_interval(self, clock):
        """``IntervalFunction.ofExponentialBackoff(5000)``: 5 s, then 7.5 s."""
        breaker = CircuitBreaker(window=5, open_for=s.exponential(5, factor=1.5))
        breaker.open()
        clock.advance("3s")
        assert isinstance(breaker.acquire(), Refusal)
        clock.advance("3s")
        lease = breaker.acquire()
        breaker.open()
        clock.advance("6s")
        assert breaker.acquire().retry_in == 1.5
        clock.advance("5s")
        assert isinstance(breaker.acquire(), Lease)
        lease.ignored()

    @pytest.mark.parametrize(
        ("outcomes", "state"),
        [("FF", "open"), ("FSSS", "closed"), ("SFF", "open"), ("SSS", "closed")],
    )
    def test_half_open_is_left_by_the_failure_rate(
        self, breaker, clock, outcomes, state
    ):
        """It waits for all 4 calls there. Here, the outcome that decides is enough.

        ``shouldTransitionBackToOpenStateWhenFailureRateIsAboveThreshold`` (FFSF) and
        ``shouldTransitionBackToClosedStateWhenFailureIsBelowThreshold`` (FSSS).
        """
        self.half_open(breaker, clock)
        call(breaker, outcomes)
        assert breaker.state == state

    def test_half_open_is_left_by_the_slow_call_rate(self, breaker, clock):
        """``shouldTransitionBackToOpenStateWhenSlowCallRateIsAboveThreshold``."""
        self.half_open(breaker, clock)
        for _ in range(2):
            lease = breaker.acquire()
            clock.advance("5s")
            lease.succeeded()
        assert breaker.state == "open"

    def test_circuit_breaker_metrics(self):
        """``CircuitBreakerMetricsTest.testCircuitBreakerMetrics``."""
        window = CountWindow(10)
        for outcome in "SSFF":
            window.add(0, outcome == "F", False)
        assert window.count(0) == (4, 2, 0)
        for outcome in "FFFFSSSS":
            window.add(0, outcome == "F", False)
        assert window.count(0) == (10, 6, 0)
        for _ in range(3):
            window.add(0, False, False)
        assert window.count(0) == (10, 3, 0)

    def test_sliding_window_metrics(self):
        """``FixedSizeSlidingWindowMetricsTest``, with and without slow calls."""
        window = CountWindow(4)
        seen = []
        for outcome in "FSSSS":
            window.add(0, outcome == "F", False)
            seen.append(window.count(0))
        assert seen == [(1, 1, 0), (2, 1, 0), (3, 1, 0), (4, 1, 0), (4, 0, 0)]
        window = CountWindow(2)
        seen = []
        for failed, slow in [(1, 1), (0, 1), (0, 0), (0, 0), (0, 0)]:
            window.add(0, bool(failed), bool(slow))
            seen.append(window.count(0))
        assert seen == [(1, 1, 1), (2, 1, 2), (2, 0, 1), (2, 0, 0), (2, 0, 0)]


class TestPolly:
    """Version 8.7.0, of 2026."""

    def test_increment_ok(self):
        """``RollingHealthMetricsTests.Increment_Ok``."""
        window = TimeWindow(10)
        for outcome in "FSSSS":
            window.add(0, outcome == "F", False)
        assert window.count(0) == (5, 1, 0)

    def test_get_health_info_ensure_window_respected(self):
        window, health = TimeWindow(10), []
        for i in range(5):
            window.add(2 * i, i < 2, False)
            window.add(2 * i, False, False)
            health.append(window.count(2 * i + 2))
        health.append(window.count(12))
        assert health[0] == (2, 1, 0)
        assert health[1] == (4, 2, 0)
        assert health[3] == (8, 2, 0)
        assert health[4] == (8, 1, 0)
        assert health[5] == (6, 0, 0)

    def test_get_health_info_ensure_window_capacity_respected(self):
        window = TimeWindow(10)
        for i in range(10):
            window.add(i, False, False)
        assert window.count(10)[0] == 9
        assert window.count(11)[0] == 8

    @pytest.mark.parametrize("variance", [0, 0.001])
    def test_get_health_info_sampling_duration_respected(self, variance):
        window = TimeWindow(10)
        window.add(0, False, False)
        window.add(0, False, False)
        assert window.count(10 + variance)[0] == 0

    @pytest.fixture
    def breaker(self):
        """Return the one of docs/strategies/circuit-breaker.md, "Complex"."""
        return CircuitBreaker(
            window="2s", minimum_calls=2, failure_rate=0.5, open_for="1s"
        )

    def test_simple_happy_path(self):
        """Of docs/strategies/circuit-breaker.md: a rate of 0.33 is below 0.5."""
        breaker = CircuitBreaker(window="2s", minimum_calls=2, failure_rate=0.5)
        call(breaker, "SSF")
        assert breaker.state == "closed"

    def test_simple_unhappy_path(self, breaker):
        call(breaker, "SF")
        assert breaker.state == "open"

    def test_complex_happy_path(self, breaker, clock):
        call(breaker, "FF")
        assert isinstance(breaker.acquire(), Refusal)
        clock.advance("1s")
        call(breaker, "S")
        assert breaker.state == "closed"

    def test_complex_unhappy_path(self, breaker, clock):
        call(breaker, "FF")
        assert isinstance(breaker.acquire(), Refusal)
        clock.advance("1s")
        call(breaker, "F")
        assert breaker.state == "open"

    def test_failure_handling(self):
        """The output of docs/strategies/circuit-breaker.md, "Failure handling"."""
        breaker = CircuitBreaker(
            failure_rate=0.1, window="1s", minimum_calls=3, open_for="30s"
        )
        answers = []
        for _ in range(10):
            answers.append(breaker.acquire())
            if isinstance(answers[-1], Lease):
                answers[-1].failed()
        refused = [isinstance(answer, Refusal) for answer in answers]
        assert refused == [False] * 3 + [True] * 7

    def test_flow_closed_half_open_open_half_open_closed(self, clock):
        """``CircuitStateControllerTests``, with the default break of 5 s."""
        breaker = CircuitBreaker(open_for="5s")
        breaker.open()
        clock.advance("5s")
        call(breaker, "F")
        assert breaker.state == "open"
        clock.advance("1ms")
        assert breaker.acquire().retry_in == pytest.approx(4.999)
        clock.advance("10s")
        lease = breaker.acquire()
        assert breaker.state == "half-open"
        lease.succeeded()
        assert breaker.state == "closed"

    def test_on_action_pre_execute_half_open(self, clock):
        """One probe; a second call is refused."""
        breaker = CircuitBreaker(open_for="5s")
        breaker.open()
        clock.advance("5s")
        answers = [breaker.acquire() for _ in range(2)]
        assert [type(answer) is Refusal for answer in answers] == [False, True]

    @pytest.mark.parametrize("report", ["succeeded", "failed"])
    @pytest.mark.parametrize("state", ["open", "isolate"])
    def test_reports_do_not_change_an_open_or_isolated_breaker(self, report, state):
        """``OnActionSuccess`` and ``OnActionFailureAsync_EnsureCorrectBehavior``."""
        breaker = CircuitBreaker(consecutive_failures=1)
        lease = breaker.acquire()
        getattr(breaker, state)()
        before = breaker.state
        getattr(lease, report)()
        assert breaker.state == before


# Failsafe's thresholds by calls: k failures of n, or k failures in a row.
FAILSAFE_CLOSED = [
    ("testFailureWithDefaultConfig", {"consecutive_failures": 1}, "F", "open"),
    ("testFailureWithFailureRatio", (2, 3), "FSF", "open"),
    ("testFailureWithFailureThreshold", {"consecutive_failures": 3}, "FSFFF", "open"),
    ("testSuccessWithDefaultConfig", {"consecutive_failures": 1}, "S", "closed"),
    ("testSuccessWithFailureRatio", (3, 4), "SF" * 20, "closed"),
    (
        "testSuccessWithFailureThreshold",
        {"consecutive_failures": 2},
        "SF" * 20,
        "closed",
    ),
]
# k successes of n probes; without them, there, as many as close the failure ratio.
FAILSAFE_HALF_OPEN = [
    ("testFailureWithDefaultConfig", (1, 1), "F", "open"),
    ("testFailureWithSuccessAndFailureThresholds", (3, 3), "SSF", "open"),
    ("testFailureWithSuccessAndFailureRatios", (3, 4), "SFSF", "open"),
    ("testFailureWithSuccessRatio", (2, 3), "FSF", "open"),
    ("testFailureWithSuccessRatioAndFailureThreshold", (2, 4), "SFFF", "open"),
    ("testFailureWithSuccessThreshold", (3, 3), "SF", "open"),
    ("testFailureWithSuccessThresholdAndFailureRatio", (3, 3), "F", "open"),
    ("testSuccessWithDefaultConfig", (1, 1), "S", "closed"),
    ("testSuccessWithSuccessAndFailureRatios", (3, 4), "SFSS", "closed"),
    ("testSuccessWithSuccessAndFailureThresholds", (3, 3), "SSS", "closed"),
    ("testSuccessWithSuccessRatio", (2, 3), "FSS", "closed"),
    ("testSuccessWithSuccessRatioAndFailureThreshold", (3, 4), "SSFS", "closed"),
    ("testSuccessWithSuccessThreshold", (3, 3), "SSS", "closed"),
]


class TestFailsafe:
    """Commit ed3f927 of 2025-12, after version 3.3.2."""

    @pytest.mark.parametrize(
        ("settings", "outcomes", "state"),
        [row[1:] for row in FAILSAFE_CLOSED],
        ids=[row[0] for row in FAILSAFE_CLOSED],
    )
    def test_closed_state(self, settings, outcomes, state):
        """``ClosedStateTest``."""
        if isinstance(settings, tuple):
            part, of = settings
            settings = {"failure_rate": part / of, "window": of, "minimum_calls": of}
        breaker = CircuitBreaker(**settings)
        call(breaker, outcomes[:-1])
        assert breaker.state == "closed"
        call(breaker, outcomes[-1])
        assert breaker.state == state

    @pytest.mark.parametrize(
        ("threshold", "outcomes", "state"),
        [row[1:] for row in FAILSAFE_HALF_OPEN],
        ids=[row[0] for row in FAILSAFE_HALF_OPEN],
    )
    def test_half_open_state(self, clock, threshold, outcomes, state):
        """``HalfOpenStateTest``."""
        successes, probes = threshold
        breaker = CircuitBreaker(probes=probes, successes=successes, open_for=1)
        breaker.open()
        clock.advance(1)
        breaker.acquire().ignored()
        for outcome in outcomes:
            assert breaker.state == "half-open"
            call(breaker, outcome)
        assert breaker.state == state

    def test_metrics(self):
        """``TimedCircuitStatsTest.testMetrics``: four slots of a second."""
        stats = TimeWindow(4, slots=4)
        steps = [
            (0, 10, 40, (50, 40)),
            (1, 10, 0, (60, 40)),
            (2.5, 0, 20, (80, 60)),
            (3.1, 5, 20, (105, 80)),
            (5.4, 8, 0, (53, 40)),
            (7.3, 0, 5, (13, 5)),
            (22.5, 0, 0, (0, 0)),
        ]
        for now, successes, failures, counts in steps:
            for _ in range(successes):
                stats.add(now, False, False)
            for _ in range(failures):
                stats.add(now, True, False)
            assert stats.count(now) == (*counts, 0)
