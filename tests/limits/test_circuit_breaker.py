"""States of a circuit breaker: when it opens, probes, closes, and tells of it."""

import gc
import logging
from datetime import timedelta

import pytest

from retrykit import schedules as s
from retrykit.limits import CircuitBreaker, CircuitChange, Lease, Refusal
from retrykit.limits._windows import TimeWindow
from retrykit.testing import virtual_time
from tests._support.concurrency import in_thread


@pytest.fixture
def clock():
    with virtual_time() as clock:
        yield clock


def call(breaker, *outcomes):
    """Make calls that succeed ("S"), fail ("F") or are ignored ("I")."""
    report = {"S": "succeeded", "F": "failed", "I": "ignored"}
    for outcome in "".join(outcomes):
        getattr(breaker.acquire(), report[outcome])()


def slow_call(breaker, clock, duration, outcome="succeeded"):
    lease = breaker.acquire()
    clock.advance(duration)
    getattr(lease, outcome)()


def refusal(breaker):
    answer = breaker.acquire()
    assert isinstance(answer, Refusal)
    return answer


class TestClosed:
    def test_opens_when_the_rate_of_failures_is_reached(self):
        breaker = CircuitBreaker(window=10, minimum_calls=4)
        call(breaker, "SFS")
        assert breaker.state == "closed"
        call(breaker, "F")
        assert breaker.state == "open"
        assert breaker.metrics[:5] == (4, 2, 0, 0.5, 0.0)
        assert refusal(breaker).reason == "open, as 2 of 4 calls failed"

    def test_a_success_that_completes_the_minimum_opens_it(self):
        breaker = CircuitBreaker(minimum_calls=3)
        call(breaker, "FFS")
        assert breaker.state == "open"

    def test_ignored_calls_are_not_in_the_window(self):
        breaker = CircuitBreaker(minimum_calls=2)
        call(breaker, "FIII")
        assert breaker.state == "closed"
        assert breaker.metrics == (1, 1, 0, 1.0, 0.0, 0, 1, 3, 0)

    def test_calls_fall_out_of_a_full_window(self):
        breaker = CircuitBreaker(window=4, failure_rate=0.75)
        call(breaker, "FF", "SSSS", "FF")
        assert breaker.state == "closed"
        assert breaker.metrics[:3] == (4, 2, 0)
        call(breaker, "F")
        assert breaker.state == "open"

    @pytest.mark.parametrize(
        ("rate", "failures", "calls"),
        [(0.07, 7, 100), (1 / 3, 1, 3), (5 / 6, 5, 6), (0.1, 10, 100)],
        ids=["7 %", "a third", "five sixths", "10 %"],
    )
    def test_a_rate_is_the_number_that_was_meant(self, rate, failures, calls):
        breaker = CircuitBreaker(window=calls, minimum_calls=calls, failure_rate=rate)
        call(breaker, "S" * (calls - failures), "F" * (failures - 1))
        assert breaker.state == "closed"
        call(breaker, "F")
        assert breaker.state == "open"

    def test_calls_of_a_time_window_are_forgotten(self, clock):
        breaker = CircuitBreaker(window="10s", minimum_calls=3)
        call(breaker, "FF")
        clock.advance("10s")
        assert breaker.metrics[:5] == (0, 0, 0, None, None)
        call(breaker, "F")
        assert breaker.state == "closed"
        clock.advance("5s")
        call(breaker, "FF")
        assert breaker.state == "open"

    def test_opens_after_failures_in_a_row(self):
        breaker = CircuitBreaker(consecutive_failures=3)
        call(breaker, "FFSFFIS", "FF")
        assert breaker.state == "closed"
        call(breaker, "F")
        assert refusal(breaker).reason == "open, as 3 calls in a row failed"

    def test_a_success_ends_a_row_whose_failures_left_the_window(self, clock):
        breaker = CircuitBreaker(consecutive_failures=2, window="1s")
        call(breaker, "F")
        clock.advance("5s")
        call(breaker, "SF")
        assert breaker.state == "closed"

    def test_failures_in_a_row_need_no_rate_unless_one_is_given(self):
        breaker = CircuitBreaker(consecutive_failures=50, minimum_calls=1)
        call(breaker, "F" * 49)
        assert breaker.state == "closed"
        both = CircuitBreaker(
            consecutive_failures=50, failure_rate=0.5, minimum_calls=10
        )
        call(both, "F" * 10)
        assert both.state == "open"

    def test_opens_when_too_many_calls_are_slow(self, clock):
        breaker = CircuitBreaker(slow_after="2s", window=4)
        for duration in [2, 3, 0, 3]:
            assert breaker.state == "closed"
            slow_call(breaker, clock, duration)
        assert refusal(breaker).reason == "open, as 2 of 4 calls were slow"
        assert breaker.metrics[:5] == (4, 0, 2, 0.0, 0.5)

    def test_slow_calls_alone_can_open_it(self, clock):
        breaker = CircuitBreaker(
            slow_after=1, slow_rate=1.0, window="1m", minimum_calls=2
        )
        slow_call(breaker, clock, 2, "failed")
        slow_call(breaker, clock, 2)
        assert breaker.metrics[:3] == (2, 1, 2)
        assert breaker.state == "open"

    def test_the_minimum_is_that_of_a_small_window(self):
        assert CircuitBreaker(window=7).minimum_calls == 7
        assert CircuitBreaker(window=70).minimum_calls == 20
        assert CircuitBreaker().minimum_calls == 20


class TestOpen:
    def test_refuses_calls_for_its_time(self, clock):
        breaker = CircuitBreaker(consecutive_failures=1, open_for="10s")
        call(breaker, "F")
        assert refusal(breaker) == ("open, as the last call failed", 10.0)
        clock.advance("9.5s")
        assert refusal(breaker).retry_in == 0.5
        assert breaker.metrics.total_refused == 2
        clock.advance("0.5s")
        assert breaker.state == "open"
        assert isinstance(breaker.acquire(), Lease)
        assert breaker.state == "half-open"

    def test_a_schedule_has_the_times_of_openings_in_a_row(self, clock):
        breaker = CircuitBreaker(consecutive_failures=1, open_for=[1, 5, "10s"])
        waits = []
        for _ in range(5):
            call(breaker, "F")
            waits.append(refusal(breaker).retry_in)
            clock.advance(waits[-1])
        assert waits == [1, 5, 10, 10, 10]
        call(breaker, "S")
        assert breaker.state == "closed"
        call(breaker, "F")
        assert refusal(breaker).retry_in == 1

    def test_times_can_be_jittered(self, clock):
        schedule = s.exponential(1).cap(60).equal_jitter()
        waits = []
        for _ in range(20):
            breaker = CircuitBreaker(consecutive_failures=1, open_for=schedule)
            call(breaker, "F")
            waits.append(refusal(breaker).retry_in)
        assert len({*waits}) == 20
        assert all(0.5 <= wait <= 1 for wait in waits)

    def test_a_time_of_zero_probes_at_once(self, clock):
        breaker = CircuitBreaker(consecutive_failures=1, open_for=[0])
        call(breaker, "F")
        assert isinstance(breaker.acquire(), Lease)

    def test_a_schedule_that_fails_is_logged(self, clock, caplog):
        class Broken(s.Schedule):
            def delay(self, retry, previous, random):
                return {1: 4.0, 2: -1.0}[retry]

            def bounds(self, retry):
                return (0.0, 9.0)

        breaker = CircuitBreaker(consecutive_failures=1, open_for=Broken())
        waits = []
        for _ in range(3):
            call(breaker, "F")
            waits.append(refusal(breaker).retry_in)
            clock.advance(waits[-1])
        assert waits == [4.0, 4.0, 4.0]
        texts = [record.getMessage() for record in caplog.records]
        assert all("opens for 4.0 s, because its schedule failed" in x for x in texts)
        assert len(texts) == 2
        assert caplog.records[0].levelno == logging.ERROR

    def test_is_the_default_if_the_schedule_fails_at_once(self, clock, caplog):
        def fail():
            yield 1 / 0

        breaker = CircuitBreaker(consecutive_failures=1)
        breaker.open_for = s.sequence([1]).take(0).then(fail)
        call(breaker, "F")
        assert refusal(breaker).retry_in == 30
        assert "ZeroDivisionError" in caplog.text

    def test_a_schedule_that_is_interrupted_is_asked_again(self, clock):
        interrupts = [KeyboardInterrupt()]

        class Interrupted(s.Schedule):
            def delay(self, retry, previous, random):
                if interrupts:
                    raise interrupts.pop()
                return 7.0

            def bounds(self, retry):
                return (7.0, 7.0)

        breaker = CircuitBreaker(consecutive_failures=1, open_for=Interrupted())
        with pytest.raises(KeyboardInterrupt):
            breaker.acquire().failed()
        assert breaker.state == "open"
        assert refusal(breaker).retry_in == 7.0

    def test_two_threads_that_draw_a_time_agree_on_the_first(self, clock):
        breaker = CircuitBreaker(consecutive_failures=1)
        delays = [2.0, 5.0]

        class Reentrant(s.Schedule):
            def delay(self, retry, previous, random):
                delay = delays.pop()
                if delays:
                    # As another thread does while this one draws.
                    breaker.acquire()
                return delay

            def bounds(self, retry):
                return (0.0, 9.0)

        breaker.open_for = Reentrant()
        call(breaker, "F")
        assert refusal(breaker).retry_in == 2.0

    def test_its_schedule_is_asked_without_the_lock(self, clock):
        class Waiting(s.Schedule):
            def delay(self, retry, previous, random):
                return float(in_thread(lambda: breaker.metrics).failures)

            def bounds(self, retry):
                return (1.0, 1.0)

        breaker = CircuitBreaker(consecutive_failures=1, open_for=Waiting())
        call(breaker, "F")
        assert refusal(breaker).retry_in == 1

    def test_starts_anew_if_the_clock_was_replaced(self):
        with virtual_time(start=1000):
            breaker = CircuitBreaker(consecutive_failures=1, open_for="10s")
            call(breaker, "F")
        with virtual_time() as clock:
            assert refusal(breaker).retry_in == 10
            clock.advance("10s")
            assert isinstance(breaker.acquire(), Lease)


class TestHalfOpen:
    @pytest.fixture
    def half_open(self, clock):
        def make(**settings):
            breaker = CircuitBreaker(window=10, open_for="10s", **settings)
            breaker.open()
            clock.advance("10s")
            return breaker

        return make

    def test_lets_as_many_probes_through_as_it_is_told(self, half_open):
        breaker = half_open(probes=3)
        leases = [breaker.acquire() for _ in range(3)]
        assert all(isinstance(lease, Lease) for lease in leases)
        assert refusal(breaker) == ("half-open, and waits for 3 probes", None)
        assert {lease.generation for lease in leases} == {2}

    def test_a_success_closes_it(self, half_open):
        breaker = half_open()
        call(breaker, "S")
        assert breaker.state == "closed"
        assert breaker.metrics[:3] == (0, 0, 0)

    def test_a_failure_opens_it_again(self, half_open, clock):
        breaker = half_open()
        call(breaker, "F")
        assert refusal(breaker) == ("open, as 1 of 1 probe failed", 10)

    @pytest.mark.parametrize(
        ("successes", "outcomes", "state"),
        [
            (None, "SS", "half-open"),
            (None, "SSS", "closed"),
            (None, "F", "open"),
            (2, "SFS", "closed"),
            (2, "FF", "open"),
            (0.5, "SFS", "closed"),
            (0.01, "FFS", "closed"),
            (1.0, "SSF", "open"),
        ],
    )
    def test_a_number_or_a_share_of_successes_closes_it(
        self, half_open, successes, outcomes, state
    ):
        breaker = half_open(probes=3, successes=successes)
        call(breaker, outcomes)
        assert breaker.state == state

    def test_counts_its_probes(self, half_open, clock):
        breaker = half_open(probes=4, successes=1, slow_after="5s")
        call(breaker, "F")
        slow_call(breaker, clock, 6)
        assert breaker.metrics[:5] == (2, 1, 1, 0.5, 0.5)
        assert breaker.state == "half-open"

    def test_a_slow_probe_is_a_failed_one(self, half_open, clock):
        breaker = half_open(slow_after="5s")
        slow_call(breaker, clock, 6)
        assert breaker.state == "open"

    def test_an_ignored_probe_gives_its_place_back(self, half_open):
        breaker = half_open()
        call(breaker, "IIII")
        assert breaker.state == "half-open"
        call(breaker, "S")
        assert breaker.state == "closed"

    def test_a_dropped_probe_gives_its_place_back(self, half_open):
        breaker = half_open()
        lease = breaker.acquire()
        refusal(breaker)
        del lease
        gc.collect()
        assert isinstance(breaker.acquire(), Lease)

    def test_a_probe_in_a_reference_cycle_gives_its_place_back(self, half_open):
        breaker = half_open()
        cycle = [breaker.acquire()]
        cycle.append(cycle)
        refusal(breaker)
        del cycle
        gc.collect()
        assert isinstance(breaker.acquire(), Lease)

    def test_a_probe_expires_and_its_late_report_does_not_count(self, half_open, clock):
        breaker = half_open(probe_timeout="20s")
        lost = breaker.acquire()
        clock.advance("19s")
        refusal(breaker)
        clock.advance("1s")
        probe = breaker.acquire()
        lost.succeeded()
        assert breaker.state == "half-open"
        assert breaker.metrics.total_succeeded == 1
        probe.failed()
        assert breaker.state == "open"

    def test_a_late_probe_does_not_count_even_if_no_other_went(self, half_open, clock):
        breaker = half_open(probe_timeout="20s")
        slow_call(breaker, clock, "21s")
        assert breaker.state == "half-open"
        assert isinstance(breaker.acquire(), Lease)

    def test_probes_of_a_replaced_clock_expire(self):
        with virtual_time(start=1000) as clock:
            breaker = CircuitBreaker(consecutive_failures=1, open_for=1)
            call(breaker, "F")
            clock.advance(1)
            lease = breaker.acquire()
        with virtual_time():
            assert isinstance(breaker.acquire(), Lease)
            lease.ignored()


class TestLease:
    def test_the_first_report_counts(self):
        breaker = CircuitBreaker()
        lease = breaker.acquire()
        assert lease.delay == 0
        lease.failed(OSError())
        lease.succeeded()
        lease.failed()
        lease.ignored()
        assert breaker.metrics == (1, 1, 0, 1.0, 0.0, 0, 1, 0, 0)
        # As if another thread reported between the check and the lock.
        breaker.settle(lease, True)
        breaker.ignore(lease)
        assert breaker.metrics.total_failed == 1

    def test_a_report_of_an_older_generation_counts_for_totals_alone(self, clock):
        breaker = CircuitBreaker(consecutive_failures=1, open_for="1s")
        early = [breaker.acquire() for _ in range(3)]
        call(breaker, "F")
        early[0].succeeded()
        assert breaker.state == "open"
        clock.advance("1s")
        probe = breaker.acquire()
        early[1].succeeded()
        early[2].ignored()
        assert breaker.state == "half-open"
        probe.succeeded()
        assert breaker.state == "closed"
        assert breaker.metrics == (0, 0, 0, None, None, 3, 1, 1, 0)
        assert [early[0].generation, probe.generation] == [0, 2]

    def test_is_printed_with_its_state(self):
        lease = CircuitBreaker().acquire()
        assert repr(lease) == "<lease of a breaker that was closed>"


class TestByHand:
    def test_is_opened(self, clock):
        breaker = CircuitBreaker(open_for=[10, 20])
        breaker.open()
        assert refusal(breaker) == ("open, as it was opened by hand", 10)
        breaker.open()
        assert refusal(breaker).retry_in == 20

    def test_is_closed_with_an_empty_window(self):
        breaker = CircuitBreaker()
        call(breaker, "FS")
        breaker.close()
        assert breaker.metrics == (0, 0, 0, None, None, 1, 1, 0, 0)
        breaker.open()
        breaker.close()
        assert isinstance(breaker.acquire(), Lease)

    def test_is_isolated_until_it_is_closed(self, clock):
        breaker = CircuitBreaker()
        call(breaker, "FS")
        breaker.isolate()
        clock.advance("1d")
        breaker.open()
        assert breaker.state == "isolated"
        assert refusal(breaker) == ("isolated until close() is called", None)
        assert breaker.metrics[:3] == (2, 1, 0)
        breaker.close()
        assert breaker.state == "closed"

    def test_calls_that_were_in_flight_do_not_matter(self):
        breaker = CircuitBreaker(consecutive_failures=1)
        lease = breaker.acquire()
        breaker.isolate()
        lease.succeeded()
        assert breaker.state == "isolated"


class TestObservers:
    def test_are_told_of_each_change(self, clock):
        changes = []
        breaker = CircuitBreaker(
            consecutive_failures=1, open_for=[5, 6], observers=[changes.append]
        )
        call(breaker, "F")
        clock.advance(5)
        call(breaker, "F")
        clock.advance(6)
        call(breaker, "S")
        breaker.isolate()
        breaker.close()
        breaker.open()
        # Of these there are none, as the state stays the same.
        breaker.open()
        assert all(isinstance(change, CircuitChange) for change in changes)
        assert all(change.breaker is breaker for change in changes)
        assert [change[1:] for change in changes] == [
            ("closed", "open", "the last call failed", 1, 5),
            ("open", "half-open", "its time is over", 2, None),
            ("half-open", "open", "1 of 1 probe failed", 3, 6),
            ("open", "half-open", "its time is over", 4, None),
            ("half-open", "closed", "1 of 1 probe succeeded", 5, None),
            ("closed", "isolated", "it was isolated by hand", 6, None),
            ("isolated", "closed", "it was closed by hand", 7, None),
            ("closed", "open", "it was opened by hand", 8, 5),
        ]

    def test_are_told_without_the_lock(self):
        seen = []
        breaker = CircuitBreaker(consecutive_failures=1)
        breaker.observers.append(
            lambda change: seen.append(in_thread(lambda: change.breaker.metrics))
        )
        call(breaker, "F")
        assert seen[0].failures == 1

    def test_may_use_the_breaker(self):
        breaker = CircuitBreaker(consecutive_failures=1)
        breaker.observers.append(lambda change: change.breaker.close())
        call(breaker, "F")
        assert breaker.state == "closed"

    def test_that_fail_are_logged(self, caplog):
        seen = []
        observers = [lambda _: 1 / 0, seen.append]
        breaker = CircuitBreaker(observers=observers)
        breaker.open()
        assert len(seen) == 1
        assert "an observer of a circuit breaker failed" in caplog.text
        assert "ZeroDivisionError" in caplog.text

    def test_that_are_interrupted_leave_a_place_for_another_probe(self, clock):
        def interrupt(change):
            if change.new == "half-open":
                raise KeyboardInterrupt

        breaker = CircuitBreaker(open_for=1, observers=[interrupt])
        breaker.open()
        clock.advance(1)
        with pytest.raises(KeyboardInterrupt):
            breaker.acquire()
        assert isinstance(breaker.acquire(), Lease)


def test_an_answer_is_repeated_if_the_state_changes_meanwhile():
    """As another thread changes it, between the reading and the lock."""

    class Later(float):
        """The length of an opening, which closes the breaker when it is read."""

        def __radd__(self, since):
            if changes:
                changes.pop()()
            return since

    changes = []
    breaker = CircuitBreaker(open_for=1, consecutive_failures=1)
    breaker.open_for = Later()
    for change in [breaker.close, breaker.isolate, breaker.open]:
        breaker.close()
        call(breaker, "F")
        changes.append(change)
        answer = breaker.acquire()
        assert isinstance(answer, Refusal) == (change == breaker.isolate)


def test_a_probe_is_granted_by_the_state_of_that_moment(clock):
    """As another thread closes the breaker while this one waits for the lock."""

    class Busy:
        """A lock that another thread held before."""

        def __enter__(self):
            breaker._lock = lock  # noqa: SLF001  there is no other way
            breaker.close()

        def __exit__(self, *_): ...

    breaker = CircuitBreaker(open_for=1)
    breaker.open()
    clock.advance(1)
    breaker.acquire().ignored()
    lock, breaker._lock = breaker._lock, Busy()  # noqa: SLF001  as above
    assert breaker.acquire().generation == 3


def test_a_window_of_time_is_given_as_text_or_timedelta():
    for window in ["1m30s", timedelta(seconds=90)]:
        assert CircuitBreaker(window=window).window == "90s"
    assert CircuitBreaker(window="1.5s").window == "1.5s"


def test_a_time_window_drops_nothing_when_time_goes_back():
    window = TimeWindow(10)
    window.add(100, True, False)
    window.add(0, False, True)
    assert window.count(0) == (2, 1, 1)


def test_is_printed_as_the_expression_that_makes_it():
    breaker = CircuitBreaker(
        name="api", open_for=s.constant(5).cap(60), on=(OSError, EOFError)
    )
    assert repr(breaker) == (
        "CircuitBreaker(open_for=constant(5.0).cap(60.0), on=(OSError, EOFError), "
        "name='api')"
    )
    assert repr(CircuitBreaker()) == "CircuitBreaker()"
    assert repr(CircuitBreaker(on=OSError, on_result=bool)) == (
        "CircuitBreaker(on=OSError, on_result=bool)"
    )
