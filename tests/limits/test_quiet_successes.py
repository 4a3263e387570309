"""Successes that can change nothing take no lock, and are counted later."""

from fractions import Fraction
from itertools import count

import pytest
from hypothesis import given, strategies as st

from retrykit.limits import CircuitBreaker, _circuit_breaker
from retrykit.limits._circuit_state import Successes
from retrykit.limits._windows import CountWindow, TimeWindow
from retrykit.testing import virtual_time
from tests.limits.test_concurrency import THREADS, on_threads


class NoLock:
    """A lock that nobody may take."""

    def __enter__(self):
        raise AssertionError

    def __exit__(self, *_): ...


def call(breaker, outcomes):
    for outcome in outcomes:
        lease = breaker.acquire()
        lease.succeeded() if outcome == "S" else lease.failed()


def is_quiet(breaker):
    """Make a success; return whether it took no lock."""
    lease = breaker.acquire()
    lock, breaker._lock = breaker._lock, NoLock()  # noqa: SLF001  no other way
    try:
        lease.succeeded()
    except AssertionError:
        breaker._lock = lock  # noqa: SLF001  as above
        lease.succeeded()
        return False
    breaker._lock = lock  # noqa: SLF001  as above
    return True


@pytest.fixture
def clock():
    with virtual_time() as clock:
        yield clock


@pytest.mark.parametrize("window", [10, "10s"])
def test_takes_no_lock_while_all_is_well(clock, window):
    breaker = CircuitBreaker(window=window)
    call(breaker, "S")
    assert [is_quiet(breaker) for _ in range(5)] == [True] * 5
    assert breaker.metrics[:6] == (6, 0, 0, 0.0, 0.0, 6)


def test_takes_the_lock_in_a_new_slot(clock):
    breaker = CircuitBreaker(window="10s")
    quiet = []
    for delay in [0, 0.5, 0.5, 0.9, 0.1, 0]:
        clock.advance(delay)
        quiet.append(is_quiet(breaker))
    assert quiet == [False, True, False, True, False, True]


def test_takes_the_lock_while_it_may_complete_the_minimum(clock):
    breaker = CircuitBreaker(window=10, minimum_calls=4)
    call(breaker, "SF")
    assert [is_quiet(breaker) for _ in range(3)] == [False, False, True]
    row = CircuitBreaker(consecutive_failures=3)
    call(row, "SF")
    assert is_quiet(row)


def test_takes_the_lock_after_the_window_was_looked_at(clock):
    """As that may have dropped the successes that kept the rate low."""
    breaker = CircuitBreaker(window="10s", minimum_calls=3)
    call(breaker, "SSSS")
    clock.advance("5s")
    call(breaker, "FFF")
    clock.advance("5s")
    assert breaker.metrics[:2] == (3, 3)
    call(breaker, "S")
    assert breaker.state == "open"


def test_takes_the_lock_where_slow_calls_count(clock):
    breaker = CircuitBreaker(slow_after="1s")
    call(breaker, "S")
    assert not is_quiet(breaker)


def test_takes_the_lock_without_a_gil(clock, monkeypatch):
    monkeypatch.setattr(_circuit_breaker, "_HAS_GIL", False)
    breaker = CircuitBreaker()
    call(breaker, "S")
    assert not is_quiet(breaker)


def test_of_an_earlier_state_counts_for_totals_alone(clock):
    breaker = CircuitBreaker(window=10)
    call(breaker, "S")
    early = breaker.acquire()
    breaker.close()
    call(breaker, "S")
    early.succeeded()
    assert breaker.metrics[:6] == (1, 0, 0, 0.0, 0.0, 3)


def test_ends_a_row_of_failures(clock):
    breaker = CircuitBreaker(consecutive_failures=3)
    call(breaker, "SFFSFFSSF")
    assert breaker.state == "closed"
    call(breaker, "FF")
    assert breaker.state == "open"


@pytest.mark.needs("threads")
def test_64_threads_report_a_lease_once():
    breaker = CircuitBreaker()
    call(breaker, "S")
    for _ in range(5):
        lease = breaker.acquire()
        on_threads(lambda _, lease=lease: lease.succeeded())
    assert breaker.metrics.total_succeeded == 6


@pytest.mark.needs("threads")
@pytest.mark.parametrize("window", [100_000, "1d"])
def test_successes_of_64_threads_are_all_counted(window):
    breaker = CircuitBreaker(window=window)
    on_threads(lambda _: call(breaker, "S" * 50))
    assert breaker.metrics[:2] == (THREADS * 50, 0)
    assert breaker.metrics.total_succeeded == THREADS * 50


def test_a_total_may_be_read_while_it_is_read():
    """As a signal handler does."""

    class Interrupted:
        def __init__(self):
            self.steps = count()

        def __next__(self):
            step = next(self.steps)
            if step == 3:
                inner.append(successes.total())
            return step

    successes, inner = Successes(), []
    successes.steps = steps = Interrupted()
    next(steps)
    next(steps)
    assert [successes.total() for _ in range(3)] == [2, 2, 2]
    assert inner == [2]


@pytest.mark.parametrize("window", [CountWindow(9, 5), TimeWindow(9, seen=5)])
def test_a_window_ignores_an_earlier_total(window):
    window.add(0, True, False)
    counts = []
    for total in [5, 8, 6, 8, 9]:
        window.catch_up(total)
        counts.append(window.count(0))
    assert counts == [(1 + added, 1, 0) for added in [0, 3, 3, 3, 4]]


def test_many_successes_at_once_leave_a_full_window():
    window = CountWindow(3)
    window.add(0, True, True)
    window.catch_up(10**12)
    assert window.count(0) == (3, 0, 0)
    assert not window.add(0, False, False)


@given(
    window=st.sampled_from([1, 3, 8, "10s"]),
    minimum=st.integers(1, 8),
    rate=st.sampled_from([None, 0.25, 0.5, 1.0]),
    row=st.sampled_from([None, 2, 4]),
    steps=st.lists(st.sampled_from("SSSSSFF01M"), max_size=60),
)
def test_opens_and_counts_as_a_simple_model(window, minimum, rate, row, steps):
    """The outcomes of calls, short and long delays, and looks at the metrics."""
    if isinstance(window, int):
        minimum = min(minimum, window)
    if rate is None and row is None:
        rate = 0.5
    calls = []
    with virtual_time() as clock:
        breaker = CircuitBreaker(
            window=window,
            minimum_calls=minimum,
            failure_rate=rate,
            consecutive_failures=row,
        )
        for step in steps:
            if step in "01":
                clock.advance(4 if step == "1" else 0.4)
            elif step in "SF":
                calls.append((int(clock.now()), step == "F"))
                call(breaker, step)
            if window == "10s":
                # Of the slot of this second, and the nine before.
                recent = [x for at, x in calls if int(clock.now()) - at < 10]
            else:
                recent = [failed for _, failed in calls][-window:]
            if step == "M":
                assert breaker.metrics[:2] == (len(recent), sum(recent))
                assert breaker.metrics.total_succeeded == sum(
                    not failed for _, failed in calls
                )
            if step not in "SF":
                continue
            in_a_row = row and [x for _, x in calls][-row:] == [True] * row
            reached = rate and len(recent) >= minimum and any(recent)
            if in_a_row or (reached and Fraction(sum(recent), len(recent)) >= rate):
                assert breaker.state == "open"
                return
            assert breaker.state == "closed"
